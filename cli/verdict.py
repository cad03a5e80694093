"""`--expect`: what a run has to give, the tolerances, which `--vs` has too, and the verdict as lines and as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from onnxeval.errors import InputError

from .options import FILE
from .screen import Line

if TYPE_CHECKING:
    from onnxeval.comparing import Comparison, Tolerance
    from onnxeval.files import Reading
    from onnxeval.files.source import Source
    from onnxeval.values import Value, ValueType

_META = "onnxeval.expect"
#: The exit code where something else came out.
DIFFERS = 1


def expect_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options, not handed on: `Expectations` knows them."""
    for option in (
        click.option(
            "--max-ulp",
            type=click.IntRange(min=0),
            metavar="N",
            callback=_keep,
            expose_value=False,
            help="Let floats be so many representable numbers away, instead of the default tolerances.",
        ),
        click.option(
            "--atol",
            "atol",
            metavar="[NAME:]X",
            multiple=True,
            callback=_keep_tolerance,
            expose_value=False,
            help="The absolute tolerance, of one value or of all.  [default: 1e-7 for floats, 0 for integers]",
        ),
        click.option(
            "--rtol",
            "rtol",
            metavar="[NAME:]X",
            multiple=True,
            callback=_keep_tolerance,
            expose_value=False,
            help="The relative tolerance, of one value or of all.  [default: 1e-3 for floats, 0 for integers]",
        ),
        click.option(
            "--expect",
            "expect",
            type=FILE,
            metavar="[NAME=]VALUE",
            multiple=True,
            callback=_keep,
            expose_value=False,
            help="What an output has to be, or a file of several: exit code 1 where it is not. Repeatable.",
        ),
    ):
        command = option(command)
    return command


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    ctx.meta.setdefault(_META, {})[str(parameter.name)] = value


def _keep_tolerance(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> None:
    tolerances: dict[str, float] = {}
    for value in values:
        name, _, text = value.rpartition(":")
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not number >= 0:
            raise click.BadParameter(f"{value!r} is not [NAME:]X with a number X that is not negative.")
        tolerances[name] = number
    _keep(ctx, parameter, tolerances)


class _Named(NamedTuple):
    name: str
    type: ValueType | None
    optional: bool = False


class Tolerances:
    """What `--rtol`, `--atol` and `--max-ulp` say, of one value or of all."""

    def __init__(self, ctx: click.Context) -> None:
        options = ctx.meta.get(_META, {})
        self._rtol, self._atol = options.get("rtol", {}), options.get("atol", {})
        self._ulp: int | None = options.get("max_ulp")

    def refuse_others(self, names: Sequence[str]) -> None:
        """Raise a UsageError for tolerances where nothing is compared, an InputError for one of no value compared."""
        if not names and (self._rtol or self._atol or self._ulp is not None):
            raise click.UsageError("--rtol, --atol and --max-ulp are for what is compared, as by --expect: nothing is.")
        for name in (*self._rtol, *self._atol):
            if name and name not in names:
                from .feeds import did_you_mean

                hint = did_you_mean(name, names, "output")
                raise InputError(f"a tolerance for {name!r}, which is not compared", hint=hint)

    def of(self, name: str) -> Tolerance:
        """That of one value."""
        from onnxeval.comparing import Tolerance

        rtol, atol = (given.get(name, given.get("")) for given in (self._rtol, self._atol))
        return Tolerance(rtol, atol, self._ulp)


class Expectations:
    """What `--expect` names, opened before the model runs and read after, as the types that came out."""

    def __init__(
        self,
        ctx: click.Context,
        known: Sequence[str],
        types: Mapping[str, ValueType | None],
        reading: Reading,
        tolerances: Tolerances,
    ) -> None:
        from .feeds import open_sources

        options = ctx.meta.get(_META, {})
        self._types = types
        # bare values are for the model's outputs, but anything inside may be named
        ordered = dict.fromkeys([*types, *known])
        declared = [_Named(name, types.get(name), optional=name not in types) for name in ordered]
        self._sources: dict[str, Source] = open_sources(options.get("expect", ()), declared, reading, "output")
        self._tolerances = tolerances

    @property
    def names(self) -> list[str]:
        return list(self._sources)

    def verdict(self, results: Mapping[str, Value]) -> list[Comparison]:
        """Each expected value against the result."""
        if not self._sources:
            return []
        from onnxeval.comparing import compare
        from onnxeval.values import type_of

        comparisons = []
        for name, source in self._sources.items():
            value = results[name]
            wanted = self._types.get(name) if value is None else type_of(value)
            comparisons.append(compare(name, value, source.read(name, wanted), self._tolerances.of(name)))
        return comparisons


def verdict_lines(comparisons: Sequence[Comparison]) -> Iterator[Line]:
    """A line for each output, and the worst places of those that differ."""
    for comparison in comparisons:
        if comparison.reason:
            yield [(comparison.name, "name"), ("  differs", "error"), (f"  {comparison.reason}", "")]
            continue
        verdict, style = ("agrees", "good") if comparison.agrees else ("differs", "error")
        found = metrics(comparison)
        yield [(comparison.name, "name"), (f"  {verdict}", style), (f"  {found}" if found else "", "")]
        yield from worst_lines(comparison, "expected")


def worst_lines(comparison: Comparison, other: str) -> Iterator[Line]:
    """The worst places: what is there, and what the other has, which is called ``other``."""
    from .digits import short

    rows = [(e.place, _text(e.value, short), _text(e.expected, short)) for e in comparison.worst]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for place, value, expected in rows:
        yield [
            (f"  {place.ljust(widths[0])}  ", "faint"),
            (f"{value.rjust(widths[1])}, {other} {expected.rjust(widths[2])}", ""),
        ]


def _text(element: Any, short: Callable[[Any], str]) -> str:
    return (
        repr(element)
        if isinstance(element, str)
        else f"{element:.9g}"
        if isinstance(element, float)
        else short(element)
    )


def share(comparison: Comparison) -> str:
    """How much of a value differs, "" where all agrees."""
    percent = 100 * comparison.mismatching / max(comparison.count, 1)
    return f"{percent:.3g} %" if comparison.mismatching else ""


def metrics(comparison: Comparison) -> str:
    """How far two values lie apart, in numbers."""
    return ", ".join(_metrics(comparison))


def _metrics(comparison: Comparison) -> Iterator[str]:
    if comparison.mismatching:
        yield f"in {comparison.mismatching} of {comparison.count} elements ({share(comparison)})"
    if comparison.max_abs is not None:
        yield f"max abs {comparison.max_abs:.3g}"
    if comparison.max_rel is not None:
        yield f"max rel {comparison.max_rel:.3g}"
    if comparison.max_ulp is not None:
        yield f"max ulp {comparison.max_ulp}"
    if comparison.cosine is not None:
        yield f"cosine {comparison.cosine:.9g}"
    if comparison.snr is not None:
        yield "SNR infinite" if math.isinf(comparison.snr) else f"SNR {comparison.snr:.3g} dB"


def verdict_form(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The verdict for JSON."""
    return {"agrees": all(c.agrees for c in comparisons), "outputs": [comparison_form(c) for c in comparisons]}


def comparison_form(comparison: Comparison) -> dict[str, Any]:
    """One value's verdict for JSON."""
    from onnxeval.files.jsonform import float_form

    if comparison.reason:
        return {"name": comparison.name, "agrees": False, "reason": comparison.reason}
    form: dict[str, Any] = {"name": comparison.name, "agrees": comparison.agrees}
    form |= {"elements": comparison.count, "mismatching": comparison.mismatching}
    for key in ("max_abs", "max_rel", "cosine", "snr"):
        number = getattr(comparison, key)
        form[key] = None if number is None else float_form(number)
    form["max_ulp"] = comparison.max_ulp
    form["worst"] = [
        {"place": e.place, "value": _plain(e.value), "expected": _plain(e.expected)} for e in comparison.worst
    ]
    return form


def _plain(element: Any) -> Any:
    from onnxeval.files.jsonform import float_form

    if isinstance(element, complex):
        return [float_form(element.real), float_form(element.imag)]
    return float_form(element) if isinstance(element, float) else element
