"""What `onnxeval inspect` prints."""

import json
from pathlib import Path

import onnx.parser
import pytest

SAMPLES = Path(__file__).parents[2] / "sample_models"
DIGITS = SAMPLES / "digits" / "model.onnx"


def test_in_short(shell):
    result = shell("inspect", DIGITS)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "  picture  float32[N, 1, 8, 8]" in lines
    assert "parameters  6,091 in 7 tensors, 24.4 kB" in lines
    assert "operators  11 nodes" in lines
    assert result.stderr == ""


def test_cost(shell):
    result = shell("inspect", DIGITS, "--cost", "--dim", "N=2")
    assert result.exit_code == 0, result.stderr
    macs = 2 * (16 * 8 * 8 * 9 + 32 * 4 * 4 * 16 * 9 + 10 * 128)
    assert f"MACs        {macs:,}\n" in result.stdout
    assert "float32[2, 16, 8, 8]" in result.stdout
    assert "not known" not in result.stdout


def test_metadata(shell, tmp_path):
    proto = onnx.load(DIGITS)
    onnx.helper.set_model_props(proto, {"author": "me", "notes": "two\nlines"})
    onnx.save(proto, tmp_path / "model.onnx")
    assert "metadata\n  author  me\n  notes   two lines\ninputs\n" in shell("inspect", tmp_path / "model.onnx").stdout
    content = json.loads(shell("inspect", tmp_path / "model.onnx", "--format", "json").stdout)
    assert content["metadata"] == {"author": "me", "notes": "two\nlines"}
    assert "metadata" not in shell("inspect", DIGITS).stdout


def test_names_are_cut_to_their_ends(shell, tmp_path):
    proto = onnx.load(DIGITS)
    proto.graph.node[1].name = name = "/backbone/stage_1/layers.0/blocks.0/attention/conv"
    onnx.save(proto, tmp_path / "model.onnx")
    result = shell("inspect", tmp_path / "model.onnx", "--cost", "--dim", "N=1")
    assert f"\n…{name[-39:]}  Conv-11" in result.stdout


def test_what_stays_open_is_told(shell):
    result = shell("inspect", DIGITS, "--cost")
    assert "open sizes: --dim N=1" in result.stdout
    assert "MACs        at least 0" in result.stdout


def test_json(shell):
    result = shell("inspect", DIGITS, "--format", "json", "--dim", "N=1")
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert content["opsets"] == {"ai.onnx": 21}
    assert content["inputs"] == [{"name": "picture", "type": "float32[1, 1, 8, 8]", "shape": [1, 1, 8, 8]}]
    assert content["open_sizes"] == []
    assert content["operators"]["Conv-11"] == 2
    assert [node["macs"] for node in content["nodes"]][1] == 16 * 8 * 8 * 9
    assert content["cannot_run"] == []


def test_the_tree_folds_and_unfolds(shell):
    collatz = SAMPLES / "collatz" / "model.onnx"
    folded = shell("inspect", collatz, "--tree").stdout
    assert "  body: 7 nodes  (folded)\n" in folded
    assert "then_branch" not in folded
    unfolded = shell("inspect", collatz, "--tree", "--depth", "2").stdout
    assert "      then_branch: 1 node\n        0 halve (Div-14)  n, two -> half int64[]\n" in unfolded


def test_functions_are_told_and_unfolded(shell, tmp_path):
    text = """<ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2, 3] x) => (float[2, 3] y) { y = loc.Twice(x) }
        <domain: "loc", opset_import: ["": 21]> Twice (a) => (c) { c = Add(a, a) }"""
    onnx.save(onnx.parser.parse_model(text), "model.onnx")
    assert "  loc:Twice(a) -> c  1 node  1 call\n" in shell("inspect", "model.onnx").stdout
    tree = shell("inspect", "model.onnx", "--tree", "--depth", "1").stdout
    assert "  loc:Twice: 1 node\n    0 Add-14  a, a -> c float32[2, 3]\n" in tree


def test_what_cannot_run_is_told(shell, tmp_path):
    text = (
        '<ir_version: 10, opset_import: ["": 21, "com.acme": 1]> g (float[2] x) => (float[2] y) { y = com.acme.Odd(x) }'
    )
    onnx.save(onnx.parser.parse_model(text), "model.onnx")
    result = shell("inspect", "model.onnx")
    assert result.exit_code == 0
    assert "cannot run  1 node\n  graph/node[0] (Odd)  nothing here runs it: com.acme.Odd" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--dim", "M=1"), 5, ["no input of the model has a dimension 'M'", "the open ones are: N"]),
        (("--dim", "N"), 2, ["NAME=SIZE"]),
        (("--dim", "N=-1"), 2, ["NAME=SIZE"]),
        (("--dim", "N=1", "--dim", "N=2"), 2, ["given twice"]),
        (("--dim", "N=1,N=2"), 2, ["given twice"]),
        (("--dim", "N=1,M=2"), 5, ["has a dimension 'M'"]),
        (("--dim", "N=1,"), 2, ["NAME=SIZE"]),
        (("--dim", f"N={2**63}"), 2, ["larger than any size"]),
    ],
)
def test_wrong_sizes(shell, arguments, code, words):
    result = shell("inspect", DIGITS, *arguments)
    assert result.exit_code == code
    assert all(word in result.stderr for word in words), result.stderr


def test_a_dimension_without_a_name_is_called_by_its_place(shell):
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[?, 3] x) => (float[?, 3] y) { y = Neg(x) }'
    Path("model.onnxtxt").write_text(text)
    result = shell("inspect", "model.onnxtxt", "--dim", "x[0]=4")
    assert "  x  float32[4, 3]" in result.stdout
    assert "  y  float32[4, 3]" in result.stdout


def test_several_sizes_in_one(shell):
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[B, S, K] x) => (float[B, S, N] y) { y = Neg(x) }'
    proto = onnx.parser.parse_model(text)
    proto.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "max(B,S)"
    onnx.save(proto, "model.onnx")
    result = shell("inspect", "model.onnx", "--dim", "B=2,S=3", "--dim", "max(B,S)=4")
    assert "  x  float32[2, 3, 4]" in result.stdout, result.output


def test_a_depth_without_a_tree(shell):
    result = shell("inspect", DIGITS, "--depth", "1")
    assert result.exit_code == 2
    assert "--depth unfolds the tree: it needs --tree" in result.stderr


def test_no_model(shell):
    Path("model.onnx").write_bytes(b"no model")
    result = shell("inspect", "model.onnx")
    assert result.exit_code == 3
    assert result.stdout == ""
