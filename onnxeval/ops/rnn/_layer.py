"""What RNN, GRU and LSTM share: directions, lengths, layouts and the loop over time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._products import times_transposed
from onnxeval.ops.rnn._activations import Activation, activations_of

#: (gate inputs of one step [directions, batch, gates * hidden], *states [directions, batch, hidden]) -> states, the
#: hidden one first. It may overwrite the gate inputs, not the states.
Cell: TypeAlias = Callable[..., tuple[Tensor, ...]]

# Whether time runs backwards, for each direction. The schema of GRU-1 misspells its own default.
_DIRECTIONS = {"forward": (False,), "foward": (False,), "reverse": (True,), "bidirectional": (False, True)}


class Layer:
    """The sequences and weights of one node, their shapes checked.

    All directions go step by step together, the backward one from the end of time.

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
        instead: Mapping[str, Activation] = MappingProxyType({}),
    ) -> tuple[Activation, ...]:
        """The ``count`` functions of a cell. Raises ValueError where there are more or fewer names."""
        directions = len(self._backwards)
        if len(names) != count * directions:
            raise ValueError(f"activations are {list(names)}, expected {count} for each of {directions}")
        return activations_of(names, alpha, beta, clip, directions=directions, instead=instead)

    def run(self, cell: Cell, initial: Sequence[Tensor | None], input_bias: Tensor) -> tuple[Tensor, ...]:
        """(every hidden state, the last of each state), in the node's layout.

        ``initial`` holds a start for each state, zero where None. A sequence keeps its state after its end and its
        outputs are zero there; backwards it starts at its end.
        """
        for state in initial:
            require_shape("an initial state", state, *self._state_shape)
        steps, batch, features = self._x.shape
        turned = self._by_direction(self._x, axis=0).reshape(len(self._backwards), steps * batch, features)
        projected = times_transposed(turned, self._weights)
        projected += input_bias[:, None]
        by_step = projected.reshape(len(projected), steps, batch, projected.shape[2]).swapaxes(0, 1)
        running = None if self._active is None else self._by_direction(self._active, axis=1)
        outputs = np.empty((*by_step.shape[:3], self.hidden), self._x.dtype)
        states = tuple(self._start(state) for state in initial)
        for t, inputs in enumerate(by_step):
            new = cell(inputs, *states)
            if running is None:
                states, outputs[t] = new, new[0]
            else:
                states = tuple(np.where(running[t], after, before) for after, before in zip(new, states, strict=True))
                outputs[t] = np.where(running[t], new[0], 0)
        for d, backward in enumerate(self._backwards):
            if backward:
                outputs[:, d] = outputs[::-1, d].copy()
        if self._batch_first:
            return outputs.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in states)
        return outputs, *states

    def _by_direction(self, x: Tensor, axis: int) -> Tensor:
        """[time, ...] for each direction as it meets it, along a new axis."""
        return np.stack([x[::-1] if backward else x for backward in self._backwards], axis)

    def _start(self, state: Tensor | None) -> Tensor:
        if state is None:
            return np.zeros((len(self._backwards), self._x.shape[1], self.hidden), self._x.dtype)
        return state.swapaxes(0, 1) if self._batch_first else state


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
