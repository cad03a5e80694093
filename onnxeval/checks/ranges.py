"""Rules on attributes that onnx's inference takes for sound: beyond these it leaves its own lists, or never ends.

What they find never reaches it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.types import Typed

#: The attribute, its least and its greatest value, and why; None where that is not known.
Bounds: TypeAlias = tuple[str, int, int, str] | None


def _rank(typed: Typed, place: int) -> int | None:
    shape = typed.inputs[place].shape if place < len(typed.inputs) else None
    return None if shape is None else len(shape)


def _axis(typed: Typed) -> Bounds:
    rank = _rank(typed, 0)
    return None if rank is None else ("axis", -rank, rank - 1, f"the input has rank {rank}")


def _batch_dims(typed: Typed) -> Bounds:
    data, indices = _rank(typed, 0), _rank(typed, 1)
    if data is None or indices is None:
        return None
    return "batch_dims", 0, min(data, indices) - 1, f"the ranks are {data} and {indices}"


def _parts(typed: Typed) -> Bounds:
    count = len(typed.node.outputs)
    return "num_outputs", count, count, f"the node lists {count} outputs"


_BOUNDS: Mapping[str, Callable[[Typed], Bounds]] = {
    "GatherND": _batch_dims,
    "LayerNormalization": _axis,
    "Split": _parts,
}


@rule("shape/attribute-range", "error", Typed)
def attribute_range(typed: Typed) -> Faults:
    """An axis or a number of axes is beyond the rank of the input, or a Split makes other parts than it has outputs."""
    domain, op_type, _ = typed.schema.key
    bounds = _BOUNDS[op_type](typed) if domain == "" and op_type in _BOUNDS else None
    if bounds is None:
        return
    name, least, most, why = bounds
    value = typed.attribute(name)
    if isinstance(value, int) and not least <= value <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        yield Fault(typed.node.where, f"{name} is {value}, {why}: it must be {wanted}")


_TERM = r"[A-Za-z]*(\.\.\.[A-Za-z]*)?"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")


@rule("shape/equation", "error", Typed)
def equation(typed: Typed) -> Faults:
    """The equation of an Einsum holds something else than letters, commas, ellipses and an arrow."""
    if typed.schema.key[:2] == ("", "Einsum"):
        text = str(typed.attribute("equation"))
        if not _EQUATION.fullmatch(text.replace(" ", "")):
            yield Fault(
                typed.node.where,
                f"the equation {text!r} is not made of terms of letters, each with at most one ellipsis",
            )
