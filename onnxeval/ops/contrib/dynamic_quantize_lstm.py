"""DynamicQuantizeLSTM: an LSTM whose matrices are quantized beforehand, its input and states as they come."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.contrib._eight_bits import EIGHT_BITS, distances, dynamically_quantized
from onnxeval.ops.contrib._typed import FLOAT32, INT32, microsoft_op
from onnxeval.ops.rnn._layer import Cell, Layer, require_shape
from onnxeval.ops.rnn._lstm_cell import lstm_cell
from onnxeval.values import shape_text


@microsoft_op("DynamicQuantizeLSTM", "FWRFIFFFFWFR", F=(FLOAT32,), W=EIGHT_BITS, R=EIGHT_BITS, I=(INT32,))
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
) -> tuple[Tensor, ...]:
    """(Y [time, directions, batch, hidden], Y_h and Y_c [directions, batch, hidden]) of x [time, batch, features].

    As LSTM-22, but for the matrices: W is [directions, features, 4 * hidden], R [directions, hidden, 4 * hidden], their
    scales and zero points are [directions] or [directions, 4 * hidden]. What they are multiplied with is quantized to
    8 bits: the input as a whole, up to the end of the longest sequence, and at each step what all sequences gave a step
    before, zero after their ends. A backward direction steps through each sequence from its own end.

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
    functions = layer.activations(names, activation_alpha, activation_beta, clip, count=3)
    batch, hidden_shape = x.shape[1], (len(backwards), x.shape[1], layer.hidden)
    require_shape("P", peepholes, len(backwards), 3 * layer.hidden)
    require_shape("initial_h", initial_h, *hidden_shape)
    require_shape("initial_c", initial_c, *hidden_shape)
    project = _quantized_products(weights, w_scale, w_zero_point, "W")
    recur = _quantized_products(recurrence, r_scale, r_zero_point, "R")
    lengths = np.full(batch, len(x)) if sequence_lens is None else sequence_lens
    bias_sum = np.add(*layer.biases)
    start = np.zeros(hidden_shape, x.dtype)

    def run(d: int, backward: bool) -> tuple[Tensor, Tensor, Tensor]:
        peeks = None if peepholes is None else peepholes[d].reshape(3, layer.hidden)
        cell = lstm_cell(functions[d], recur[d], peeks, input_forget=input_forget)
        turned = (_turned(x, lengths) if backward else x)[: lengths.max(initial=0)]
        projected = project[d](turned.reshape(-1, x.shape[2])) + bias_sum[d]
        h, c = (start if state is None else state for state in (initial_h, initial_c))
        y, h, c = _unrolled(cell, projected.reshape(-1, batch, projected.shape[1]), h[d], c[d], lengths)
        y = np.concatenate([y, np.zeros((len(x) - len(y), *y.shape[1:]), y.dtype)])
        return _turned(y, lengths) if backward else y, h, c

    outputs, *states = zip(*(run(d, backward) for d, backward in enumerate(backwards)), strict=True)
    return np.stack(outputs, axis=1), *map(np.stack, states)


def _unrolled(
    cell: Cell, projected: Tensor, hidden: Tensor, memory: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(Hidden states [time, batch, hidden], zero after a sequence's end; the last ones; the last memory)."""
    outputs, last = np.empty((len(projected), *hidden.shape), hidden.dtype), hidden
    for t, inputs in enumerate(projected):
        running = t < lengths[:, None]
        shown, written = cell(inputs, hidden, memory)
        outputs[t] = hidden = np.where(running, shown, 0)
        memory, last = np.where(running, written, memory), np.where(running, shown, last)
    return outputs, last, memory


def _quantized_products(
    matrices: Tensor, scale: Tensor, zero_point: Tensor, name: str
) -> list[Callable[[Tensor], Tensor]]:
    """For each direction the product of float32 [rows, features] with its matrix [features, columns]."""
    for part, parameter in (("scale", scale), ("zero_point", zero_point)):
        if parameter.shape not in (matrices.shape[:1], matrices.shape[::2]):
            raise ValueError(
                f"{name}_{part} has shape {shape_text(parameter.shape)}, "
                f"expected {shape_text(matrices.shape[:1])} or {shape_text(matrices.shape[::2])}"
            )

    def product_of(d: int) -> Callable[[Tensor], Tensor]:
        matrix = distances(matrices[d], zero_point[d])
        matrix_scale = scale[d].astype(np.float64)

        def product(rows: Tensor) -> Tensor:
            steps, rows_scale = dynamically_quantized(rows)
            result: Tensor = (steps @ matrix * (rows_scale * matrix_scale)).astype(np.float32)
            return result

        return product

    return [product_of(d) for d in range(len(matrices))]


def _turned(x: Tensor, lengths: Tensor) -> Tensor:
    """[time, batch, size] with each sequence backwards, its padding where it was."""
    times = np.arange(len(x))[:, None]
    source = np.where(times < lengths, lengths - 1 - times, times)
    return np.take_along_axis(x, source[:, :, None], axis=0)
