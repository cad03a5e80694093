"""What `onnxeval run` prints."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper


def json_of(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_text(shell, model):
    result = shell("run", model("two"), "-i", "x=[[1, -2, 3.5]]", "-i", "b=[0, 0, 0]")
    assert result.exit_code == 0
    assert result.stdout == (
        "sum  float32[1, 3]  -4 to 10.5\n  1.0  -4.0  10.5\n\nnegative  float32[1, 3]  -10.5 to 4\n  -1.0  4.0  -10.5\n"
    )
    assert result.stderr == ""


def test_a_scalar_takes_one_line(shell, model):
    assert shell("run", model("scalar"), "-i", "0.1").stdout == "y  float32[]  -0.1\n"


def test_json(shell, model):
    result = shell("run", model("two"), "-i", "x=[[1, NaN, Infinity]]", "-i", "b=[0, 0, 0]", "--format", "json")
    assert json_of(result) == {
        "outputs": [
            {"name": "sum", "type": "tensor", "dtype": "float32", "shape": [1, 3], "data": [[1, "NaN", "Infinity"]]},
            {
                "name": "negative",
                "type": "tensor",
                "dtype": "float32",
                "shape": [1, 3],
                "data": [[-1, "NaN", "-Infinity"]],
            },
        ]
    }


FEEDS = ("-i", "x=[[1, 2, 3]]", "-i", "b=[0, 0, 0]", "--format", "json")


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        ([], ["sum", "negative"]),
        (["negative"], ["negative"]),
        (["scaled"], ["scaled"]),
        (["x"], ["x"]),
        (["weights"], ["weights"]),
        (["s*"], ["scaled", "sum"]),
        (["negative", "s*"], ["negative", "scaled", "sum"]),
        (["negative,s*", "x"], ["negative", "scaled", "sum", "x"]),
        (["negative, x"], ["negative", "x"]),
        (["s*", "sum"], ["scaled", "sum"]),
        (["?"], ["x", "b"]),
        (["[a-m]*"], ["b"]),
    ],
)
def test_choosing_outputs(shell, model, outputs, names):
    result = shell("run", model("two"), *FEEDS, *(word for name in outputs for word in ("--output", name)))
    assert [entry["name"] for entry in json_of(result)["outputs"]] == names


def test_a_star_crosses_slashes_and_exact_names_come_first(shell):
    def info(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])

    nodes = [helper.make_node("Neg", ["x"], [name]) for name in ("/a/b/c", "/a/*", "[y]")]
    graph = helper.make_graph(nodes, "g", [info("x")], [info("[y]")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), "model.onnx")
    for output, names in (("/a*", ["/a/b/c", "/a/*"]), ("/a/*", ["/a/*"]), ("[y]", ["[y]"])):
        result = shell("run", "model.onnx", "-i", "[1]", "-o", output, "--format", "json")
        assert [entry["name"] for entry in json_of(result)["outputs"]] == names


def test_an_output_that_matches_nothing(shell, model):
    for output, hint in (("scald", "did you mean scaled?"), ("conv*", "the outputs are: sum, negative")):
        result = shell("run", model("two"), *FEEDS, "-o", output)
        assert result.exit_code == 5
        assert f"no value '{output}', as a name or as a pattern" in result.stderr
        assert f"hint: {hint}" in result.stderr


def test_a_seed_repeats_random_values(shell):
    node = helper.make_node("RandomNormal", [], ["y"], shape=[4])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    model = helper.make_model(
        helper.make_graph([node], "g", [], [output]), opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )
    onnx.save(model, "random.onnx")
    runs = [shell("run", "random.onnx", "--seed", seed).stdout for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_warnings_go_to_standard_error(shell, model):
    path = model("relu")
    loaded = onnx.load(path)
    loaded.training_info.add()
    onnx.save(loaded, path)
    result = shell("run", path, "-i", "[[1, 2, 3]]", "--format", "json")
    assert json_of(result)
    assert "warning: the model's training_info is ignored" in result.stderr


def test_sequences_optionals_and_strings(shell, model):
    assert shell("run", model("sequence"), "-i", "[[1], [2, 3]]").stdout == (
        "t  seq(float32)  2 items\n  t[0]  float32[1]  1\n    1\n  t[1]  float32[2]  2 to 3\n    2  3\n"
    )
    assert shell("run", model("optional"), "-i", "null").stdout == "p  optional(float32[N])  empty\n"
    assert shell("run", model("text"), "-i", '["a", "日本"]').stdout == 't  string[2]  2 strings\n  "a"  "日本"\n'


def test_large_tensors_are_summarised_and_full_shows_all(shell, model):
    array = np.arange(2 * 3 * 20 * 30, dtype=np.float64).reshape(2, 3, 20, 30)
    np.save("x.npy", array)
    summary = shell("run", model("double"), "-i", "x.npy").stdout
    assert "[0, 0]\n" in summary
    assert "… 12 more rows …" in summary
    assert len(summary.splitlines()) == 1 + 6 * (1 + 8 + 1)
    full = shell("run", model("double"), "-i", "x.npy", "--full").stdout
    rows = [line.split() for line in full.splitlines() if "[" not in line]
    assert np.array_equal(np.array(rows, float), array.reshape(-1, 30))


def test_a_missing_input_tells_how_to_give_one(shell, model):
    result = shell("run", model("relu"))
    assert result.exit_code == 5
    assert 'no value for the input "x"' in result.stderr
    assert "hint: --input NAME=VALUE gives one, --random makes up what is not given" in result.stderr


def test_a_model_on_standard_input_has_a_name(shell):
    for command in ("run", "check"):
        result = shell(command, "-")
        assert result.exit_code == 3
        assert "hint: /dev/stdin reads it from standard input" in result.output
