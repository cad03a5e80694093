"""Movements whose parameters and shapes are known do with one call of NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from onnxeval.dtypes import Tensor
from onnxeval.fast.engine import native
from onnxeval.fast.reshaping import reshaping
from onnxeval.passes._rewrite import op_type
from onnxeval.passes.merge_movements import RESHAPING
from onnxeval.plan import Step
from onnxeval.registry import Kernel
from onnxeval.values import TensorType


def bound_movement(step: Step, constants: Mapping[str, Tensor], types: Mapping[str, TensorType]) -> Kernel | None:
    """What does the same for inputs of these types; None for steps that are no such movement."""
    if op_type(step) == "Split":
        return _split(step, types)
    source, result = types.get(step.inputs[0] if step.inputs else ""), types.get(step.outputs[0])
    if source is None or result is None or source.shape is None or result.shape is None or len(step.outputs) != 1:
        return None
    match op_type(step):
        case operator if operator in RESHAPING:
            return _reshape(result.shape)
        case "Slice" if all(name in constants for name in step.inputs[1:] if name):
            return _slice(step, constants, len(source.shape))
        case "Transpose":
            order = step.attributes.get("perm")
            return _movement(lambda x, *_, **__: x.transpose(order))
        case "Identity":
            return _movement(lambda x, *_, **__: x)
        case "Gather" if step.inputs[1] in constants and constants[step.inputs[1]].ndim == 0:
            before = step.attributes["axis"] % len(source.shape)
            return _at((*(slice(None),) * before, int(constants[step.inputs[1]])))
    return None


def is_movement(kernel: Kernel | None) -> bool:
    """Whether a kernel is one of those: it makes a view where there is one, and looks at no element."""
    return bool(getattr(kernel, "is_movement", False))


def _movement(kernel: Kernel) -> Kernel:
    vars(kernel)["is_movement"] = True
    return kernel


def _reshape(shape: tuple[Any, ...]) -> Kernel:
    return _movement((lambda x, *_, **__: x.reshape(shape)) if native() is None else reshaping(shape))


def _at(index: tuple[Any, ...]) -> Kernel:
    # The ellipsis keeps a single element an array
    return _movement(lambda x, *_, **__: x[*index, ...])


def _split(step: Step, types: Mapping[str, TensorType]) -> Kernel | None:
    shapes = [None if (kind := types.get(name)) is None else kind.shape for name in step.outputs]
    axis = step.attributes.get("axis") or 0
    sizes = [size for shape in shapes if shape and isinstance(size := shape[axis], int)]
    if len(sizes) < len(shapes) or not sizes:
        return None
    before = (slice(None),) * (axis % len(shapes[0] or ()))
    ends = [sum(sizes[:place]) for place in range(len(sizes) + 1)]
    places = [(*before, slice(start, end)) for start, end in pairwise(ends)]
    return _movement(lambda x, *_, **__: tuple([x[place] for place in places]))


def _slice(step: Step, constants: Mapping[str, Tensor], rank: int) -> Kernel | None:
    """Where all steps are positive, bounds mean in Python what they mean in ONNX."""
    if len(step.inputs) < 3:  # before opset 10 they are attributes
        return None
    starts, ends = (constants[name].tolist() for name in step.inputs[1:3])
    axes, steps = (constants[name].tolist() if name else None for name in (*step.inputs[3:], "", "")[:2])
    steps = [1] * len(starts) if steps is None else steps
    if min(steps, default=1) < 1:
        return None
    index = [slice(None)] * rank
    for axis, start, end, stride in zip(range(rank) if axes is None else axes, starts, ends, steps, strict=False):
        index[axis] = slice(start, end, stride)
    return _at(tuple(index))
