"""What `onnxeval check` shows to people: the findings of each model, the table of rules, a rule's page."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from onnxeval.checks.pages import split_example

from .screen import Line, screen

if TYPE_CHECKING:
    from onnxeval.checks import Finding, Rule

SEVERITIES = ("error", "warning", "note")
_LONGEST_LINE = 110


# Findings


def result_lines(results: Mapping[str, Sequence[Finding]]) -> Iterator[Line]:
    """The findings of each model, grouped by place, and a verdict on each and on all."""
    before: Sequence[Finding] | None = None
    for model, findings in results.items():
        if before or (findings and before is not None):
            yield []
        yield from _model_lines(model, findings)
        before = findings
    if len(results) > 1:
        found = [finding for findings in results.values() for finding in findings]
        concerned = sum(map(bool, results.values()))
        yield []
        where = [(f" in {concerned} of them", "")] if found else []
        yield [(f"{len(results)} models: ", "name"), *_counts(found), *where]


def _model_lines(model: str, findings: Sequence[Finding]) -> Iterator[Line]:
    if findings:
        yield [(model, "name")]
    places: dict[str, list[Finding]] = {}
    for finding in findings:
        places.setdefault(finding.where, []).append(finding)
    for where, found in places.items():
        if where != model:
            yield [(f"  {where}", "heading")]
        for finding in found:
            yield from _finding_lines(finding)
    yield [(f"{model}: ", "name"), *_counts(findings)]


def _finding_lines(finding: Finding) -> Iterator[Line]:
    head, *rest = finding.message.splitlines() or [""]
    margin = " " * (len(finding.severity) + 6)
    rule: Line = [("  [", "faint"), (finding.rule, "faint"), ("]", "faint")]
    yield [("    ", ""), (finding.severity, _style(finding.severity)), (f"  {head}", ""), *([] if rest else rule)]
    for number, line in enumerate(rest, 1):
        yield [(margin + line, ""), *(rule if number == len(rest) else [])]
    if finding.hint:
        yield [(f"{margin}hint: {finding.hint}", "faint")]


def _counts(findings: Iterable[Finding]) -> Line:
    counts: Counter[str] = Counter(finding.severity for finding in findings)
    if not counts:
        return [("no findings", "good")]
    spans: Line = []
    for severity in SEVERITIES:
        if count := counts[severity]:
            spans += [(", " if spans else "", ""), (f"{count} {severity}{'s' * (count > 1)}", _style(severity))]
    return spans


def _style(severity: str) -> str:
    return severity if severity in ("error", "warning") else ""


# Rules


def table_lines(rules: Sequence[Rule]) -> Iterator[Line]:
    """Each rule with its severity and what it finds."""
    width = max((len(rule.id) for rule in rules), default=0)
    margin = width + 11
    family = ""
    for rule in sorted(rules, key=lambda rule: rule.id):
        if family and rule.family != family:
            yield []
        family = rule.family
        first, *rest = textwrap.wrap(rule.page.what, max(_width() - margin, 40))
        severity = (f"{rule.severity:9}", _style(rule.severity))
        yield [(f"{rule.id:{width}}  ", "name"), severity, (first, "")]
        yield from ([(" " * margin + line, "")] for line in rest)


def page_lines(rule: Rule) -> Iterator[Line]:
    """What a rule finds, why that matters, how to mend it, and an example."""
    page = rule.page
    yield [(rule.id, "name"), ("  ", ""), (rule.severity, _style(rule.severity))]
    yield from _paragraph(page.what)
    for title, text in (("Why", page.why), ("How to mend it", page.mend)):
        yield []
        yield [(title, "heading")]
        yield from _paragraph(text)
    for title, example in (("Example", page.example), ("Instead", page.instead)):
        if example:
            yield []
            yield [(title, "heading"), (_language(example), "faint")]
            yield from ([(f"  {line}", "")] for line in example.splitlines())


def _language(example: str) -> str:
    _, python = split_example(example)
    return "  (lines with >>> are Python, on that model)" if python else ""


def _paragraph(text: str) -> Iterator[Line]:
    yield from ([(line, "")] for line in textwrap.wrap(text, _width(), initial_indent="  ", subsequent_indent="  "))


def _width() -> int:
    return min(screen().width, _LONGEST_LINE)
