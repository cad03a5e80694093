"""DynamicQuantizeLSTM: an LSTM whose matrices are quantized beforehand, its input and states as they come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._exact import right_factor
from onnxeval.ops.contrib._eight_bits import EIGHT_BITS, dynamically_quantized
from onnxeval.ops.contrib._rational import rational_sigmoid, rational_tanh
from onnxeval.ops.contrib._typed import FLOAT32, INT32, microsoft_op
from onnxeval.ops.rnn._layer import Cell, Layer, require_shape
from onnxeval.ops.rnn._lstm_cell import lstm_cell
from onnxeval.registry import prepared_by
from onnxeval.values import shape_text

_CURVES = {"sigmoid": rational_sigmoid, "tanh": rational_tanh}


class _Matrices(NamedTuple):
    """The right factors of all products: [directions, features or hidden, 4 * hidden] each."""

    weights: Tensor
    recurrence: Tensor


def _matrices_of(weights: Tensor, recurrence: Tensor, w_zero_point: Tensor, r_zero_point: Tensor) -> _Matrices:
    return _Matrices(
        right_factor(weights, _by_column(w_zero_point, weights, "W_zero_point")),
        right_factor(recurrence, _by_column(r_zero_point, recurrence, "R_zero_point")),
    )


@microsoft_op("DynamicQuantizeLSTM", "FWWFIFFFFWFW", outputs=3, F=(FLOAT32,), W=EIGHT_BITS, I=(INT32,))
@prepared_by(_matrices_of)
def dynamic_quantize_lstm(
    x: Tensor,
    weights: Tensor,
    recurrence: Tensor,
    bias: Tensor | None,
    sequence_lens: Tensor | None,
    initial_h: Tensor | None,
    initial_c: Tensor | None,
    peepholes: Tensor | None,
    w_scale: Tensor,
    w_zero_point: Tensor,
    r_scale: Tensor,
    r_zero_point: Tensor,
    *,
    activations: tuple[str, ...] | None = None,
    activation_alpha: tuple[float, ...] | None = None,
    activation_beta: tuple[float, ...] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    prepared: _Matrices | None = None,
) -> tuple[Tensor, ...]:
    """(Y [time, directions, batch, hidden], Y_h and Y_c [directions, batch, hidden]) of x [time, batch, features].

    As LSTM-22, but for the matrices: W is [directions, features, 4 * hidden], R [directions, hidden, 4 * hidden], their
    scales and zero points are [directions] or [directions, 4 * hidden]. What they are multiplied with is quantized to
    8 bits: the input as a whole, up to the end of the longest sequence, and at each step what all sequences gave a step
    before, zero after their ends. A backward direction steps through each sequence from its own end.

    A state that falls between two codes becomes one or the other with its last bit, so that rounding is part of what
    the node means: onnxruntime's order of float32 operations is followed, and its tanh and logistic function.

    Source: com.microsoft.DynamicQuantizeLSTM-1.
    """
    layer = Layer(
        x,
        weights.swapaxes(1, 2) if weights.ndim == 3 else weights,
        recurrence.swapaxes(1, 2) if recurrence.ndim == 3 else recurrence,
        bias,
        sequence_lens,
        gates=4,
        direction=direction,
        hidden_size=hidden_size,
        layout=0,
    )
    backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]
    names = activations or ("Sigmoid", "Tanh", "Tanh") * len(backwards)
    functions = layer.activations(names, activation_alpha, activation_beta, clip, count=3, instead=_CURVES)
    batch, hidden_shape = x.shape[1], (len(backwards), x.shape[1], layer.hidden)
    require_shape("P", peepholes, len(backwards), 3 * layer.hidden)
    require_shape("initial_h", initial_h, *hidden_shape)
    require_shape("initial_c", initial_c, *hidden_shape)
    matrices = _matrices_of(weights, recurrence, w_zero_point, r_zero_point) if prepared is None else prepared
    w_scale, r_scale = _by_column(w_scale, weights, "W_scale"), _by_column(r_scale, recurrence, "R_scale")
    lengths = np.full(batch, len(x)) if sequence_lens is None else sequence_lens
    longest = lengths.max(initial=0)
    turned = np.stack([_turned(x, lengths) if backward else x for backward in backwards])[:, :longest]
    projected = _product(turned.reshape(len(backwards), longest * batch, x.shape[2]), matrices.weights, w_scale)
    by_step = projected.reshape(len(backwards), longest, batch, projected.shape[2]).swapaxes(0, 1)
    cell = lstm_cell(
        functions,
        lambda h: _product(h, matrices.recurrence, r_scale),
        peepholes,
        input_forget=input_forget,
        bias=np.add(*layer.biases),
    )
    start = np.zeros(hidden_shape, x.dtype)
    hidden, memory = (start if state is None else state for state in (initial_h, initial_c))
    outputs = np.zeros((len(x), *hidden_shape), x.dtype)
    running = None if sequence_lens is None else np.arange(longest)[:, None, None] < lengths[:, None]
    last = _unroll(cell, by_step, hidden, memory, running, outputs)
    for d, backward in enumerate(backwards):
        if backward:
            outputs[:, d] = _turned(outputs[:, d], lengths)
    return outputs, *last


def _unroll(
    cell: Cell, projected: Tensor, hidden: Tensor, memory: Tensor, running: Tensor | None, outputs: Tensor
) -> tuple[Tensor, Tensor]:
    """The last states; ``outputs`` [time, directions, batch, hidden] gets the hidden, zero after their ends."""
    last = hidden
    for t, inputs in enumerate(projected):
        shown, written = cell(inputs, hidden, memory)
        if running is None:
            outputs[t] = last = hidden = shown
            memory = written
        else:
            outputs[t] = hidden = np.where(running[t], shown, 0)
            memory, last = np.where(running[t], written, memory), np.where(running[t], shown, last)
    return last, memory


def _by_column(parameter: Tensor, matrices: Tensor, name: str) -> Tensor:
    """A scale or zero point, one for each matrix or one for each of its columns, to broadcast with the matrices."""
    if parameter.shape not in (matrices.shape[:1], matrices.shape[::2]):
        raise ValueError(
            f"{name} has shape {shape_text(parameter.shape)}, "
            f"expected {shape_text(matrices.shape[:1])} or {shape_text(matrices.shape[::2])}"
        )
    return parameter.reshape(len(matrices), 1, -1)


def _product(rows: Tensor, matrices: Tensor, scale: Tensor) -> Tensor:
    """[directions, rows, features] times the matrices, the rows of each direction quantized together."""
    steps, rows_scale = dynamically_quantized(rows, axis=(1, 2))
    product: Tensor = (steps.astype(matrices.dtype, copy=False) @ matrices).astype(np.float32, copy=False)
    product *= rows_scale * scale
    return product


def _turned(x: Tensor, lengths: Tensor) -> Tensor:
    """[time, batch, size] with each sequence backwards, its padding where it was."""
    times = np.arange(len(x))[:, None]
    source = np.where(times < lengths, lengths - 1 - times, times)
    return np.take_along_axis(x, source[:, :, None], axis=0)
