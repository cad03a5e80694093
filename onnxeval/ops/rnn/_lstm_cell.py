"""One step of an LSTM, which LSTM and its quantized form share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnxeval.dtypes import Tensor
from onnxeval.ops.rnn._activations import Activation
from onnxeval.ops.rnn._layer import Cell


def lstm_cell(
    functions: Sequence[Activation], recur: Callable[[Tensor], Tensor], peeks: Tensor | None, *, input_forget: int
) -> Cell:
    """(gate inputs [batch, 4 * hidden], hidden, memory) -> (hidden, memory).

    The gates stand in the order input, output, forget, cell; ``peeks`` [3, hidden] is for the first three.
    ``recur`` makes of the hidden state what it adds to the gates' inputs; ``functions`` are for the gates, for what is
    written and for the memory when it is shown.
    """
    squash, candidate_of, show = functions

    def cell(inputs: Tensor, hidden: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        gates = (inputs + recur(hidden)).reshape(len(inputs), 4, hidden.shape[1])
        if peeks is not None:
            gates[:, [0, 2]] += peeks[[0, 2]] * memory[:, None]
        write = squash(gates[:, 0])
        keep = 1 - write if input_forget else squash(gates[:, 2])
        memory = keep * memory + write * candidate_of(gates[:, 3])
        if peeks is not None:
            gates[:, 1] += peeks[1] * memory
        return squash(gates[:, 1]) * show(memory), memory

    return cell
