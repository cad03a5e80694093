"""What `onnxeval bench` shows of what it measured."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from onnxeval.benchmark.differences import Difference
from onnxeval.benchmark.engines import ProfileReport
from onnxeval.benchmark.machine import facts
from onnxeval.benchmark.measuring import Measured, Ratio, Report
from onnxeval.files.jsonform import float_form
from onnxeval.values import OptionalType, Value, type_of

from .digits import short
from .screen import Line, Screen

_TOP = 10
#: Columns of the figures before a step's name.
_FIGURES = 28
#: What an engine is called where its name among the options would say little.
_NAMES = {"reference": "ReferenceEvaluator"}


@dataclass(frozen=True, slots=True)
class Share:
    """What a step or an operator took of the profiled runs: seconds and calls in each."""

    name: str
    seconds: float
    calls: float


def shares(profile: ProfileReport, *, by_operator: bool) -> list[Share]:
    """The steps of a profile, or their operators, the slowest first."""
    seconds: dict[str, float] = {}
    calls: dict[str, int] = {}
    for step in profile.steps:
        name = step.operator if by_operator else " > ".join(step.path)
        seconds[name] = seconds.get(name, 0.0) + step.seconds
        calls[name] = calls.get(name, 0) + step.calls
    runs = profile.runs
    return sorted((Share(name, seconds[name] / runs, calls[name] / runs) for name in seconds), key=lambda s: -s.seconds)


def seconds_between(profile: ProfileReport) -> float:
    """What a profiled run took beyond its steps."""
    return max(profile.seconds - sum(step.seconds for step in profile.steps), 0.0) / profile.runs


# Text


def lines(model: str, feeds: Mapping[str, Value], report: Report, on: Screen) -> Iterator[Line]:
    """The figures of every engine side by side, how they compare, and the profile."""
    threads = report.setting.threads
    yield [(model, "name"), (f"  {threads} thread{'s' * (threads > 1)}", "faint")]
    for name, value in feeds.items():
        yield [(f"  {name}  ", ""), (str(_type_of(value)), "type")]
    yield []
    yield from _figures(report.engines)
    ours, *others = report.engines
    for theirs in others:
        yield from _comparison(ours, theirs)
    if report.profile is not None:
        yield from _profile(report.profile, on)


def _type_of(value: Value) -> Any:
    return OptionalType(None) if value is None else type_of(value)


def _figures(engines: Sequence[Measured]) -> Iterator[Line]:
    heads = [f"{called(measured)} {measured.start.version if measured.start else ''}".rstrip() for measured in engines]
    rows: list[tuple[str, list[str]]] = [
        (label, [figure(measured) for measured in engines]) for label, figure in _ROWS.items()
    ]
    rows = [(label, cells) for label, cells in rows if any(cells)]
    left = max(len(label) for label, _ in rows)
    widths = [max(len(head), *(len(cells[i]) for _, cells in rows)) for i, head in enumerate(heads)]
    yield [(" " * left, ""), *((f"  {head:>{width}}", "heading") for head, width in zip(heads, widths, strict=True))]
    for label, cells in rows:
        yield [(f"{label:<{left}}", ""), *((f"  {cell:>{w}}", "") for cell, w in zip(cells, widths, strict=True))]


def called(measured: Measured) -> str:
    """An engine as a reader knows it."""
    return _NAMES.get(measured.engine, measured.engine) + " --fast-math" * measured.fast_math


def _started(part: str) -> Callable[[Measured], str]:
    def figure(measured: Measured) -> str:
        seconds = getattr(measured.start, part, None)
        return "" if seconds is None else time_text(seconds)

    return figure


def _percentile(percent: float) -> Callable[[Measured], str]:
    return lambda measured: time_text(measured.percentile(percent)) if measured.turns else ""


#: Label -> the text of an engine's figure, "" where it has none.
_ROWS: dict[str, Callable[[Measured], str]] = {
    "import": _started("imports"),
    "load": _started("load"),
    "  compiling": _started("compile"),
    "first run": _started("first_run"),
    "runs": lambda measured: f"{len(measured.runs):,}" if measured.turns else "",
    "  fastest": _percentile(0),
    "  median": _percentile(50),
    "  90 %": _percentile(90),
    "  99 %": _percentile(99),
    "  a second": lambda measured: _rate(measured) if measured.turns else "",
    "peak memory": lambda measured: memory_text(measured.peak_memory),
    "whole process": lambda measured: time_text(median(measured.cold.seconds)) if measured.cold.seconds else "",
    "  peak memory": lambda measured: memory_text(measured.cold.peak_memory),
}


def _rate(measured: Measured) -> str:
    each = throughput(measured)
    return f"{each:,.0f}" if each >= 100 else f"{each:.3g}"


def throughput(measured: Measured) -> float:
    """Runs a second."""
    return len(measured.runs) / sum(measured.runs)


def time_text(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            number = seconds / size
            return f"{number:.{max(0, 2 - int(math.log10(max(number, 1))))}f} {unit}"
    raise AssertionError


def memory_text(size: int | None) -> str:
    """Bytes in a unit that people read."""
    return "" if size is None else f"{size / 1e6:,.0f} MB"


def _comparison(ours: Measured, theirs: Measured) -> Iterator[Line]:
    yield []
    other = called(theirs)
    if theirs.failure:
        yield [(f"{other} cannot run the model", "warning")]
        return
    for what, ratio, turns in (
        ("a run", Ratio.warm(ours, theirs), len(theirs.turns)),
        ("a whole process", Ratio.cold(ours, theirs), len(theirs.cold.seconds)),
    ):
        if ratio is not None:
            spread = f"  ({ratio.low:.3g} to {ratio.high:.3g} in {turns} turn{'s' * (turns > 1)})"
            times: Line = [(f"{ratio.median:.3g}", "name"), (f" times {other}'s time", ""), (spread, "faint")]
            yield [(f"{what} takes ", ""), *times]
    yield [(f"outputs beside {other}'s", "")]
    width = max((len(difference.name) for difference in theirs.differences), default=0)
    for difference in theirs.differences:
        yield [(f"  {difference.name:<{width}}  ", ""), *_difference(difference)]


def _difference(difference: Difference) -> Line:
    if difference.reason:
        return [(f"cannot be compared: {difference.reason}", "warning")]
    if difference.unlike:
        return [(f"{difference.unlike} of {difference.of} elements are not alike", "warning")]
    if not difference.largest:
        return [("the same", "good")]
    far = f"differ by up to {short(difference.largest)}"
    return [(far, ""), (f", {difference.relative:.1e} of the largest element", "faint")]


def _profile(profile: ProfileReport, on: Screen) -> Iterator[Line]:
    each = profile.seconds / profile.runs
    runs = f"{profile.runs} profiled run{'s' * (profile.runs > 1)}"
    between = Share("between the steps", seconds_between(profile), 0)
    for title, table in (
        ("by operator", [*shares(profile, by_operator=True), between]),
        ("by node", shares(profile, by_operator=False)),
    ):
        yield []
        yield [(f"where the time goes, {title}", "heading"), (f"  {runs}, {time_text(each)} each", "faint")]
        shown = sorted(table, key=lambda share: -share.seconds)[:_TOP]
        for share in shown:
            calls = f"{share.calls:,.6g}" if share.calls else ""
            yield [
                (f"{100 * share.seconds / each:6.1f} %  {time_text(share.seconds):>8}  {calls:>6}  ", ""),
                (_fitting(share.name, on.width - _FIGURES) if on.terminal else share.name, "name"),
            ]
        if rest := table[len(shown) :] and sum(share.seconds for share in table) - sum(s.seconds for s in shown):
            text = f"{100 * rest / each:6.1f} %  {time_text(rest):>8}  {'':>6}  "
            yield [(f"{text}… {len(table) - len(shown)} more", "faint")]


def _fitting(name: str, room: int) -> str:
    """A step's name, without what the names of its nodes begin with where there is no room for that."""
    return name if len(name) <= room else re.sub(r"[^\s>+]+/(?=[^\s/]+)", "…/", name)


# JSON


def form(model: str, feeds: Mapping[str, Value], report: Report) -> dict[str, Any]:
    """Everything as an object that `jsonform.document` takes; times in seconds, memory in bytes."""
    ours = report.engines[0]
    content: dict[str, Any] = {
        "model": model,
        "inputs": [{"name": name, "type": str(_type_of(value))} for name, value in feeds.items()],
        "threads": report.setting.threads,
        "fast_math": report.setting.fast_math,
        "machine": {**facts(), "others": report.others},
        "engines": [_engine_form(ours, measured) for measured in report.engines],
    }
    if report.profile is not None:
        content["profile"] = _profile_form(report.profile)
    return content


def _engine_form(ours: Measured, measured: Measured) -> dict[str, Any]:
    start, cold = measured.start, measured.cold
    content: dict[str, Any] = {"engine": measured.engine, "failure": measured.failure or None}
    if start is not None:
        content |= {
            "version": start.version,
            "import": start.imports,
            "load": start.load,
            "compile": start.compile,
            "first_run": start.first_run,
        }
    if measured.turns:
        content |= {
            "runs": len(measured.runs),
            "fastest": measured.percentile(0),
            "median": measured.percentile(50),
            "percentile_90": measured.percentile(90),
            "percentile_99": measured.percentile(99),
            "slowest": measured.percentile(100),
            "throughput": throughput(measured),
            "turns": [median(turn) for turn in measured.turns],
        }
    content["peak_memory"] = measured.peak_memory
    content["cold"] = {"seconds": cold.seconds, "peak_memory": cold.peak_memory}
    if measured is not ours:
        content["ratio"] = _ratio_form(Ratio.warm(ours, measured))
        content["cold_ratio"] = _ratio_form(Ratio.cold(ours, measured))
        content["outputs"] = [_difference_form(difference) for difference in measured.differences]
    return content


def _ratio_form(ratio: Ratio | None) -> dict[str, float] | None:
    return None if ratio is None else {"median": ratio.median, "lowest": ratio.low, "highest": ratio.high}


def _difference_form(difference: Difference) -> dict[str, Any]:
    return {
        "name": difference.name,
        "largest_difference": float_form(difference.largest),
        "largest_element": float_form(difference.scale),
        "unlike": difference.unlike,
        "elements": difference.of,
        "reason": difference.reason or None,
    }


def _profile_form(profile: ProfileReport) -> dict[str, Any]:
    def table(entries: Iterable[Share], key: str) -> list[dict[str, Any]]:
        return [{key: share.name, "seconds": share.seconds, "calls": share.calls} for share in entries]

    return {
        "runs": profile.runs,
        "seconds": profile.seconds / profile.runs,
        "between_steps": seconds_between(profile),
        "operators": table(shares(profile, by_operator=True), "operator"),
        "nodes": table(shares(profile, by_operator=False), "node"),
    }
