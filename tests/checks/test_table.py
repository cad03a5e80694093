"""The table of rules: every rule has a name, is documented and registered once."""

from pathlib import Path

import pytest

import onnxeval
from onnxeval.checks import RULES
from onnxeval.checks.document import rules_table
from onnxeval.checks.rules import rule

HERE = Path(__file__).parent


@pytest.mark.parametrize("entry", RULES.values(), ids=RULES)
def test_a_rule_has_a_name_and_a_severity(entry: onnxeval.checks.Rule) -> None:
    assert entry.severity in ("error", "warning", "note")
    family, name = entry.id.split("/")
    assert family == entry.family
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
