"""The verdicts that the handed cases record."""

import json
from pathlib import Path

import pytest

import onnxeval

CASES = Path(__file__).parents[1] / "cases"
VERDICTS = {
    path.parent.name: meta["check"]
    for path in sorted(CASES.glob("*/meta.json"))
    if (meta := json.loads(path.read_text()))["check"] != "either"
}


def test_there_are_verdicts_of_both_kinds() -> None:
    assert set(VERDICTS.values()) == {"valid", "invalid"}


@pytest.mark.parametrize("name", VERDICTS)
def test_verdict(name: str) -> None:
    errors = [f for f in onnxeval.check(CASES / name / "model.onnx") if f.severity == "error"]
    assert bool(errors) == (VERDICTS[name] == "invalid"), list(map(str, errors))
