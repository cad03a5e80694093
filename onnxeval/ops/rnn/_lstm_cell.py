"""One step of an LSTM, which LSTM and its quantized form share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.rnn._activations import Activation
from onnxeval.ops.rnn._layer import Cell


def lstm_cell(
    functions: Sequence[Activation],
    recur: Callable[[Tensor], Tensor],
    peeks: Tensor | None,
    *,
    input_forget: int,
    bias: Tensor | None = None,
) -> Cell:
    """(gate inputs [directions, batch, 4 * hidden], hidden, memory) -> (hidden, memory).

    The gates stand in the order input, output, forget, cell; ``peeks`` [directions, 3 * hidden] is for the first three.
    ``recur`` makes of the hidden state what it adds to the gates' inputs; ``functions`` are for the gates, for what is
    written and for the memory when it is shown. ``bias`` [directions, 4 * hidden] is the last that the gates' inputs
    get, where they do not hold it already.
    """
    squash, candidate_of, show = functions
    biases = None if bias is None else np.split(bias[:, None], 4, axis=2)

    def cell(gates: Tensor, hidden: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        size = hidden.shape[2]
        write, reveal, keep, candidate = (gates[..., k * size : (k + 1) * size] for k in range(4))
        gates += recur(hidden)
        if peeks is None:
            if bias is not None:
                gates += bias[:, None]
            squash(gates[..., : 3 * size], gates[..., : 3 * size])
        else:
            write += peeks[:, None, :size] * memory
            keep += peeks[:, None, 2 * size :] * memory
            if biases is not None:
                for gate, own in zip((write, keep, candidate), (biases[0], *biases[2:]), strict=True):
                    gate += own
            squash(write, write)
            squash(keep, keep)
        if input_forget:
            keep = 1 - write
        memory = keep * memory
        memory += np.multiply(write, candidate_of(candidate, candidate), out=write)
        if peeks is not None:
            reveal += peeks[:, None, size : 2 * size] * memory
            if biases is not None:
                reveal += biases[1]
            squash(reveal, reveal)
        hidden = show(memory, np.empty_like(memory))
        hidden *= reveal
        return hidden, memory

    return cell
