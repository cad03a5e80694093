"""One step of an LSTM, which LSTM and its quantized form share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.rnn._activations import Activation
from onnxeval.ops.rnn._layer import Cell


def lstm_cell(
    functions: Sequence[Activation], recur: Callable[[Tensor], Tensor], peeks: Tensor | None, *, input_forget: int
) -> Cell:
    """(gate inputs [directions, batch, 4 * hidden], hidden, memory) -> (hidden, memory).

    The gates stand in the order input, output, forget, cell; ``peeks`` [directions, 3 * hidden] is for the first three.
    ``recur`` makes of the hidden state what it adds to the gates' inputs; ``functions`` are for the gates, for what is
    written and for the memory when it is shown.
    """
    squash, candidate_of, show = functions

    def cell(gates: Tensor, hidden: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        size = hidden.shape[2]
        write, reveal, keep, candidate = (gates[..., k * size : (k + 1) * size] for k in range(4))
        gates += recur(hidden)
        if peeks is None:
            squash(gates[..., : 3 * size], gates[..., : 3 * size])
        else:
            for gate, peek in ((write, peeks[:, None, :size]), (keep, peeks[:, None, 2 * size :])):
                gate += peek * memory
                squash(gate, gate)
        if input_forget:
            keep = 1 - write
        memory = keep * memory
        memory += np.multiply(write, candidate_of(candidate, candidate), out=write)
        if peeks is not None:
            reveal += peeks[:, None, size : 2 * size] * memory
            squash(reveal, reveal)
        hidden = show(memory, np.empty_like(memory))
        hidden *= reveal
        return hidden, memory

    return cell
