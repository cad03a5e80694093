"""Rules on attributes against the rank of what flows into the node: axes, and lists with a number for each axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxeval.checks.known import ABSENT
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.types import Typed
from onnxeval.values import shape_text

#: Operators whose axis, or axes, are those of their first input: -r to r - 1. Others have ranges of their own.
_OF_FIRST_INPUT = (
    "ArgMax ArgMin CenterCropPad Compress Concat CumProd CumSum Gather GatherElements Hardmax "
    "LayerNormalization LogSoftmax LpNormalization MeanVarianceNormalization Pad RMSNormalization ReduceL1 "
    "ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare Resize Scatter ScatterElements Slice Softmax Split SplitToSequence Squeeze TopK Unique"
)
#: Operators whose text says that no axis may come twice.
_ONCE = ("CenterCropPad", "Pad", "Slice", "Unsqueeze")


def _axes(typed: Typed) -> Iterator[tuple[str, list[int]]]:
    """The axes that are given and known, each list with the name of its attribute or input."""
    for name in ("axis", "axes"):
        if any(attribute.name == name for attribute in typed.proto.attribute):
            value = typed.attribute(name)
            yield name, [value] if isinstance(value, int) else list(value)
    for place, slot, _ in typed.known_inputs():
        array = typed.elements(place)
        if slot.name in ("axis", "axes") and array is not None and array.ndim < 2:
            yield f"{typed.node.inputs[place]}", array.ravel().tolist()


@rule("value/axis", "error", Typed, *dict.fromkeys((*_OF_FIRST_INPUT.split(), *_ONCE)))
def axis_out_of_range(typed: Typed) -> Faults:
    """An axis lies outside the rank of the input, or is named twice where the text forbids that.

    Why: there is no such axis.

    Mend: count from 0 to rank - 1, or from the back: -rank to -1.

    Example:
        g (float[2, 3] x) => (float[2, 3] y) { y = Softmax<axis = 2>(x) }

    Instead:
        g (float[2, 3] x) => (float[2, 3] y) { y = Softmax<axis = 1>(x) }
    """
    op_type, shape = typed.operator, typed.inputs[0].shape if typed.inputs else None
    if shape is None:
        return
    for name, axes in _axes(typed):
        rank = len(shape) + (len(axes) if op_type == "Unsqueeze" else 0)
        where = f"{typed.schema.label} of {shape_text(shape)}"
        if wrong := [axis for axis in axes if not -rank <= axis < rank]:
            takes = f"{-rank} to {rank - 1}" if rank else "none"
            yield Fault(typed.node.where, f'"{name}" is {wrong[0]}, {where} takes {takes}')
        elif op_type in _ONCE and len({axis % rank for axis in axes}) < len(axes):
            yield Fault(typed.node.where, f'"{name}" is {axes}: {where} takes each axis once')


#: Lists that have a number for each spatial axis, or this many.
_PER_AXIS = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 2, "output_padding": 1}
_WINDOWED = "AveragePool Conv ConvInteger ConvTranspose DeformConv LpPool MaxPool MaxUnpool QLinearConv"


@rule("value/length", "error", Typed, "Transpose", *_WINDOWED.split())
def wrong_length(typed: Typed) -> Faults:
    """A list has another length than the rank of the input asks for: `kernel_shape`, `strides`, `pads`, `perm`.

    Why: it says nothing of some axes, or too much. A window has a number for each axis but the first two, `pads` have
    two: first all beginnings, then all ends.

    Mend: write a number for each axis.

    Example:
        g (float[1, 1, 5, 5] x) => (float[1, 1, 4, 4] y) { y = MaxPool<kernel_shape = [2]>(x) }

    Instead:
        g (float[1, 1, 5, 5] x) => (float[1, 1, 4, 4] y) { y = MaxPool<kernel_shape = [2, 2]>(x) }
    """
    shape = typed.inputs[0].shape if typed.inputs else None
    if shape is None:
        return
    for name, given, wanted in _lengths(typed, len(shape)):
        if len(given) != wanted:
            message = f'"{name}" is {list(given)}, an input of shape {shape_text(shape)} takes {wanted} numbers'
            yield Fault(typed.node.where, message)


def _lengths(typed: Typed, rank: int) -> Iterator[tuple[str, Any, int]]:
    """Name, value and due length of the lists that are given."""
    due = {"perm": rank} if typed.operator == "Transpose" else {}
    if not due and rank > 2:
        due = {name: each * (rank - 2) for name, each in _PER_AXIS.items()}
    for attribute in typed.proto.attribute:
        if attribute.name in due and isinstance(value := typed.attribute(attribute.name), tuple):
            yield attribute.name, value, due[attribute.name]


@rule("value/batch-dims", "error", Typed, "GatherND")
def batch_dims(typed: Typed) -> Faults:
    """The `batch_dims` of a GatherND are not below the ranks of both inputs.

    Why: so many leading axes are shared, and at least one must be left in each.

    Mend: write 0, or as many as there are batch axes.

    Example:
        g (float[2, 3] x, int64[2, 1] i) => (float[N, M] y) { y = GatherND<batch_dims = 2>(x, i) }

    Instead:
        g (float[2, 3] x, int64[2, 1] i) => (float[2] y) { y = GatherND<batch_dims = 1>(x, i) }
    """
    shapes = [known.shape for known in typed.inputs]
    if None in shapes:
        return
    given, ranks = typed.attribute("batch_dims"), [len(shape) for shape in shapes if shape is not None]
    if given is not None and given >= min(ranks):
        yield Fault(typed.node.where, f"batch_dims is {given}, the ranks are {' and '.join(map(str, ranks))}")


@rule("value/output-padding", "error", Typed, "ConvTranspose")
def output_padding(typed: Typed) -> Faults:
    """The `output_padding` of a ConvTranspose is not below the stride, or the dilation, of its axis.

    Why: it chooses among the sizes that a convolution of this stride takes for one; there are no more of them.

    Mend: write a smaller number, or the stride that was meant.

    Example:
        g (float[1, 1, 3] x, float[1, 1, 2] w) => (float[1, 1, N] y) { y = ConvTranspose<output_padding = [1]>(x, w) }

    Instead:
        g (float[1, 1, 3] x, float[1, 1, 2] w) => (float[1, 1, 7] y) {
            y = ConvTranspose<output_padding = [1], strides = [2]>(x, w)
        }
    """
    given = typed.attribute("output_padding") or ()
    strides, dilations = (typed.attribute(name) or (1,) * len(given) for name in ("strides", "dilations"))
    for axis, (more, *steps) in enumerate(zip(given, strides, dilations, strict=False)):
        if more >= max(steps):
            message = f"output_padding is {list(given)}, along axis {axis + 2} the stride is {steps[0]}"
            yield Fault(typed.node.where, f"{message}, the dilation {steps[1]}")


@rule("value/parts", "error", Typed, "Split")
def parts(typed: Typed) -> Faults:
    """A Split does not say in one way how many parts it makes, or not as many as it has outputs.

    Why: since opset 18 either the input `split` or the attribute `num_outputs` says it; each part is one output.

    Mend: give one of the two, and list an output for each part.

    Example:
        g (float[4] x) => (float[2] y, float[2] z) { y, z = Split<num_outputs = 3>(x) }

    Instead:
        g (float[4] x) => (float[2] y, float[2] z) { y, z = Split<num_outputs = 2>(x) }
    """
    if "num_outputs" not in typed.schema.attributes:
        return
    given, listed = typed.attribute("num_outputs"), len(typed.node.outputs)
    is_cut = len(typed.node.inputs) > 1 and typed.inputs[1] is not ABSENT
    if given is not None and is_cut:
        yield Fault(typed.node.where, f"num_outputs is {given}, and the input split is given", "one of the two says it")
    elif given is None and not is_cut:
        message = "neither the input split nor the attribute num_outputs is given"
        yield Fault(typed.node.where, message, f"num_outputs = {listed} cuts into parts of one size")
    elif given is not None and given != listed:
        yield Fault(typed.node.where, f"num_outputs is {given}, the node has {listed} output{'s' * (listed != 1)}")
