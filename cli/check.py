"""`onnxeval check`: the findings of each model, grouped by place, and a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from onnxeval.errors import ModelError

from . import screen
from .screen import Line

if TYPE_CHECKING:
    from onnxeval.checks import Finding

_SEVERITIES = ("error", "warning", "note")
_UNREADABLE = "file/unreadable"
_FOUND_ERRORS = 1


@click.command(short_help="List every defect of a model, each with its place and a hint.")
@click.argument("models", type=click.Path(readable=False), metavar="MODEL...", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print: grouped for people, or JSON.",
)
@click.pass_context
def check(ctx: click.Context, models: tuple[str, ...], form: str) -> None:
    """List everything that is wrong with each MODEL, without running it.

    \b
    Examples:
      onnxeval check model.onnx
      onnxeval check models/*.onnx
      onnxeval check model.onnx --format json | jq -r '.models[].findings[].rule'

    Each finding has a place (`graph/node[12] (Conv "conv1")`), a severity, a message that holds the values, the name of
    its rule, and a hint where there is one.

    \b
    Exit codes:
      0  no errors; warnings and notes do not count
      1  errors
      3  a file that cannot be read as a model
    """
    import onnxeval

    findings = {model: onnxeval.check(model) for model in models}
    if form == "json":
        from .jsonform import document

        screen.write(document({"models": [_form(model, found) for model, found in findings.items()]}))
    else:
        on = screen.screen()
        for place, (model, found) in enumerate(findings.items()):
            screen.show(_lines(model, found, apart=place > 0), on)
    every = [finding for found in findings.values() for finding in found]
    if any(finding.rule == _UNREADABLE for finding in every):
        ctx.exit(ModelError.exit_code)
    ctx.exit(_FOUND_ERRORS if any(finding.severity == "error" for finding in every) else 0)


def _lines(model: str, findings: Sequence[Finding], *, apart: bool) -> Iterator[Line]:
    if apart:
        yield []
    if findings:
        yield [(model, "name")]
    places: dict[str, list[Finding]] = {}
    for finding in findings:
        places.setdefault(finding.where, []).append(finding)
    for where, found in places.items():
        if where != model:
            yield [(f"  {where}", "heading")]
        for finding in found:
            head, *rest = finding.message.splitlines() or [""]
            margin = " " * (len(finding.severity) + 6)
            rule: Line = [("  [", "faint"), (finding.rule, "faint"), ("]", "faint")]
            yield [
                ("    ", ""),
                (finding.severity, _style(finding.severity)),
                (f"  {head}", ""),
                *([] if rest else rule),
            ]
            for number, line in enumerate(rest, 1):
                yield [(margin + line, ""), *(rule if number == len(rest) else [])]
            if finding.hint:
                yield [(f"{margin}hint: {finding.hint}", "faint")]
    yield [(f"{model}: ", "name"), *_verdict(findings)]


def _verdict(findings: Sequence[Finding]) -> Line:
    counts: Counter[str] = Counter(finding.severity for finding in findings)
    if not counts:
        return [("no findings", "good")]
    spans: Line = []
    for severity in _SEVERITIES:
        if count := counts[severity]:
            spans += [(", " if spans else "", ""), (f"{count} {severity}{'s' * (count > 1)}", _style(severity))]
    return spans


def _style(severity: str) -> str:
    return severity if severity in ("error", "warning") else ""


def _form(model: str, findings: Sequence[Finding]) -> dict[str, object]:
    counts: Counter[str] = Counter(finding.severity for finding in findings)
    return {
        "model": model,
        "counts": {severity: counts[severity] for severity in _SEVERITIES},
        "findings": [
            {"rule": f.rule, "severity": f.severity, "where": f.where, "message": f.message, "hint": f.hint}
            for f in findings
        ],
    }
