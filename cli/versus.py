"""`--vs`: a run held against another engine or another model, as a table and as JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from .options import FILE
from .screen import Line, Screen
from .stepping import carries
from .timeout import limits
from .verdict import Tolerances, comparison_form, metrics, share, worst_lines

if TYPE_CHECKING:
    from onnxeval.comparing import Comparison
    from onnxeval.model import Model
    from onnxeval.values import Value
    from onnxeval.versus.verdict import Operand, Place, Report, Row

_META = "onnxeval.versus"
_ENGINES = ("onnxruntime", "reference")
_HEAD = ("value", "operator", "type", "max abs", "max rel", "verdict")
_RIGHT = (3, 4)  # columns of figures
_MOST_NAMES = 8
_SNR_OF_ROUNDING = 110  # decibels


def versus_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option, not handed on: `Against` knows it."""
    return click.option(
        "--vs",
        "vs",
        type=FILE,
        metavar="ENGINE|MODEL",
        callback=_keep,
        expose_value=False,
        help="Hold every value shown against that of onnxruntime, of reference (the ReferenceEvaluator of onnx), or of "
        "another model: exit code 1 where one differs.",
    )(command)


def _keep(ctx: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    if value not in _ENGINES and not os.path.exists(value):
        raise click.BadParameter(f"{value!r} is neither {' nor '.join(_ENGINES)}, and no file.")
    ctx.meta[_META] = value


class Against:
    """What `--vs` names: an engine that is there, or a model, loaded."""

    def __init__(self, ctx: click.Context, tolerances: Tolerances, *, reference: bool, fast_math: bool) -> None:
        given = click.core.ParameterSource.COMMANDLINE
        other: str = ctx.meta[_META]
        if ctx.get_parameter_source("expect") is given:
            raise click.UsageError("--vs and --expect do not go together.")
        if carries(ctx):
            raise click.UsageError("--vs and --carry do not go together.")
        self._tolerances = tolerances
        self._reference = reference
        self._limits = limits(ctx)
        self._other: str | Model = other
        if other in _ENGINES:
            from onnxeval.benchmark.measuring import require

            require([other])
        else:
            import onnxeval

            self._other = onnxeval.load(other, fast_math=fast_math)

    @staticmethod
    def asked(ctx: click.Context) -> bool:
        """Whether `--vs` is given."""
        return _META in ctx.meta

    def report(
        self, model: Model, feeds: Mapping[str, Value], results: Mapping[str, Value], seed: int | None
    ) -> Report:
        """The verdict on these results."""
        from onnxeval.versus.verdict import versus

        from .progress import waiting

        with waiting("comparing"):
            return versus(
                model,
                feeds,
                results,
                self._other,
                self._tolerances.of,
                reference=self._reference,
                seed=seed,
                limits=self._limits,
            )


# Text


def report_lines(report: Report, on: Screen) -> Iterator[Line]:
    """A table of the values, what it comes to, and where differences begin."""
    yield from _table(report.rows, on)
    yield []
    yield from _conclusion(report)
    if report.first is not None:
        yield from _place(report.first, "first to differ", report.other)
    if report.own is not None and report.own is not report.first:
        yield from _place(report.own, f"first to differ on the inputs that {report.other} had", report.other)
    elif report.first is not None and report.own is None and report.all_alone:
        yield [(f"no node differs on the inputs that {report.other} had: small differences add up", "")]


def _table(rows: Sequence[Row], on: Screen) -> Iterator[Line]:
    """A line for each value; two on a terminal that is too narrow for one."""
    table = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    apart = on.terminal and sum(widths) + 2 * (len(widths) - 1) > on.width
    for number, cells in enumerate(table):
        name, operator, kind, *figures, verdict = (
            text.rjust(width) if place in _RIGHT else text.ljust(width)
            for place, (text, width) in enumerate(zip(cells, widths, strict=True))
        )
        row = rows[number - 1] if number else None
        style = "faint" if row is None else _STYLES[_verdict(row.comparison)]
        called: Line = [(name, "name" if number else "faint")]
        found: Line = [(f"  {operator}  ", ""), (kind, "type"), (f"  {'  '.join(figures)}  ", ""), (verdict, style)]
        if not number:
            found = [(text, "faint") for text, _ in found]
        yield from (called, found) if apart else ([*called, *found],)
        if row is not None and row.comparison is not None and row.comparison.reason:
            yield [(f"  {row.comparison.reason}", "")]


_STYLES = {"agrees": "good", "differs": "error", "not compared": "faint"}


def _verdict(comparison: Comparison | None) -> str:
    return "not compared" if comparison is None else "agrees" if comparison.agrees else "differs"


def _cells(row: Row) -> tuple[str, ...]:
    operator = row.node.rpartition(" (")[2].removesuffix(")") or "constant"
    figures = ("", "")
    verdict = _verdict(row.comparison)
    if row.comparison is not None:
        figures = (_figure(row.comparison.max_abs), _figure(row.comparison.max_rel))
        verdict = f"{verdict} {share(row.comparison)}".rstrip()
    return (row.name, operator, row.type, *figures, verdict)


def _figure(number: float | None) -> str:
    return "" if number is None else f"{number:.2g}"


def _conclusion(report: Report) -> Iterator[Line]:
    other = f"{report.other} {report.version}".rstrip()
    count = {verdict: sum(_verdict(row.comparison) == verdict for row in report.rows) for verdict in _STYLES}
    agree, differ, left = count.values()
    if differ:
        text = f"{differ} of {agree + differ} value{'s' * (agree + differ > 1)} differ{'s' * (differ == 1)}"
        parts = [(text, "error"), (f" from {other}", "")]
    else:
        parts = [(f"{agree} value{'s agree' if agree > 1 else ' agrees'}", "good"), (f" with {other}", "")]
    yield [*parts, (f", {left} not compared" if left else "", "")]
    notes: dict[str, list[str]] = {}
    for row in report.rows:
        if row.note:
            notes.setdefault(row.note, []).append(row.name)
    for note, names in notes.items():
        yield [(f"{note}: ", "faint"), (_some(names), "")]
    if report.extra:
        yield [(f"only in {report.other}: ", "faint"), (_some(report.extra), "")]


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _place(place: Place, title: str, other: str) -> Iterator[Line]:
    """A value that differs, and what its node was given."""
    comparison = place.row.comparison
    assert comparison is not None
    yield [(f"{title}: ", ""), (place.row.name, "name"), (f", made by {place.row.node}", "")]
    yield [(f"  {comparison.reason or metrics(comparison)}", "")]
    yield from worst_lines(comparison, "there")
    yield from _hint(comparison)
    width = max((len(operand.name) for operand in place.operands), default=0)
    for operand in place.operands:
        yield [("  input ", "faint"), (f"{operand.name:<{width}}  ", "name"), *_operand(operand)]
    if place.alone is not None:
        yield [(f"  its node alone, on the inputs of {other}:", "")]
        yield [("    ", ""), *_findings(place.alone)]
    elif any(operand.state == "not shown" for operand in place.operands):
        yield [("  -o '*' compares its inputs too, and all before them", "faint")]


def _hint(comparison: Comparison) -> Iterator[Line]:
    """What lets such a difference pass, where it is one of rounding by its size."""
    if comparison.snr is not None and comparison.snr >= _SNR_OF_ROUNDING and comparison.max_abs:
        atol = 10.0 ** math.ceil(math.log10(comparison.max_abs))
        yield [(f"  small beside the value as a whole: --atol {atol:.0e} would let it pass", "faint")]


def _operand(operand: Operand) -> Line:
    return [(operand.state, "faint")] if operand.comparison is None else _findings(operand.comparison)


def _findings(comparison: Comparison) -> Line:
    """The verdict and the figures that matter most."""
    verdict = _verdict(comparison)
    figures = {"max abs": _figure(comparison.max_abs), "max rel": _figure(comparison.max_rel)}
    texts = [f"{name} {figure}" for name, figure in figures.items() if figure]
    found = comparison.reason or ", ".join(filter(None, [share(comparison), *texts]))
    return [(verdict, _STYLES[verdict]), (f"  {found}", "")]


# JSON


def report_form(report: Report) -> dict[str, Any]:
    """The verdict as an object that `jsonform.document` takes."""
    return {
        "other": report.other,
        "version": report.version,
        "agrees": report.agrees,
        "values": [_row_form(row) for row in report.rows],
        "only_in_other": list(report.extra),
        "first": _place_form(report.first),
        "first_on_its_own": _place_form(report.own),
        "all_on_their_own": report.all_alone,
    }


def _row_form(row: Row) -> dict[str, Any]:
    form: dict[str, Any] = {"name": row.name, "node": row.node or None, "type": row.type}
    form |= {"agrees": None} if row.comparison is None else comparison_form(row.comparison)
    return form | ({"note": row.note} if row.note else {})


def _place_form(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    inputs = [
        {"name": operand.name, "is": operand.state}
        | ({} if operand.comparison is None else comparison_form(operand.comparison))
        for operand in place.operands
    ]
    alone = None if place.alone is None else comparison_form(place.alone)
    return {"name": place.row.name, "node": place.row.node, "inputs": inputs, "alone": alone}
