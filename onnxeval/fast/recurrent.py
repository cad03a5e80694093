"""DynamicQuantizeLSTM with constant weights and the usual activations, all steps in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32, known_float32
from onnxeval.fast.engine import native
from onnxeval.fast.integers import PackedIntegers
from onnxeval.ops.contrib.dynamic_quantize_lstm import dynamic_quantize_lstm
from onnxeval.registry import Kernel

_BACKWARDS = {"forward": b"\0", "reverse": b"\1", "bidirectional": b"\0\1"}
_USUAL = ("Sigmoid", "Tanh", "Tanh")


@replaces(dynamic_quantize_lstm)
def bind_dynamic_quantize_lstm(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """DynamicQuantizeLSTM: what is quantized at each step meets the weights as integers."""
    kernels = native()
    assert kernels is not None
    weights, recurrence = constants[1:3]
    if weights is None or recurrence is None:
        return None
    backwards = _backwards(attributes, weights, recurrence)
    features = weights.shape[1] if weights.ndim == 3 else 0
    directions, hidden, width = recurrence.shape if recurrence.ndim == 3 else (0, 0, 1)
    if backwards is None or weights.shape[::2] != (directions, width) or width != 4 * hidden:
        return None
    into, into_scale = _quantized(weights, constants[8], constants[9])
    across, across_scale = _quantized(recurrence, constants[10], constants[11])
    if into is None or across is None:
        return None

    @replayable
    def stepped(x: Tensor, w: Tensor, r: Tensor, *rest: Any, **given: Any) -> Any:
        bias, lengths, initial_h, initial_c, peepholes = rest[:5]
        fits = is_float32(x) and x.ndim == 3 and x.shape[2] == features and x.size
        if not fits or lengths is not None or peepholes is not None:
            return dynamic_quantize_lstm(x, w, r, *rest, **given)
        steps, batch, _ = x.shape
        shape = (directions, batch, hidden)
        for value, expected in ((bias, (directions, 8 * hidden)), (initial_h, shape), (initial_c, shape)):
            if value is not None and not (is_float32(value) and value.shape == expected):
                return dynamic_quantize_lstm(x, w, r, *rest, **given)
        starts = [None if value is None else contiguous(value) for value in (bias, initial_h, initial_c)]
        outputs = empty((steps, directions, batch, hidden), np.float32)
        last = empty(shape, np.float32), empty(shape, np.float32)
        kernels.quantized_lstm(x, into, across, into_scale, across_scale, *starts, outputs, *last, backwards)
        return outputs, *last

    return stepped


def _backwards(attributes: Mapping[str, Any], weights: Tensor, recurrence: Tensor) -> bytes | None:
    """Which directions go backwards; None where the node asks for anything else than the compiled steps do."""
    backwards = _BACKWARDS.get(attributes.get("direction") or "forward")
    activations = attributes.get("activations")
    if backwards is None or weights.ndim != 3 or recurrence.ndim != 3 or not (weights.size and recurrence.size):
        return None
    if len(weights) != len(backwards) or len(recurrence) != len(backwards):
        return None
    usual = activations is None or tuple(activations) == _USUAL * len(backwards)
    plain = not (attributes.get("clip") or attributes.get("input_forget") or attributes.get("layout"))
    own = attributes.get("activation_alpha") or attributes.get("activation_beta")
    hidden = attributes.get("hidden_size")
    fits = hidden is None or hidden in recurrence.shape[1:]
    return backwards if usual and plain and not own and fits else None


def _quantized(matrices: Tensor, scale: Tensor | None, zero_point: Tensor | None) -> tuple[Any, Any]:
    """The packed matrix of each direction, and the scale of each of its columns; (None, None) where they do not fit."""
    shapes = (matrices.shape[:1], matrices.shape[::2])
    if scale is None or zero_point is None or not known_float32(scale):
        return None, None
    if scale.shape not in shapes or zero_point.shape not in shapes:
        return None, None
    packed = tuple(PackedIntegers(each, zero).matrix for each, zero in zip(matrices, zero_point, strict=True))
    if any(each is None for each in packed):
        return None, None
    scales = np.broadcast_to(scale.reshape(len(matrices), -1), matrices.shape[::2])
    return packed, np.ascontiguousarray(scales, np.float32)
