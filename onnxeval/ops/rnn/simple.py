"""RNN: one layer whose state is a squashed sum of the input and of itself a step before.

Version 1 has ``output_sequence``; ``layout`` came in 14.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.rnn._layer import Layer, with_output_sequence
from onnxeval.registry import op


@op("RNN", versions=(7, 14, 22))
@in_float32
def rnn(
    x: Tensor,
    weights: Tensor,
    recurrence: Tensor,
    bias: Tensor | None,
    sequence_lens: Tensor | None,
    initial_h: Tensor | None,
    *,
    activations: tuple[str, ...],
    activation_alpha: tuple[float, ...] | None,
    activation_beta: tuple[float, ...] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """(Y [time, directions, batch, hidden], Y_h [directions, batch, hidden]) of x [time, batch, features].

    With ``layout`` 1 the batch comes first in all of them. Source: RNN-22.
    """
    layer = Layer(
        x,
        weights,
        recurrence,
        bias,
        sequence_lens,
        gates=1,
        direction=direction,
        hidden_size=hidden_size,
        layout=layout,
    )
    # The default names two functions, also where there is one direction.
    names = activations[: len(weights)] if len(activations) == 2 else activations
    (squash,) = layer.activations(names, activation_alpha, activation_beta, clip, count=1)

    across = recurrence.swapaxes(1, 2)

    def cell(inputs: Tensor, hidden: Tensor) -> tuple[Tensor, ...]:
        inputs += hidden @ across
        return (squash(inputs, inputs),)

    return layer.run(cell, (initial_h,), np.add(*layer.biases))


op("RNN", versions=(1,))(with_output_sequence(rnn))
