"""Rules on inputs that are lists: a number for each axis, or for each part."""

from __future__ import annotations

from collections.abc import Iterator

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.shapes import clash, shape_of
from onnxeval.checks.types import Typed
from onnxeval.values import shape_text

#: Operators, and the inputs that hold so many numbers for each axis.
_PER_AXIS = {
    "CenterCropPad": {"shape": 1},
    "Pad": {"pads": 2},
    "Resize": {"scales": 1, "sizes": 1},
    "Upsample": {"scales": 1},
}


@rule("shape/list-length", "error", Typed, *_PER_AXIS)
def list_length(typed: Typed) -> Faults:
    """A list with a number for each axis, or two, has another length: the `scales` of a Resize, the `pads` of a Pad.

    Why: it says nothing of some axes, or too much.

    Mend: write a number for each axis of the input, batch and channels included, or for each of `axes`, where given.

    Example:
        g (float[1, 1, 2, 2] x) => (float[1, 1, N, M] y) <float[2] scales = {2, 2}> { y = Resize(x, "", scales) }

    Instead:
        g (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <float[2] scales = {2, 2}> {
            y = Resize<axes = [2, 3]>(x, "", scales)
        }
    """
    if (axes := _axes(typed)) is None:
        return
    for name, length, each in _lengths(typed):
        if length not in (0, each * axes):
            what = f"{typed.schema.label} of {axes} ax{'i' if axes == 1 else 'e'}s takes {each * axes}"
            yield Fault(typed.node.where, f'"{name}" has {length} number{"s" * (length != 1)}, {what}')


def _axes(typed: Typed) -> int | None:
    """How many axes are meant: those that are listed, else all; None where that is not known."""
    if (given := typed.attribute("axes")) is not None:
        return len(given)
    for place, slot, known in typed.known_inputs():
        if slot.name == "axes":
            listed = shape_of(typed, place)
            return listed[0] if known.name and listed and isinstance(listed[0], int) else None
    slots = [slot.name for slot in typed.schema.inputs]
    place = slots.index("axes") if "axes" in slots else len(typed.inputs)
    is_given = place < len(typed.inputs) and typed.node.inputs[place] != ""
    shape = shape_of(typed, 0)
    return None if shape is None or is_given else len(shape)


def _lengths(typed: Typed) -> Iterator[tuple[str, int, int]]:
    """The lists that are given: name, length, and how many numbers belong to each axis."""
    due = _PER_AXIS[typed.operator]
    for place, slot, _ in typed.known_inputs():
        shape = shape_of(typed, place)
        if slot.name in due and shape is not None and len(shape) == 1 and isinstance(shape[0], int):
            yield typed.node.inputs[place], shape[0], due[slot.name]


#: Inputs that are one number, by the names of their slots.
_SCALARS = {
    "Clip": ("min", "max"),
    "CumProd": ("axis",),
    "CumSum": ("axis",),
    "Dropout": ("ratio", "training_mode"),
    "If": ("cond",),
    "Loop": ("M", "cond"),
    "OneHot": ("depth",),
    "Pad": ("constant_value",),
    "Range": ("start", "limit", "delta"),
    "Trilu": ("k",),
}


@rule("shape/scalar", "error", Typed, *_SCALARS)
def scalar(typed: Typed) -> Faults:
    """An input that is one number has more than one, or none: the bounds of a Clip, the condition of an If.

    Why: which of them counts is open. One number in a list passes, most runtimes take it.

    Mend: pick the number with Gather or Squeeze; use Min and Max where each element has a bound of its own.

    Example:
        g (float[2] x, float[2] least) => (float[2] y) { y = Clip(x, least) }

    Instead:
        g (float[2] x, float least) => (float[2] y) { y = Clip(x, least) }
    """
    for place, slot, known in typed.known_inputs():
        if slot.name in _SCALARS[typed.operator] and any(isinstance(n, int) and n != 1 for n in known.shape or ()):
            message = f"it is {known}, {typed.schema.label} takes one number as {slot.name}"
            yield Fault(typed.node.input_where(place), message)


# Numbers of a quantisation

_QUANTISERS = ("QuantizeLinear", "DequantizeLinear")


@rule("shape/scale", "error", Typed, *_QUANTISERS)
def scale(typed: Typed) -> Faults:
    """The scale of a QuantizeLinear or DequantizeLinear does not fit its input, or the zero point its scale.

    Why: there is one scale for all, one for each place of `axis`, or one for each block of `block_size` along it, and a
    zero point for each scale.

    Mend: set `axis` to the axis that was quantised; it is 1 where it is not given. Weights are often quantised along 0.

    Example:
        g (int8[4, 3] w) => (float[4, 3] y) <float[4] s = {1, 1, 1, 1}> { y = DequantizeLinear(w, s) }

    Instead:
        g (int8[4, 3] w) => (float[4, 3] y) <float[4] s = {1, 1, 1, 1}> { y = DequantizeLinear<axis = 0>(w, s) }
    """
    data, given, zero = (shape_of(typed, place) for place in range(3))
    if given is None or typed.schema.key.since_version < 13:
        return
    are_single = zero is not None and {*zero, *given} <= {1}  # one number may stand in a list
    if zero is not None and not are_single and (len(zero) != len(given) or any(map(clash, zero, given))):
        yield Fault(typed.node.where, f"the zero point is {shape_text(zero)}, the scale {shape_text(given)}")
    if data is None or given in ((), (1,)):
        return
    axis, size = typed.attribute("axis"), typed.attribute("block_size") or 0
    if not -len(data) <= axis < len(data):
        yield Fault(typed.node.where, f"axis {axis} is none of {shape_text(data)}, the scale is {shape_text(given)}")
    elif size > 0:
        along = data[axis]
        due = (*data[: axis % len(data)], -(-along // size) if isinstance(along, int) else None)
        due += data[axis % len(data) + 1 :]
        if len(given) != len(due) or any(map(clash, given, due)):
            message = f"the scale is {shape_text(given)}, blocks of {size} along axis {axis} of {shape_text(data)}"
            yield Fault(typed.node.where, f"{message} take {shape_text(due)}")
    elif len(given) != 1:
        message = f"the scale is {shape_text(given)}, it may have one axis, or blocks by block_size"
        yield Fault(typed.node.where, message)
    elif clash(given[0], data[axis]):
        message = f"the scale is {shape_text(given)}, axis {axis} of {shape_text(data)} has {data[axis]} places"
        yield Fault(typed.node.where, message)
