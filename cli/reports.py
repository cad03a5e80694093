"""Findings for programs: JSON, annotations of GitHub's workflows, and SARIF."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import onnxeval
from onnxeval.checks import RULES

from .checkpages import SEVERITIES

if TYPE_CHECKING:
    from onnxeval.checks import Finding, Rule

Results = Mapping[str, "Sequence[Finding]"]


# JSON


def results_form(results: Results) -> dict[str, Any]:
    """The findings as `jsonform.document` takes them."""
    return {"models": [_model_form(model, findings) for model, findings in results.items()]}


def _model_form(model: str, findings: Sequence[Finding]) -> dict[str, Any]:
    counts: Counter[str] = Counter(finding.severity for finding in findings)
    return {
        "model": model,
        "counts": {severity: counts[severity] for severity in SEVERITIES},
        "findings": [
            {"rule": f.rule, "severity": f.severity, "where": f.where, "message": f.message, "hint": f.hint}
            for f in findings
        ],
    }


def rules_form(rules: Sequence[Rule]) -> dict[str, Any]:
    """Rules with their pages as `jsonform.document` takes them."""
    return {"rules": [_rule_form(rule) for rule in rules]}


def _rule_form(rule: Rule) -> dict[str, Any]:
    page = rule.page
    parts = {"what": page.what, "why": page.why, "mend": page.mend, "example": page.example, "instead": page.instead}
    return {"rule": rule.id, "severity": rule.severity, **parts}


# GitHub

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def github_lines(results: Results) -> Iterator[str]:
    """A workflow command for each finding, which GitHub shows beside the file."""
    for model, findings in results.items():
        for finding in findings:
            properties = f"file={_escaped(model, ',:')},title={_escaped(finding.rule, ',:')}"
            text = f"{finding.where}: {finding.message}" + (f" ({finding.hint})" if finding.hint else "")
            yield f"::{_COMMANDS[finding.severity]} {properties}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    """A text in which nothing ends a workflow command early."""
    for sign in ("%", "\r", "\n", *more):
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


# SARIF

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif_form(results: Results) -> dict[str, Any]:
    """The findings as a log of SARIF 2.1.0."""
    rules = sorted({finding.rule for findings in results.values() for finding in findings})
    driver = {"name": "onnxeval", "version": onnxeval.__version__, "rules": [_descriptor(RULES[r]) for r in rules]}
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True}],
        "results": [
            _result(model, finding, rules.index(finding.rule))
            for model, findings in results.items()
            for finding in findings
        ],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _descriptor(rule: Rule) -> dict[str, Any]:
    page = rule.page
    example = f"\n\nExample:\n\n{page.example}" + (f"\n\nInstead:\n\n{page.instead}" if page.instead else "")
    return {
        "id": rule.id,
        "shortDescription": {"text": page.what},
        "fullDescription": {"text": f"{page.what} {page.why}"},
        "help": {"text": f"{page.mend}{example}"},
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(model: str, finding: Finding, rule_index: int) -> dict[str, Any]:
    place = hashlib.sha256(f"{finding.rule}\n{finding.where}".encode(errors="backslashreplace")).hexdigest()
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": finding.severity,
        "message": {"text": finding.message + (f" ({finding.hint})" if finding.hint else "")},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(model)},
                    "region": {"startLine": 1},  # GitHub asks for one; a model has no lines
                },
                "logicalLocations": [{"fullyQualifiedName": finding.where}],
            }
        ],
        "partialFingerprints": {"ruleAndPlace/v1": place},
    }


def _uri(model: str) -> str:
    path = Path(model)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="backslashreplace")
