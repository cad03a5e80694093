"""BatchNormalization after Conv becomes part of the convolution's weights and bias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.passes._rewrite import Evaluate, count_readers, op_type, producers_of, rebuilt
from onnxeval.plan import Plan, Step


def fold_batch_norm(plan: Plan, _: Evaluate) -> Plan:
    """The plan in which y = scale * (conv(x) - mean) / sqrt(var + epsilon) + B is one convolution.

    Only in inference, with constant float32 or float64 parameters, where nothing else reads the convolution's
    output. The new parameters are computed in float64.
    """
    readers = count_readers(plan)
    producers = producers_of(plan.steps)
    constants = dict(plan.constants)
    merged: dict[str, Step] = {}  # label of the convolution or of the normalisation -> what takes its place
    gone: set[int] = set()
    for step in plan.steps:
        conv = producers.get(step.inputs[0]) if op_type(step) == "BatchNormalization" else None
        if conv is None or op_type(conv) != "Conv" or readers[step.inputs[0]] != 1:
            continue
        parameters = _parameters(conv, step, constants)
        if parameters is None:
            continue
        names = tuple(f"{conv.outputs[0]} {what} with {step.label}" for what in ("weights", "bias"))
        constants.update(zip(names, parameters, strict=True))
        merged[step.outputs[0]] = replace(
            conv,
            label=f"{conv.label} + {step.label}",
            inputs=(conv.inputs[0], *names),
            outputs=(step.outputs[0],),
        )
        gone.add(id(conv))
    if not merged:
        return plan
    steps = [merged.get(step.outputs[0], step) for step in plan.steps if id(step) not in gone]
    return rebuilt(plan, steps, constants)


def _parameters(conv: Step, norm: Step, constants: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
    """Weights and bias of both steps in one; None where they are not known, or the statistics are the batch's."""
    if any(norm.outputs[1:]) or norm.attributes.get("training_mode") or not norm.attributes.get("is_test", 1):
        return None
    if not norm.attributes.get("spatial", 1):
        return None
    names = (*conv.inputs[1:], *norm.inputs[1:])
    if any(name and name not in constants for name in names) or not conv.inputs[1]:
        return None
    weights, scale, shift, mean, variance = (constants[n] for n in (conv.inputs[1], *norm.inputs[1:5]))
    bias = constants[conv.inputs[2]] if conv.inputs[2] else np.zeros(len(weights), weights.dtype)
    per_channel = (bias, scale, shift, mean, variance)
    if weights.dtype not in (np.float32, np.float64) or any(
        p.dtype != weights.dtype or p.shape != (len(weights),) for p in per_channel
    ):
        return None
    with np.errstate(all="ignore"):
        factor = scale.astype(np.float64) / np.sqrt(variance.astype(np.float64) + norm.attributes["epsilon"])
        new_weights = weights * factor.reshape(-1, *(1,) * (weights.ndim - 1))
        new_bias = (bias.astype(np.float64) - mean) * factor + shift
    if not (np.isfinite(new_weights).all() and np.isfinite(new_bias).all()):
        return None
    return new_weights.astype(weights.dtype), new_bias.astype(weights.dtype)
