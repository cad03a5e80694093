"""Derivatives of RNN, GRU and LSTM: each is spelled out step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from onnxeval.ops.rnn._activations import parameters_of
from onnxeval.ops.training._algebra import absolute, concat, filled, reshape, sigmoid, split, swapped, transpose, where
from onnxeval.ops.training._definitions import definition
from onnxeval.ops.training._tape import Variable, apply

Activation: TypeAlias = Callable[[Variable], Variable]
#: (what the input adds to the gates [batch, gates * hidden], *states) -> states, the hidden one first
Cell: TypeAlias = Callable[..., tuple[Variable, ...]]

_ACTIVATIONS: dict[str, Callable[..., Variable]] = {
    "relu": lambda x: apply("Relu", x),
    "tanh": lambda x: apply("Tanh", x),
    "sigmoid": sigmoid,
    "affine": lambda x, alpha, beta: x * alpha + beta,
    "leakyrelu": lambda x, alpha: apply("LeakyRelu", x, alpha=alpha),
    "thresholdedrelu": lambda x, alpha: where(x < alpha, 0, x),
    "scaledtanh": lambda x, alpha, beta: apply("Tanh", x * beta) * alpha,
    "hardsigmoid": lambda x, alpha, beta: apply("HardSigmoid", x, alpha=alpha, beta=beta),
    "elu": lambda x, alpha: apply("Elu", x, alpha=alpha),
    "softsign": lambda x: x / (absolute(x) + 1),
    "softplus": lambda x: apply("Softplus", x),
}


class _Layer:
    """The tensors of one node, its time first; the kernel checked how they fit."""

    def __init__(
        self,
        x: Variable,
        weights: Variable,
        recurrence: Variable,
        bias: Variable | None,
        lengths: Variable | None,
        *,
        names: Sequence[str],
        activation_alpha: Sequence[float] | None,
        activation_beta: Sequence[float] | None,
        clip: float | None,
        direction: str,
        layout: int = 0,
        **_: int | None,
    ) -> None:
        self.batch_first = layout == 1
        self.x = transpose(x, (1, 0, 2)) if self.batch_first else x
        directions, width = weights.shape[:2]
        self.hidden = recurrence.shape[2]
        self.weights, self.recurrence = (swapped(given) for given in (weights, recurrence))
        both = filled(x, 0, (directions, 2 * width)) if bias is None else bias
        self.biases = split(both, 1, [width, width])
        self.backwards = (False, True) if directions == 2 else (direction == "reverse",)
        steps = np.arange(self.x.shape[0])[:, None, None]
        self.running = None if lengths is None else steps < lengths.value[:, None]
        functions = [
            _bounded(_ACTIVATIONS[name], parameters, clip)
            for name, parameters in parameters_of(names, activation_alpha, activation_beta)
        ]
        count = len(functions) // directions
        self.functions = [functions[first : first + count] for first in range(0, len(functions), count)]

    def run(
        self, cell_of: Callable[[int], Cell], initial: Sequence[Variable | None], input_bias: Variable
    ) -> tuple[Variable, ...]:
        """(every hidden state, the last of each state), in the node's layout."""
        every, finals = [], []
        for d, backward in enumerate(self.backwards):
            projected = apply("MatMul", self.x, _at(self.weights, d)) + _at(input_bias, d)
            states = tuple(self._start(state, d) for state in initial)
            outputs, states = self._unroll(cell_of(d), projected, states, backward=backward)
            nothing = filled(self.x, 0, (0, self.x.shape[1], self.hidden))
            every.append(_stack(outputs, 0) if outputs else nothing)
            finals.append(states)
        last = (_stack(states, 1 if self.batch_first else 0) for states in zip(*finals, strict=True))
        hidden = _stack(every, 1)
        return transpose(hidden, (2, 0, 1, 3)) if self.batch_first else hidden, *last

    def _start(self, state: Variable | None, d: int) -> Variable:
        if state is None:
            return filled(self.x, 0, (self.x.shape[1], self.hidden))
        return _at(state, d, axis=1 if self.batch_first else 0)

    def _unroll(
        self, cell: Cell, projected: Variable, states: tuple[Variable, ...], *, backward: bool
    ) -> tuple[list[Variable], tuple[Variable, ...]]:
        """The hidden state of each time, and the last states."""
        steps = [*enumerate(split(projected, 0, [1] * len(projected.value)))]
        outputs = []
        for t, step in reversed(steps) if backward else steps:
            new = cell(reshape(step, step.shape[1:]), *states)
            if self.running is None:
                states = new
                outputs.append(new[0])
            else:
                running = self.running[t]
                states = tuple(where(running, after, before) for after, before in zip(new, states, strict=True))
                outputs.append(where(running, new[0], 0))
        return outputs[::-1] if backward else outputs, states


def _bounded(function: Callable[..., Variable], parameters: Sequence[float], clip: float | None) -> Activation:
    def activation(x: Variable) -> Variable:
        if clip is not None:
            x = apply("Clip", x, np.asarray(-clip, x.dtype), np.asarray(clip, x.dtype))
        return function(x, *parameters)

    return activation


def _at(x: Variable, place: int, axis: int = 0) -> Variable:
    """One slice of ``x``, without the axis."""
    return apply("Gather", x, np.array(place), axis=axis)


def _stack(xs: Sequence[Variable], axis: int) -> Variable:
    return concat([reshape(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in xs], axis)


def _gates(x: Variable, hidden: int) -> tuple[Variable, ...]:
    """What stands side by side in ``x`` for each gate."""
    return split(x, 1, [hidden] * (x.shape[1] // hidden))


@definition("RNN", 22, 1)
def _rnn(*tensors: Any, activations: tuple[str, ...], **attributes: Any) -> tuple[Variable, ...]:
    x, weights, recurrence, bias, lengths, initial = tensors
    # The default names two functions, also where there is one direction.
    names = activations[: weights.shape[0]] if len(activations) == 2 else activations
    layer = _Layer(x, weights, recurrence, bias, lengths, names=names, **attributes)

    def cell_of(d: int) -> Cell:
        (squash,), across = layer.functions[d], _at(layer.recurrence, d)
        return lambda inputs, hidden: (squash(inputs + apply("MatMul", hidden, across)),)

    return layer.run(cell_of, (initial,), layer.biases[0] + layer.biases[1])


@definition("GRU", 22, 1)
def _gru(
    *tensors: Any, activations: tuple[str, ...] | None, linear_before_reset: int = 0, **attributes: Any
) -> tuple[Variable, ...]:
    """The gates stand in the order update, reset, hidden."""
    *given, initial = tensors
    layer = _Layer(*given, names=activations or ("Sigmoid", "Tanh") * tensors[1].shape[0], **attributes)

    def cell_of(d: int) -> Cell:
        squash, candidate_of = layer.functions[d]
        to_update, to_reset, to_candidate = _gates(_at(layer.recurrence, d), layer.hidden)
        update_bias, reset_bias, candidate_bias = split(_at(layer.biases[1], d), 0, [layer.hidden] * 3)

        def cell(inputs: Variable, hidden: Variable) -> tuple[Variable, ...]:
            for_update, for_reset, for_candidate = _gates(inputs, layer.hidden)
            update = squash(for_update + apply("MatMul", hidden, to_update) + update_bias)
            reset = squash(for_reset + apply("MatMul", hidden, to_reset) + reset_bias)
            if linear_before_reset:
                memory = reset * (apply("MatMul", hidden, to_candidate) + candidate_bias)
            else:
                memory = apply("MatMul", reset * hidden, to_candidate) + candidate_bias
            return ((1 - update) * candidate_of(for_candidate + memory) + update * hidden,)

        return cell

    return layer.run(cell_of, (initial,), layer.biases[0])


@definition("LSTM", 22, 1)
def _lstm(
    *tensors: Any, activations: tuple[str, ...] | None, input_forget: int, **attributes: Any
) -> tuple[Variable, ...]:
    """The gates stand in the order input, output, forget, cell; the peepholes as the first three."""
    *given, initial_h, initial_c, peepholes = tensors
    layer = _Layer(*given, names=activations or ("Sigmoid", "Tanh", "Tanh") * tensors[1].shape[0], **attributes)

    def cell_of(d: int) -> Cell:
        (squash, candidate_of, show), across = layer.functions[d], _at(layer.recurrence, d)
        peeks = None if peepholes is None else split(_at(peepholes, d), 0, [layer.hidden] * 3)

        def cell(inputs: Variable, hidden: Variable, memory: Variable) -> tuple[Variable, ...]:
            gates = _gates(inputs + apply("MatMul", hidden, across), layer.hidden)

            def gate(place: int) -> Variable:
                return squash(gates[place] if peeks is None else gates[place] + peeks[place] * memory)

            write = gate(0)
            keep = 1 - write if input_forget else gate(2)
            memory = keep * memory + write * candidate_of(gates[3])
            return gate(1) * show(memory), memory

        return cell

    return layer.run(cell_of, (initial_h, initial_c), layer.biases[0] + layer.biases[1])
