"""What scales and shifts the channels of Conv, ConvTranspose or Gemm becomes part of their weights and bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast.parts import normalises_channels
from onnxeval.passes._rewrite import Known, count_readers, op_type, rebuilt
from onnxeval.plan import Plan, Step


class _Scaled(NamedTuple):
    """A step, and what the others after it do to its output: times ``factor``, plus ``shift``.

    Both are float64, one number a channel.
    """

    step: Step
    others: tuple[Step, ...]
    factor: Tensor
    shift: Tensor


#: A factor that float32 has much room beyond.
_LARGE = 2.0**100


def fold_affine(plan: Plan, _: Known) -> Plan:
    """The plan in which y = factor * conv(x) + shift is one convolution.

    BatchNormalization in inference, Mul, Div, Add and Sub by constants of the channels or of one element, where nothing
    else reads the convolution's output and all parameters are constant float32 or float64. The new parameters are
    computed in float64.
    """
    readers = count_readers(plan)
    found: dict[str, _Scaled] = {}  # by the name of the output so far
    for step in plan.steps:
        if op_type(step) in _CHANNELS and _is_linear(step, plan.constants):
            channels = _CHANNELS[op_type(step)](step, plan.constants)
            found[step.outputs[0]] = _Scaled(step, (), np.ones(channels), np.zeros(channels))
            continue
        if not found:
            continue
        source = next((name for name in step.inputs[:2] if name in found and readers[name] == 1), None)
        affine = _affine(step, found[source], plan.constants) if source is not None else None
        followed = None if source is None or affine is None else _followed(found[source], step, *affine)
        if source is not None and followed is not None and _is_moderate(followed.factor):
            found[step.outputs[0]] = followed
            del found[source]
    constants = dict(plan.constants)
    merged: dict[int, Step | None] = {}  # by the step whose place it takes; None for those that are a part of it
    for scaled in found.values():
        whole = _merged(scaled, constants) if scaled.others else None
        if whole is not None:
            merged.update({id(part): None for part in (scaled.step, *scaled.others)})
            merged[id(scaled.others[-1])] = whole
    if not merged:
        return plan
    steps = [merged.get(id(step), step) for step in plan.steps]
    return rebuilt(plan, [step for step in steps if step is not None], constants)


def _followed(scaled: _Scaled, step: Step, factor: Tensor, shift: Tensor) -> _Scaled:
    with np.errstate(all="ignore"):  # what is not finite is found when it is merged
        return _Scaled(scaled.step, (*scaled.others, step), scaled.factor * factor, scaled.shift * factor + shift)


def _is_moderate(factor: Tensor) -> bool:
    """Whether results so far overflow only where they are that large themselves, not by the way."""
    size = np.abs(factor)
    return bool(((size == 0) | ((size > 1 / _LARGE) & (size < _LARGE))).all())


def _merged(scaled: _Scaled, constants: dict[str, Tensor]) -> Step | None:
    """The one step, its weights and bias among the constants; None where they would overflow."""
    step = scaled.step
    parameters = _parameters(scaled, constants)
    if not all(np.isfinite(parameter).all() for parameter in parameters):
        return None
    last = scaled.others[-1]
    names = tuple(f"{last.outputs[0]} {what}" for what in ("weights", "bias"))
    constants.update(zip(names, parameters, strict=True))
    return step._replace(
        label=" + ".join(part.label for part in (step, *scaled.others)),
        inputs=(step.inputs[0], *names),
        outputs=last.outputs[:1],
        attributes={**step.attributes, "beta": 1.0} if "beta" in step.attributes else step.attributes,
    )


def _is_linear(step: Step, constants: Mapping[str, Tensor]) -> bool:
    """Whether weights and bias are constants of one floating type, the bias a number a channel."""
    parameters = [constants.get(name) for name in step.inputs[1:] if name]
    if not parameters or any(p is None for p in parameters) or not step.inputs[1]:
        return False
    weights, *bias = [p for p in parameters if p is not None]
    if weights.dtype not in (np.float32, np.float64) or any(p.dtype != weights.dtype for p in bias):
        return False
    group = step.attributes.get("group", 1)
    if weights.ndim < 2 or (weights.ndim > 2 and op_type(step) == "Gemm"):  # wrong, which is said when it runs
        return False
    if not weights.size or group < 1 or len(weights) % group:  # mostly wrong as well
        return False
    channels = _CHANNELS[op_type(step)](step, constants)
    return all(p.size in (1, channels) and p.shape[-1:] == (p.size,) for p in bias if p.ndim)


def _conv_channels(step: Step, constants: Mapping[str, Tensor]) -> int:
    return len(constants[step.inputs[1]])


def _transposed_channels(step: Step, constants: Mapping[str, Tensor]) -> int:
    return int(constants[step.inputs[1]].shape[1] * step.attributes["group"])


def _gemm_channels(step: Step, constants: Mapping[str, Tensor]) -> int:
    return int(constants[step.inputs[1]].shape[0 if step.attributes["transB"] else 1])


#: Operators with weights -> how many channels their output has.
_CHANNELS = {"Conv": _conv_channels, "ConvTranspose": _transposed_channels, "Gemm": _gemm_channels}


def _affine(step: Step, scaled: _Scaled, constants: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
    """The factor and the shift that a step is for each channel; None where it is neither."""
    weights = constants[scaled.step.inputs[1]]
    op = op_type(step)
    if op == "BatchNormalization":
        return _normalisation(step, scaled, weights, constants)
    if op not in ("Add", "Sub", "Mul", "Div") or step.schema is None or step.schema.key.since_version < 7:
        return None
    place = 0 if step.inputs[1] in constants else 1
    if place == 1 and op in ("Sub", "Div"):
        return None
    other = constants.get(step.inputs[1 - place])
    rank = 2 if op_type(scaled.step) == "Gemm" else weights.ndim
    if other is None or other.dtype != weights.dtype or other.ndim > rank:
        return None
    shape = (1,) * (rank - other.ndim) + other.shape
    if shape not in ((1,) * rank, (1, len(scaled.factor), *(1,) * (rank - 2))):
        return None
    number = np.broadcast_to(other.astype(np.float64).ravel(), scaled.factor.shape)
    with np.errstate(all="ignore"):
        match op:
            case "Add":
                return np.ones(1), number
            case "Sub":
                return np.ones(1), -number
            case "Mul":
                return number, np.zeros(1)
            case _:
                return 1 / number, np.zeros(1)


def _normalisation(
    step: Step, scaled: _Scaled, weights: Tensor, constants: Mapping[str, Tensor]
) -> tuple[Tensor, Tensor] | None:
    if any(step.outputs[1:]) or not normalises_channels(step.attributes):
        return None
    parameters = [constants.get(name) for name in step.inputs[1:5]]
    given = [p for p in parameters if p is not None and p.dtype == weights.dtype and p.shape == scaled.factor.shape]
    if len(given) != 4:
        return None
    scale, shift, mean, variance = (p.astype(np.float64) for p in given)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + step.attributes["epsilon"])
        return factor, shift - mean * factor


def _parameters(scaled: _Scaled, constants: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The weights and the bias of a step and what follows it, in one."""
    step, factor = scaled.step, scaled.factor
    weights = constants[step.inputs[1]]
    bias = constants[step.inputs[2]].astype(np.float64) if any(step.inputs[2:3]) else np.zeros(1)
    with np.errstate(all="ignore"):
        match op_type(step):
            case "Gemm":
                bias = bias.ravel() * step.attributes["beta"]
                new = _times(weights, factor[:, None] if step.attributes["transB"] else factor)
            case "Conv":
                new = _times(weights, factor.reshape(-1, *(1,) * (weights.ndim - 1)))
            case _:
                group = step.attributes["group"]
                by_group = weights.reshape(group, -1, *weights.shape[1:])
                new = _times(by_group, factor.reshape(group, 1, -1, *(1,) * (weights.ndim - 2)))
        return new.reshape(weights.shape), (bias * factor + scaled.shift).astype(weights.dtype)


def _times(weights: Tensor, factor: Tensor) -> Tensor:
    """The product in float64, rounded to the weights' type; never all of it in float64, which would take memory."""
    return np.multiply(weights, factor, out=np.empty_like(weights), dtype=np.float64, casting="same_kind")
