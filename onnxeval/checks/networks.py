"""Rules on the shapes of layers: the weights against the input."""

from __future__ import annotations

from collections.abc import Iterator

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.shapes import Shape, clash, shape_of
from onnxeval.checks.types import Typed
from onnxeval.values import Dimension, shape_text

#: Convolutions: the places of X, W and B among their inputs.
_CONVOLUTIONS = {"Conv": (0, 1, 2), "ConvInteger": (0, 1, 9), "QLinearConv": (0, 3, 8), "ConvTranspose": (0, 1, 2)}


@rule("shape/conv", "error", Typed, *_CONVOLUTIONS)
def conv(typed: Typed) -> Faults:
    """The weights of a convolution do not fit its input.

    Why: X is `[N, C, ...]`, W `[M, C / group, kernel ...]`, of one rank, M a multiple of group, B `[M]`, and
    `kernel_shape` is W's own. The W of a ConvTranspose is `[C, M / group, kernel ...]`, C a multiple of group.

    Mend: transpose inputs that are stored with channels last, or set `group`.

    Example:
        g (float[1, 4, 5, 5] x, float[2, 3, 1, 1] w) => (float[1, 2, 5, 5] y) { y = Conv(x, w) }

    Instead:
        g (float[1, 4, 5, 5] x, float[2, 2, 1, 1] w) => (float[1, 2, 5, 5] y) { y = Conv<group = 2>(x, w) }
    """
    op_type, group = typed.schema.key.op_type, typed.attribute("group")
    x, w, bias = (shape_of(typed, place) for place in _CONVOLUTIONS[op_type])
    shapes = f"X {'?' if x is None else shape_text(x)}, W {'?' if w is None else shape_text(w)}"
    if x is not None and w is not None and len(x) != len(w):
        yield Fault(typed.node.where, f"{shapes}: the ranks are {len(x)} and {len(w)}")
    elif w is not None and len(w) < 3:
        yield Fault(typed.node.where, f"{shapes}: a {op_type} takes rank 3 or more")
    elif w is not None:
        if why := _channels(op_type, x, w, group):
            yield Fault(typed.node.where, f"{shapes}: {why}")
        kernel = typed.attribute("kernel_shape")
        if kernel is not None and any(map(clash, kernel, w[2:])):
            yield Fault(typed.node.where, f"{shapes}: kernel_shape is {list(kernel)}")
        made = w[0] if op_type != "ConvTranspose" else w[1] * group if isinstance(w[1], int) else None
        if bias is not None and (len(bias) != 1 or clash(bias[0], made)):
            message = f"W {shape_text(w)}, B {shape_text(bias)}: the bias must be one number a channel"
            yield Fault(typed.node.where, message)


def _channels(op_type: str, x: Shape | None, w: Shape, group: int) -> str:
    """Why the channels do not fit, or ""."""
    given = x[1] if x else None
    if op_type == "ConvTranspose":
        if clash(given, w[0]):
            return f"{given} channels, the weights are for {w[0]}"
        return _undivided(w[0], "input", group)
    if isinstance(given, int) and isinstance(w[1], int) and given != w[1] * group:
        return f"{given} channels are not {w[1]} in each of {group} groups"
    return _undivided(w[0], "output", group)


def _undivided(channels: Dimension, what: str, group: int) -> str:
    divides = not isinstance(channels, int) or group < 1 or channels % group == 0
    return "" if divides else f"{channels} {what} channels do not divide into {group} groups"


#: Normalisations: the places of the inputs that hold a number for each channel.
_NORMALISATIONS = {"BatchNormalization": (1, 2, 3, 4), "InstanceNormalization": (1, 2), "GroupNormalization": (1, 2)}


@rule("shape/channels", "error", Typed, *_NORMALISATIONS)
def channels(typed: Typed) -> Faults:
    """The scale, bias, mean or variance of a normalisation has not one number for each channel of the input.

    Why: channels are axis 1 of the input; GroupNormalization also needs them to divide into its groups.

    Mend: transpose an input that is stored with channels last, or take the parameters of the right layer.

    Example:
        g (float[1, 3, 5, 5] x, float[4] s, float[3] b) => (float[1, 3, 5, 5] y) {
            y = InstanceNormalization(x, s, b)
        }

    Instead:
        g (float[1, 3, 5, 5] x, float[3] s, float[3] b) => (float[1, 3, 5, 5] y) {
            y = InstanceNormalization(x, s, b)
        }
    """
    x = shape_of(typed, 0)
    if not x or len(x) < 2 or typed.attribute("spatial") == 0:
        return
    for place in _NORMALISATIONS[typed.schema.key.op_type]:
        given = shape_of(typed, place)
        if given is not None and (len(given) != 1 or clash(given[0], x[1])):
            name = typed.schema.inputs[place].name
            yield Fault(
                typed.node.where, f"{name} is {shape_text(given)}, the input {shape_text(x)} has {x[1]} channels"
            )
    groups = typed.attribute("num_groups")
    if groups and isinstance(x[1], int) and groups > 0 and x[1] % groups:
        yield Fault(typed.node.where, f"{x[1]} channels do not divide into {groups} groups")


#: How many gates each recurrent layer has.
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@rule("shape/recurrent", "error", Typed, *_GATES)
def recurrent(typed: Typed) -> Faults:
    """The weights of an RNN, GRU or LSTM do not fit its input, its directions or its hidden size.

    Why: with D directions and G gates (1, 3, 4), W is `[D, G * hidden_size, input size]`, R `[D, G * hidden_size,
    hidden_size]` and B `[D, 2 * G * hidden_size]`.

    Mend: set `hidden_size` and `direction` to those of the weights; stack the gates in the order of the text.

    Example:
        g (float[4, 2, 3] x, float[1, 8, 3] w, float[1, 8, 3] r) => (float[4, 1, 2, 2] y) {
            y = LSTM<hidden_size = 2>(x, w, r)
        }

    Instead:
        g (float[4, 2, 3] x, float[1, 8, 3] w, float[1, 8, 2] r) => (float[4, 1, 2, 2] y) {
            y = LSTM<hidden_size = 2>(x, w, r)
        }
    """
    if not typed.attribute("hidden_size"):
        return
    gates, hidden = _GATES[typed.schema.key.op_type], typed.attribute("hidden_size")
    directions = 2 if typed.attribute("direction") == "bidirectional" else 1
    x = shape_of(typed, 0)
    features = x[2] if x is not None and len(x) == 3 else None
    wanted: tuple[tuple[int, str, Shape], ...] = (
        (1, "W", (directions, gates * hidden, features)),
        (2, "R", (directions, gates * hidden, hidden)),
        (3, "B", (directions, 2 * gates * hidden)),
    )
    for name, given, due in _given(typed, wanted):
        if len(given) != len(due) or any(map(clash, given, due)):
            yield Fault(
                typed.node.where, f"{name} is {shape_text(given)}, hidden_size {hidden} asks for {shape_text(due)}"
            )


def _given(typed: Typed, wanted: tuple[tuple[int, str, Shape], ...]) -> Iterator[tuple[str, Shape, Shape]]:
    for place, name, due in wanted:
        if (given := shape_of(typed, place)) is not None:
            yield name, given, due
