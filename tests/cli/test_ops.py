"""The standard looked up from the shell."""

import json
from pathlib import Path

import onnx.defs
import pytest

from onnxeval.registry import STANDARD, Registry, op


def json_of(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_table_has_every_version_of_every_operator(shell):
    table = json_of(shell("ops", "--format", "json"))
    there = {(o["domain"], o["name"], v["since_version"]) for o in table["operators"] for v in o["versions"]}
    schemas = onnx.defs.get_all_schemas_with_history()
    standard = {(s.domain or "ai.onnx", s.name, s.since_version) for s in schemas}
    kernels = {(key.domain or "ai.onnx", key.op_type, key.since_version) for key in Registry.standard()}
    assert there == standard | kernels
    totals = table["totals"]
    assert totals["versions"] == totals["kernel"] + totals["function body"] + totals["nothing"]
    text = shell("ops").stdout
    assert "  DepthToSpace  " in text
    assert f"{totals['operators']} operators, {totals['versions']} versions: {totals['kernel']} with a kernel" in text


def test_the_table_at_an_opset(shell):
    table = json_of(shell("ops", "--opset", "12", "--domain", "ai.onnx", "--format", "json"))
    versions = {o["name"]: [v["since_version"] for v in o["versions"]] for o in table["operators"]}
    assert versions["DepthToSpace"] == [11]
    assert versions["MaxPool"] == [12]
    assert "Mish" not in versions
    assert "at opset 12" in shell("ops", "--opset", "12").stdout


def test_one_domain(shell):
    table = json_of(shell("ops", "--domain", "ai.onnx.ml", "--format", "json"))
    assert {o["domain"] for o in table["operators"]} == {"ai.onnx.ml"}
    result = shell("ops", "--domain", "com.nowhere")
    assert result.exit_code == 2
    assert "there are: ai.onnx, ai.onnx.ml" in result.stderr


def test_a_page(shell):
    text = shell("ops", "DepthToSpace").stdout
    assert text.startswith("DepthToSpace-28  ai.onnx, tensor\nkernel: onnxeval/ops/tensor/depth_space.py:")
    assert "function body: built from the node's input types" in text
    for part in (
        "\nInputs\n  input  T\n",
        "\nOutputs\n  output  T\n",
        "\n  blocksize  INT, required\n",
        '\n  mode  STRING, default "DCR"\n',
        "\nTypes\n  T  ",
        "float32",
        "\n   1\n  11  not breaking",
        '\n        attribute mode is new (optional, default "DCR")\n',
        "\n* 28  not breaking\n        now with a function body\n",
    ):
        assert part in text


def test_a_page_at_an_opset(shell):
    assert shell("ops", "MaxPool", "--opset", "9").stdout.startswith("MaxPool-8  ai.onnx, nn\n")
    result = shell("ops", "Mish", "--opset", "9")
    assert result.exit_code == 2
    assert "Mish does not exist at opset 9. Its versions: 18" in result.stderr


def test_a_page_as_json(shell):
    page = json_of(shell("ops", "Gemm", "--opset", "9", "--format", "json"))
    assert (page["name"], page["since_version"], page["domain"]) == ("Gemm", 9, "ai.onnx")
    assert {a["name"]: a["default"] for a in page["attributes"]} == {"alpha": 1, "beta": 1, "transA": 0, "transB": 0}
    assert Path(page["kernel"]["file"]).exists()
    assert [step["newer"] for step in page["history"]] == [6, 7, 9, 11, 13]


def test_every_page_can_be_printed(shell):
    for schema in onnx.defs.get_all_schemas():
        for form in ("text", "json"):
            result = shell("ops", schema.name, "--domain", schema.domain or "ai.onnx", "--format", form)
            assert result.exit_code == 0, (schema.name, result.output)


def test_a_line_that_is_too_long_flows_into_the_next_one(shell):
    """No word stands alone on a line in the midst of a sentence; formulas and lists keep their lines."""
    lines = shell("ops", "MaxPool", "--opset", "22").stdout.splitlines()
    alone = next(number for number, line in enumerate(lines) if line.startswith("differently"))
    assert lines[alone].startswith("differently depending on whether explicit padding is used")
    assert lines[alone - 1].endswith("is calculated")
    assert "or" in lines
    assert max(map(len, (line for line in lines if "https:" not in line))) <= 100


def test_differences(shell):
    assert shell("ops", "DepthToSpace", "--diff", "13", "28").stdout == (
        "DepthToSpace 13 to 28: not breaking, same inputs, attributes and types, now with a function body\n"
    )
    softmax = shell("ops", "Softmax", "--diff", "11", "13").stdout
    assert softmax.startswith("Softmax 11 to 13: breaking, same inputs, 3 changes\n")
    assert "\nbreaking\n  attribute axis defaults to -1, was 1\n" in softmax
    assert "\n  -The operator computes the softmax" in softmax
    clip = json_of(shell("ops", "Clip", "--diff", "6", "12", "--format", "json"))
    assert clip["breaking"]
    assert {"text": "attribute min is now an input", "breaking": True} in clip["changes"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["depthtospce"], "Did you mean DepthToSpace"),
        (["Softmx"], "Did you mean Softmax"),
        (["pool"], "MaxPool"),
        (["zzzzzz"], "There is no operator 'zzzzzz'."),
        (["Scaler", "--domain", "ai.onnx"], "There is no operator 'Scaler' in the domain ai.onnx."),
        (["--diff", "1", "2"], "--diff needs the NAME"),
        (["Mish", "--diff", "9", "18"], "Mish does not exist at opset 9"),
        (["Mish", "--opset", "999"], "the newest opset of ai.onnx is "),
        (["Mish", "--diff", "18", "999"], "the newest opset of ai.onnx is "),
        (["Scaler", "--opset", "999"], "the newest opset of ai.onnx.ml is "),
        (["--opset", "999"], "the newest opset of ai.onnx is "),
    ],
)
def test_what_cannot_be_found(shell, arguments, message):
    result = shell("ops", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_names_are_found_whatever_their_case_and_with_their_domain(shell):
    for name in ("depthtospace", "DEPTHTOSPACE"):
        assert shell("ops", name).stdout.startswith("DepthToSpace-28")
    assert shell("ops", "ai.onnx.ml.Scaler").stdout.startswith("ai.onnx.ml.Scaler-1")
    assert shell("ops", "ai.onnx.Relu").stdout.startswith("Relu-14")


def test_a_kernel_s_types_are_told_where_no_schema_tells(shell):
    """As in onnxruntime's docs/ContribOperators.md."""
    page = json_of(shell("ops", "com.microsoft.QLinearAdd", "--format", "json"))
    types = {variable["name"]: set(variable["types"]) for variable in page["variables"]}
    slots = {slot["name"].lower(): slot for slot in page["inputs"]}
    assert {name: types[slot["variable"]] for name, slot in slots.items()} == {
        **{name: {"uint8", "int8"} for name in ("a", "a_zero_point", "b", "b_zero_point", "c_zero_point")},
        **{name: {"float32"} for name in ("a_scale", "b_scale", "c_scale")},
    }
    page = json_of(shell("ops", "com.microsoft.MatMulNBits", "--format", "json"))
    assert {a["name"]: a["kind"] for a in page["attributes"] if a["required"]} == dict.fromkeys(
        ("K", "N", "block_size"), "INT"
    )
    optional = {slot["name"] for slot in page["inputs"] if slot["presence"] == "optional"}
    assert optional == {"zero_points", "g_idx", "bias"}
    assert "Types\n  T\n      bfloat16 float16 float32\n" in shell("ops", "com.microsoft.MatMulNBits").stdout


def test_an_operator_of_one_s_own(shell):
    @op("Twice", domain="com.acme", versions=(1,))
    def twice(x, *, factor: int = 2):
        """The input times a factor."""

    try:
        page = json_of(shell("ops", "Twice", "--format", "json"))
    finally:
        del STANDARD._kernels[next(key for key in STANDARD if key.domain == "com.acme")]
        STANDARD._versions.pop(("com.acme", "Twice"))
    assert page["text"] == "The input times a factor."
    assert [slot["name"] for slot in page["inputs"]] == ["x"]
    assert [(a["name"], a["default"], a["required"]) for a in page["attributes"]] == [("factor", 2, False)]
