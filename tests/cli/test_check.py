"""What `onnxeval check` prints, and the code it ends with."""

import json

import pytest

import onnxeval
from onnxeval.checks import Finding

FINDINGS = [
    Finding("node/attribute", "error", 'graph/node[3] (Conv "c")', "no attribute 'stride'", "did you mean strides?"),
    Finding("graph/unused", "warning", "graph", "the initializer w is never read"),
    Finding("types/shape", "error", 'graph/node[3] (Conv "c")', "line one\nline two"),
    Finding("graph/text", "note", "graph", "n"),
]


@pytest.fixture
def found(monkeypatch):
    def pretend(**findings):
        monkeypatch.setattr(onnxeval, "check", lambda path: findings[path.partition(".")[0]])

    return pretend


def test_findings_are_grouped_by_place(shell, found):
    found(m=FINDINGS)
    result = shell("check", "m.onnx")
    assert result.exit_code == 1
    assert result.stdout == (
        "m.onnx\n"
        '  graph/node[3] (Conv "c")\n'
        "    error  no attribute 'stride'  [node/attribute]\n"
        "           hint: did you mean strides?\n"
        "    error  line one\n"
        "           line two  [types/shape]\n"
        "  graph\n"
        "    warning  the initializer w is never read  [graph/unused]\n"
        "    note  n  [graph/text]\n"
        "m.onnx: 2 errors, 1 warning, 1 note\n"
    )


def test_json(shell, found):
    found(m=FINDINGS, n=[])
    result = shell("check", "m.onnx", "n.onnx", "--format", "json")
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)["models"]
    assert first["model"] == "m.onnx"
    assert first["counts"] == {"error": 2, "warning": 1, "note": 1}
    assert first["findings"][0] == {
        "rule": "node/attribute",
        "severity": "error",
        "where": 'graph/node[3] (Conv "c")',
        "message": "no attribute 'stride'",
        "hint": "did you mean strides?",
    }
    assert second == {"model": "n.onnx", "counts": {"error": 0, "warning": 0, "note": 0}, "findings": []}


def test_exit_codes(shell, found):
    warning = [FINDINGS[1]]
    unreadable = [Finding("file/unreadable", "error", "file", "not a model")]
    found(good=[], warned=warning, bad=FINDINGS, broken=unreadable)
    for models, code in (
        (["good.onnx"], 0),
        (["warned.onnx"], 0),
        (["good.onnx", "bad.onnx"], 1),
        (["broken.onnx"], 3),
        (["broken.onnx", "bad.onnx"], 3),
    ):
        assert shell("check", *models).exit_code == code
    assert shell("check", "good.onnx").stdout == "good.onnx: no findings\n"


def test_good_models(shell, model):
    paths = [model("relu"), model("two"), model("optional")]
    result = shell("check", *paths)
    assert result.exit_code == 0, result.stdout
    assert result.stdout.splitlines() == [line for path in paths for line in (f"{path}: no findings", "")][:-1]


@pytest.mark.parametrize(("name", "part"), [("unknown", "Relux"), ("cycle", "cycle"), ("mismatch", "Add")])
def test_bad_models(shell, model, name, part):
    result = shell("check", model(name))
    assert result.exit_code == 1
    assert part in result.stdout
    assert result.stderr == ""


def test_files_that_are_no_models(shell, tmp_path):
    (tmp_path / "garbage.onnx").write_bytes(b"\xff" * 50)
    for name in ("garbage.onnx", "missing.onnx", "."):
        result = shell("check", name)
        assert result.exit_code == 3
        assert "[file/unreadable]" in result.stdout
        assert "Traceback" not in result.stderr
