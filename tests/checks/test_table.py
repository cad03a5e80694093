"""The table of rules: every rule is tested, documented, and finds by its own name."""

import importlib.util
from pathlib import Path

import pytest

import onnxeval
from onnxeval.checks import RULES
from onnxeval.checks.document import rules_table
from onnxeval.checks.rules import rule

HERE = Path(__file__).parent
#: Rules on files: their tests are in test_robustness.py and test_tensor_rules.py.
ON_FILES = {"file/unreadable", "tensor/external-missing"}


def test_every_rule_has_a_model_that_breaks_it_and_a_near_miss() -> None:
    tested: list[str] = []
    for path in HERE.glob("test_*_rules.py"):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        tested += module.EXAMPLES
    assert sorted(tested) == sorted(set(RULES) - ON_FILES)


@pytest.mark.parametrize("entry", RULES.values(), ids=RULES)
def test_a_rule_says_what_it_finds(entry: onnxeval.checks.Rule) -> None:
    assert entry.text.endswith(".")
    assert entry.severity in ("error", "warning", "note")
    family, name = entry.id.split("/")
    assert family
    assert name == name.lower()


def test_the_documentation_is_that_of_the_table() -> None:
    text = (HERE.parents[1] / "docs" / "check.md").read_text()
    assert rules_table() in text, "run `python -m onnxeval.checks.document docs/check.md`"


def test_a_rule_is_registered_once() -> None:
    with pytest.raises(ValueError, match="graph/order is registered twice"):
        rule("graph/order", "error", object)(lambda part: ())


def test_findings_are_values() -> None:
    finding = onnxeval.Finding("graph/order", "error", "graph", "text", "hint")
    assert finding == onnxeval.Finding("graph/order", "error", "graph", "text", "hint")
    assert str(finding) == "error: graph: text [graph/order] (hint)"
    with pytest.raises(AttributeError):
        finding.rule = "other"
    assert onnxeval.Finding("graph/order", "error", "graph", "text").hint == ""
