"""`run --vs`: the table, where differences begin, JSON, and what does not go together."""

import json

import numpy as np
import onnx
import onnx.parser
import pytest

from onnxeval_cli.screen import Screen
from onnxeval_cli.versus import report_lines

USAGE, INPUT_ERROR, MISSING, ENGINE = 2, 5, 9, 10
_MODEL = """g (float[1, 3] x) => (float[1, 3] y, int64[1, 1] most) <float[3] w = {%s}> {
    a = Mul(x, w)
    b = Neg(a)
    y = Exp(b)
    most = ArgMax<axis = 1>(y)
}"""
X = ("-i", "[[1, 2, 3]]")


def save(path: str, text: str) -> str:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}'), path)
    return path


@pytest.fixture
def pair() -> tuple[str, str]:
    """A model, and another with one weight changed."""
    return save("one.onnx", _MODEL % "1, 1, 1"), save("other.onnx", _MODEL % "1, 1.5, 1")


def rows(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in text.partition("\n\n")[0].splitlines()}


def test_all_agree(shell, pair):
    result = shell("run", pair[0], *X, "--vs", "reference", "-o", "*")
    assert result.exit_code == 0
    assert list(rows(result.stdout)) == ["value", "a", "b", "y", "most"]
    assert rows(result.stdout)["most"] == ["ArgMax-13", "int64[1,", "1]", "0", "agrees"]
    assert result.stdout.endswith(f"\n\n4 values agree with ReferenceEvaluator {onnx.__version__}\n")


def test_the_first_that_differs(shell, pair):
    """The cosine is 16 / sqrt(14 * 19), the ratio of signal to noise 19."""
    result = shell("run", pair[0], *X, "--vs", pair[1], "-o", "*")
    assert result.exit_code == 1
    assert rows(result.stdout)["w"] == ["constant", "float32[3]", "0.5", "0.33", "differs", "33.3", "%"]
    assert rows(result.stdout)["a"] == ["Mul-14", "float32[1,", "3]", "1", "0.33", "differs", "33.3", "%"]
    assert result.stdout.partition("\n\n")[2].splitlines() == [
        "4 of 5 values differ from other.onnx",
        "first to differ: a, made by node 0 (Mul-14)",
        "  in 1 of 3 elements (33.3 %), max abs 1, max rel 0.333, max ulp 4194304, cosine 0.981022943, SNR 12.8 dB",
        "  a[0, 1]  2, there 3",
        "  input x  given",
        "  input w  differs  33.3 %, max abs 0.5, max rel 0.33",
        "  its node alone, on the inputs of other.onnx:",
        "    differs  33.3 %, max abs 1, max rel 0.33",
    ]


def test_outputs_alone_say_what_to_look_at(shell, pair):
    result = shell("run", pair[0], *X, "--vs", pair[1])
    assert result.exit_code == 1
    assert list(rows(result.stdout)) == ["value", "y", "most"]
    assert "1 of 2 values differs from other.onnx" in result.stdout
    assert result.stdout.endswith("  input b  not shown\n  -o '*' compares its inputs too, and all before them\n")
    assert shell("run", pair[0], *X, "--vs", pair[1], "-o", "most").exit_code == 0


@pytest.mark.parametrize(
    ("tolerance", "code"),
    [
        (("--rtol", "0.4"), 0),
        (("--rtol", "0.3"), 1),
        (("--atol", "1"), 0),
        (("--atol", "a:1", "--atol", "0.5"), 0),
        (("--atol", "a:0.9", "--atol", "0.5"), 1),
        (("--max-ulp", "4194304"), 0),
        (("--max-ulp", "4194303"), 1),
    ],
    ids=str,
)
def test_tolerances(shell, pair, tolerance, code):
    assert shell("run", pair[0], *X, "--vs", pair[1], "-o", "a", *tolerance).exit_code == code


def test_json(shell, pair):
    result = shell("run", pair[0], *X, "--vs", pair[1], "-o", "a", "-o", "b", "--format", "json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert [entry["shape"] for entry in document["outputs"]] == [[1, 3], [1, 3]]
    assert "data" not in document["outputs"][0]
    versus = document["versus"]
    assert (versus["other"], versus["agrees"], versus["only_in_other"]) == ("other.onnx", False, [])
    assert [(row["name"], row["node"], row["agrees"]) for row in versus["values"]] == [
        ("a", "node 0 (Mul-14)", False),
        ("b", "node 1 (Neg-13)", False),
    ]
    assert versus["values"][0]["worst"] == [{"place": "a[0, 1]", "value": 2.0, "expected": 3.0}]
    first = versus["first"]
    assert (first["name"], first["node"]) == ("a", "node 0 (Mul-14)")
    assert [(entry["name"], entry["is"]) for entry in first["inputs"]] == [("x", "given"), ("w", "constant")]
    assert first["alone"]["max_abs"] == 1.0
    assert versus["first_on_its_own"] == first
    full = json.loads(shell("run", pair[0], *X, "--vs", "reference", "--full", "--format", "json").stdout)
    assert "data" in full["outputs"][0]
    assert full["versus"]["first"] is None


def test_small_differences_that_add_up(shell):
    text = "g (float[3] x) => (float[3] y) <float[1] w = {%s}> { a = Mul(x, w) y = Floor(a) }"
    one, other = save("one.onnx", text % "1"), save("other.onnx", text % "0.999999")
    result = shell("run", one, "-i", "[1, 2, 3]", "--vs", other, "-o", "*")
    assert result.stdout.endswith(
        "  its node alone, on the inputs of other.onnx:\n    agrees  max abs 0, max rel 0\n"
        "no node differs on the inputs that other.onnx had: small differences add up\n"
    )


def test_what_lets_rounding_pass(shell):
    text = "g (float[2] x) => (float[2] y) <float[1] c = {%s}> { y = Add(x, c) }"
    one, other = save("one.onnx", text % "1"), save("other.onnx", text % "1.0000005")
    result = shell("run", one, "-i", "[1, -1]", "--vs", other)
    assert "  small beside the value as a whole: --atol 1e-06 would let it pass\n" in result.stdout
    assert shell("run", one, "-i", "[1, -1]", "--vs", other, "--atol", "1e-6").exit_code == 0


def test_what_one_side_has_and_what_has_another_form(shell, pair):
    text = """g (float[1, 3] x) => (float[1, 3] b, float[3] y, float z) {
        b = Neg(x)  s = Constant<value_ints = [-1]>()  y = Reshape(b, s)  z = Constant<value_float = 1.0>()
    }"""
    other = save("other.onnx", text)
    result = shell("run", pair[0], *X, "--vs", other, "-o", "a", "-o", "b", "-o", "y")
    assert result.exit_code == 1
    assert "  y is float32[1, 3], float32[3] is expected\n" in result.stdout
    assert "1 of 2 values differs from other.onnx, 1 not compared\n" in result.stdout
    assert "other.onnx has no such value: a\nonly in other.onnx: s, z\n" in result.stdout


def test_values_are_shown_besides_where_asked(shell, pair):
    result = shell("run", pair[0], *X, "--vs", "reference", "--stats", "--full", "--save", "y.npz")
    assert result.exit_code == 0
    assert "histogram" in result.stdout
    assert list(np.load("y.npz")) == ["y", "most"]
    result = shell("run", pair[0], *X, "--vs", "reference", "-o", "y", "--save", "-")
    assert result.stdout_bytes.startswith(b"\x93NUMPY")
    assert "1 value agrees" in result.stderr
    result = shell("run", pair[0], *X, "--vs", "reference", "-o", "y", "--full")
    assert result.stdout.startswith("y  float32[1, 3]")


def test_made_up_inputs(shell, pair):
    result = shell("run", pair[0], "--random", "--seed", "1", "--vs", "reference", "--save-inputs", "x.npz")
    assert result.exit_code == 0
    assert "replay: " in result.stderr
    assert list(np.load("x.npz")) == ["x"]


def test_two_lines_for_a_value_on_a_narrow_terminal():
    from onnxeval.comparing import Comparison
    from onnxeval.versus.verdict import Report, Row

    name = "/model/encoder/layer.0/attention/self/MatMul_output_0"
    row = Row(name, "n (MatMul-13)", "float32[1, 12, 64, 64]", Comparison(name, count=1, max_abs=1e-6, max_rel=1e-6))
    report = Report("onnxruntime", "1", (row,), (), (), None, None, all_alone=True)

    def printed(screen: Screen) -> list[str]:
        return ["".join(text for text, _ in line).rstrip() for line in report_lines(report, screen)]

    narrow = printed(Screen(80, terminal=True))
    assert narrow[2:4] == [name, "  MatMul-13  float32[1, 12, 64, 64]    1e-06    1e-06  agrees"]
    assert max(map(len, narrow)) <= 80
    assert printed(Screen(200, terminal=True))[1].startswith(f"{name}  MatMul-13  float32")
    assert printed(Screen())[1].startswith(f"{name}  MatMul-13  float32")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--vs", "onnxrt"), USAGE, "'onnxrt' is neither onnxruntime nor reference, and no file"),
        (("--vs", "reference", "--expect", "y=[[1, 2, 3]]"), USAGE, "--vs and --expect do not go together"),
        (("--vs", "reference", "--carry", "y=x", "--steps", "2"), USAGE, "--vs and --carry do not go together"),
        (("--vs", "reference", "--each", "--save", "out/"), USAGE, "--vs and --each do not go together"),
        (("--vs", "reference", "--rtol", "z:1"), INPUT_ERROR, "a tolerance for 'z', which is not compared"),
        (("--vs", "reference", "-o", "x"), INPUT_ERROR, "nothing to compare: no node of the model makes x"),
        (("--rtol", "1"), USAGE, "--rtol, --atol and --max-ulp are for what is compared"),
        (("--vs", "empty.onnx"), 3, "empty.onnx is empty"),
    ],
    ids=str,
)
def test_wrong_use(shell, pair, arguments, code, message):
    open("empty.onnx", "w").close()
    result = shell("run", pair[0], *X, *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert not result.stdout


def test_an_engine_that_is_not_installed(shell, pair, monkeypatch):
    monkeypatch.setattr("onnxeval.benchmark.measuring.find_spec", lambda _name: None)
    result = shell("run", pair[0], *X, "--vs", "onnxruntime")
    assert result.exit_code == MISSING
    assert result.stderr.splitlines() == [
        "error: the engine onnxruntime needs the extra `compare`",
        "hint: pip install 'onnxeval[compare]'",
    ]


def test_an_engine_that_cannot_run_the_model(shell):
    model = save("m.onnx", "g (float[2] x) => (float[2] y) { y = com.microsoft.QuickGelu<alpha = 1.0>(x) }")
    result = shell("run", model, "-i", "[1, 2]", "--vs", "reference")
    assert result.exit_code == ENGINE
    assert result.stderr.splitlines()[-1].startswith("error: ReferenceEvaluator cannot run the model: ")
    assert "Traceback" not in result.stderr


def test_onnxruntime(shell, pair):
    pytest.importorskip("onnxruntime")
    result = shell("run", pair[0], *X, "--vs", "onnxruntime", "-o", "*")
    assert result.exit_code == 0
    assert "4 values agree with onnxruntime " in result.stdout
