"""What RNN, GRU and LSTM share: directions, lengths, layouts and the loop over time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeAlias

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.rnn._activations import Activation, activations_of

#: (gate inputs of one step [batch, gates * hidden], *states) -> states, the hidden one first.
Cell: TypeAlias = Callable[..., tuple[Tensor, ...]]

# Whether time runs backwards, for each direction. The schema of GRU-1 misspells its own default.
_DIRECTIONS = {"forward": (False,), "foward": (False,), "reverse": (True,), "bidirectional": (False, True)}


class Layer:
    """The sequences and weights of one node, their shapes checked.

    ``biases`` is (that of the input, that of the recurrence), each [directions, gates * hidden], zero where none is
    given. Raises ValueError for shapes, lengths, layouts and directions that do not fit.
    """

    def __init__(
        self,
        x: Tensor,
        weights: Tensor,
        recurrence: Tensor,
        bias: Tensor | None,
        lengths: Tensor | None,
        *,
        gates: int,
        direction: str,
        hidden_size: int | None,
        layout: int,
    ) -> None:
        if direction not in _DIRECTIONS:
            raise ValueError(f"direction {direction!r} is none of forward, reverse, bidirectional")
        if layout not in (0, 1):
            raise ValueError(f"layout {layout} is neither 0 nor 1")
        for name, value in (("X", x), ("W", weights), ("R", recurrence)):
            if value.ndim != 3:
                raise ValueError(f"{name} has rank {value.ndim}, expected 3")
        self._backwards = _DIRECTIONS[direction]
        self._batch_first = layout == 1
        self._x = x.swapaxes(0, 1) if self._batch_first else x
        steps, batch, features = self._x.shape
        directions, self.hidden = len(self._backwards), recurrence.shape[2]
        if hidden_size not in (None, self.hidden):
            raise ValueError(f"hidden_size is {hidden_size}, R has shape {list(recurrence.shape)}")
        width = gates * self.hidden
        require_shape("W", weights, directions, width, features)
        require_shape("R", recurrence, directions, width, self.hidden)
        require_shape("B", bias, directions, 2 * width)
        self._weights = weights
        both = np.zeros((directions, 2 * width), x.dtype) if bias is None else bias
        self.biases = both[:, :width], both[:, width:]
        self._state_shape = (batch, directions, self.hidden) if self._batch_first else (directions, batch, self.hidden)
        self._active = _active(lengths, steps, batch)

    def activations(
        self,
        names: Sequence[str],
        alpha: Sequence[float] | None,
        beta: Sequence[float] | None,
        clip: float | None,
        *,
        count: int,
    ) -> list[tuple[Activation, ...]]:
        """``count`` functions for each direction. Raises ValueError where there are more or fewer names."""
        if len(names) != count * len(self._backwards):
            raise ValueError(f"activations are {list(names)}, expected {count} for each of {len(self._backwards)}")
        functions = activations_of(names, alpha, beta, clip)
        return [functions[start : start + count] for start in range(0, len(functions), count)]

    def run(
        self, cell_of: Callable[[int], Cell], initial: Sequence[Tensor | None], input_bias: Tensor
    ) -> tuple[Tensor, ...]:
        """(every hidden state, the last of each state), in the node's layout.

        ``cell_of(direction)`` makes the cells, ``initial`` holds a start for each state, zero where None. A sequence
        keeps its state after its end and its outputs are zero there; backwards it starts at its end.
        """
        steps, batch, features = self._x.shape
        for state in initial:
            require_shape("an initial state", state, *self._state_shape)
        outputs = np.zeros((steps, len(self._backwards), batch, self.hidden), self._x.dtype)
        finals = []
        for d, backward in enumerate(self._backwards):
            projected = self._x.reshape(steps * batch, features) @ self._weights[d].T + input_bias[d]
            states = self._unroll(
                cell_of(d),
                projected.reshape(steps, batch, projected.shape[1]),
                tuple(self._start(state, d) for state in initial),
                backward,
                outputs[:, d],
            )
            finals.append(states)
        last = [np.stack(states, axis=1 if self._batch_first else 0) for states in zip(*finals, strict=True)]
        return (outputs.transpose(2, 0, 1, 3) if self._batch_first else outputs, *last)

    def _start(self, state: Tensor | None, d: int) -> Tensor:
        if state is None:
            return np.zeros((self._x.shape[1], self.hidden), self._x.dtype)
        return state[:, d] if self._batch_first else state[d]

    def _unroll(
        self, cell: Cell, projected: Tensor, states: tuple[Tensor, ...], backward: bool, outputs: Tensor
    ) -> tuple[Tensor, ...]:
        """Run a cell over time, its hidden states into ``outputs`` [time, batch, hidden]; return the last states."""
        times = range(len(projected))
        for t in reversed(times) if backward else times:
            new = cell(projected[t], *states)
            if self._active is None:
                states, outputs[t] = new, new[0]
            else:
                running = self._active[t]
                states = tuple(np.where(running, after, before) for after, before in zip(new, states, strict=True))
                outputs[t] = np.where(running, new[0], 0)
        return states


def _active(lengths: Tensor | None, steps: int, batch: int) -> Tensor | None:
    """[time, batch, 1]: whether a sequence is still running; None where all run to the end."""
    if lengths is None:
        return None
    require_shape("sequence_lens", lengths, batch)
    if np.any(lengths < 0) or np.any(lengths > steps):
        raise ValueError(f"sequence_lens {lengths.tolist()} leave [0, {steps}]")
    running: Tensor = np.arange(steps)[:, None, None] < lengths[:, None]
    return running


def require_shape(name: str, value: Tensor | None, *shape: int) -> None:
    """Raise ValueError unless ``value`` is None or has this shape."""
    if value is not None and value.shape != shape:
        raise ValueError(f"{name} has shape {list(value.shape)}, expected {list(shape)}")


def with_output_sequence(kernel: Callable[..., Any], **lacking: Any) -> Callable[..., Any]:
    """The kernel for versions that have ``output_sequence`` too, with defaults for attributes that some of them lack.

    The attribute says whether a node may leave out the first output, and changes no value.
    """
    signature = inspect.signature(kernel)
    parameters = [
        parameter.replace(default=lacking.get(name, parameter.default))
        for name, parameter in signature.parameters.items()
    ]
    parameters.append(inspect.Parameter("output_sequence", inspect.Parameter.KEYWORD_ONLY))

    @wraps(kernel)
    def older(*inputs: Any, output_sequence: int, **attributes: Any) -> Any:  # noqa: ARG001  see above
        return kernel(*inputs, **(lacking | attributes))

    older.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # what inspect reads
    return older
