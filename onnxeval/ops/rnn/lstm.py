"""LSTM: one layer with a memory that gates write to, keep and show.

Version 1 has ``output_sequence``; ``layout`` came in 14.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.rnn._layer import Layer, require_shape, with_output_sequence
from onnxeval.ops.rnn._lstm_cell import lstm_cell
from onnxeval.registry import op


@op("LSTM", versions=(7, 14, 22))
@in_float32
def lstm(
    x: Tensor,
    weights: Tensor,
    recurrence: Tensor,
    bias: Tensor | None,
    sequence_lens: Tensor | None,
    initial_h: Tensor | None,
    initial_c: Tensor | None,
    peepholes: Tensor | None,
    *,
    activations: tuple[str, ...] | None,
    activation_alpha: tuple[float, ...] | None,
    activation_beta: tuple[float, ...] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    input_forget: int,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """(Y [time, directions, batch, hidden], Y_h and Y_c [directions, batch, hidden]) of x [time, batch, features].

    The gates stand in the order input, output, forget, cell; the peepholes [directions, 3 * hidden]
    as the first three. ``clip`` bounds the input of every activation, also that of the memory when it is shown, and
    leaves the memory itself as it is. With ``layout`` 1 the batch comes first. Source: LSTM-22.
    """
    layer = Layer(
        x,
        weights,
        recurrence,
        bias,
        sequence_lens,
        gates=4,
        direction=direction,
        hidden_size=hidden_size,
        layout=layout,
    )
    names = activations or ("Sigmoid", "Tanh", "Tanh") * len(weights)
    functions = layer.activations(names, activation_alpha, activation_beta, clip, count=3)
    require_shape("P", peepholes, len(weights), 3 * layer.hidden)

    across = recurrence.swapaxes(1, 2)
    cell = lstm_cell(functions, lambda hidden: hidden @ across, peepholes, input_forget=input_forget)
    return layer.run(cell, (initial_h, initial_c), np.add(*layer.biases))


op("LSTM", versions=(1,))(with_output_sequence(lstm))
