"""GRU: one layer whose state moves towards a candidate as far as its update gate lets it.

Versions 1 and 3 have ``output_sequence``; ``linear_before_reset`` came in 3, ``layout`` in 14.
"""

from __future__ import annotations

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.rnn._layer import Layer, with_output_sequence
from onnxeval.registry import op


@op("GRU", versions=(7, 14, 22))
@in_float32
def gru(
    x: Tensor,
    weights: Tensor,
    recurrence: Tensor,
    bias: Tensor | None,
    sequence_lens: Tensor | None,
    initial_h: Tensor | None,
    *,
    activations: tuple[str, ...] | None,
    activation_alpha: tuple[float, ...] | None,
    activation_beta: tuple[float, ...] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    linear_before_reset: int,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """(Y [time, directions, batch, hidden], Y_h [directions, batch, hidden]) of x [time, batch, features].

    The gates stand in the order update, reset, hidden. With ``layout`` 1 the batch comes first. Source: GRU-22.
    """
    layer = Layer(
        x,
        weights,
        recurrence,
        bias,
        sequence_lens,
        gates=3,
        direction=direction,
        hidden_size=hidden_size,
        layout=layout,
    )
    names = activations or ("Sigmoid", "Tanh") * len(weights)
    squash, candidate_of = layer.activations(names, activation_alpha, activation_beta, clip, count=2)
    gates = 2 * layer.hidden  # columns of update and reset; those of the candidate follow
    input_bias, recurrence_bias = layer.biases
    across = recurrence.swapaxes(1, 2)
    to_gates, to_candidate = across[..., :gates], across[..., gates:]
    gate_bias, candidate_bias = recurrence_bias[:, None, :gates], recurrence_bias[:, None, gates:]

    def cell(inputs: Tensor, hidden: Tensor) -> tuple[Tensor, ...]:
        both, candidate = inputs[..., :gates], inputs[..., gates:]
        both += hidden @ to_gates
        both += gate_bias
        squash(both, both)
        update, reset = both[..., : layer.hidden], both[..., layer.hidden :]
        if linear_before_reset:
            candidate += reset * (hidden @ to_candidate + candidate_bias)
        else:
            candidate += (reset * hidden) @ to_candidate
            candidate += candidate_bias
        candidate_of(candidate, candidate)
        return ((1 - update) * candidate + update * hidden,)

    return layer.run(cell, (initial_h,), input_bias)


op("GRU", versions=(1, 3))(with_output_sequence(gru, linear_before_reset=0))
