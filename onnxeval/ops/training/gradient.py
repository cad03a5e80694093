"""Gradient: the derivatives of one tensor with respect to others.

The attributes name a part of the graph around the node, which runs once more from the node's inputs; then the tape it
ran on is followed back. The text does not say what is differentiated where the target holds more than one element: it
is their sum, so that each gradient has the shape of its variable. What the part draws at random it draws anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from onnxeval.dtypes import BFLOAT16, DType, Tensor, name_of
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.training import (  # noqa: F401  # they register their rules
    _control,
    _rules_activation,
    _rules_batch,
    _rules_convolution,
    _rules_elementwise,
    _rules_matrix,
    _rules_movement,
    _rules_normalisation,
    _rules_pooling,
    _rules_recurrent,
    _rules_reduction,
)
from onnxeval.ops.training._algebra import filled
from onnxeval.ops.training._tape import Tape, Variable
from onnxeval.ops.training._trace import Branch, Variables, follower
from onnxeval.registry import op
from onnxeval.values import Value, describe

if TYPE_CHECKING:
    from onnxeval.executor import Body
    from onnxeval.plan import Step

_DOMAIN = "ai.onnx.preview.training"
_FLOATS: tuple[DType, ...] = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))
_TARGETS: tuple[DType, ...] = (*_FLOATS, BFLOAT16)


@op("Gradient", domain=_DOMAIN, versions=(1,))
def gradient(
    *inputs: Value,
    xs: Sequence[str],
    zs: Sequence[str] | None,
    y: str,
    n_outputs: int,
    allocate: Allocate,
    surroundings: Body,
) -> tuple[Tensor, ...]:
    """The gradient of the sum of ``y`` with respect to each of ``xs``, where these and ``zs`` have the given values.

    Zero where ``y`` does not depend on it. Raises ValueError where the inputs are not one for each name, where ``y``
    or one of ``xs`` is no floating-point tensor, and where an operator on the way has no derivative.
    Source: Gradient-1.
    """
    tape = Tape(allocate)
    captured = {name: tape.constant(value) for name, value in surroundings.captured.items()}
    variables = tuple(map(tape.constant, inputs))
    made = _gradients(Branch(tape, surroundings, captured), variables, xs, zs, y, n_outputs, recording=False)
    return tuple(each.value for each in made)


@follower("Gradient")
def _follow_gradient(step: Step, inputs: Variables, branches: Mapping[str, Branch]) -> Variables:
    return _gradients(branches["surroundings"], inputs, recording=True, **step.attributes)


def _gradients(
    surroundings: Branch,
    inputs: Variables,
    xs: Sequence[str],
    zs: Sequence[str] | None,
    y: str,
    n_outputs: int,
    *,
    recording: bool,
) -> Variables:
    names = [*xs, *(zs or ())]
    if len(inputs) != len(names):
        raise ValueError(f"xs and zs name {len(names)} tensors ({', '.join(names)}), the node has {len(inputs)} inputs")
    if len(set(names)) < len(names):
        raise ValueError(f"xs and zs name a tensor twice: {', '.join(names)}")
    if n_outputs > len(xs):
        raise ValueError(f"xs names {len(xs)} tensors, the node lists {n_outputs} outputs")
    for name, given in zip(xs, inputs, strict=False):
        _require(name, given, _FLOATS)
    tape = surroundings.tape
    variables = tuple(map(tape.leaf, inputs[: len(xs)]))
    (target,) = surroundings(*variables, *inputs[len(xs) :])
    _require(y, target, _TARGETS)
    with tape.record_if(recording):
        found = tape.pull([(target, filled(target, 1))], variables[:n_outputs])
        return tuple(filled(x, 0) if g is None else g for x, g in zip(variables, found, strict=False))


def _require(name: str, given: Variable, allowed: tuple[DType, ...]) -> None:
    if getattr(given.value, "dtype", None) not in allowed:
        names = " or ".join(map(name_of, allowed))
        raise ValueError(f'"{name}" is {describe(given.value)}, expected a tensor of {names}')
