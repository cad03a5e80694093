"""LSTM, GRU and RNN with constant weights and the usual activations, all steps in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, auto
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32, known_float32
from onnxeval.fast.activations import IDENTITY, RELU, Activation, Kind
from onnxeval.fast.engine import native
from onnxeval.ops.rnn.gru import gru
from onnxeval.ops.rnn.lstm import lstm
from onnxeval.ops.rnn.simple import rnn
from onnxeval.registry import Kernel

_BACKWARDS = {"forward": b"\0", "reverse": b"\1", "bidirectional": b"\0\1"}

#: The activations of RNN that are compiled.
_SQUASHES = {"tanh": Activation(Kind.TANH), "sigmoid": Activation(Kind.SIGMOID), "relu": RELU}


class _Layer(IntEnum):
    """In the order of LayerKind in kernels.h."""

    LSTM = 0
    RNN = auto()
    GRU_BEFORE = auto()
    GRU_AFTER = auto()


#: Gates of a layer, and its usual activations; RNN has what it is given.
_GATES = {
    _Layer.LSTM: (4, ("sigmoid", "tanh", "tanh")),
    _Layer.RNN: (1, ()),
    _Layer.GRU_BEFORE: (3, ("sigmoid", "tanh")),
    _Layer.GRU_AFTER: (3, ("sigmoid", "tanh")),
}


@replaces(lstm)
def bind_lstm(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """LSTM of float32."""
    run = _bound(_Layer.LSTM, constants, attributes)
    if run is None or attributes["input_forget"]:
        return None

    @replayable
    def stepped(x: Tensor, w: Tensor, r: Tensor, *rest: Tensor | None, **given: Any) -> Any:
        bias, lengths, initial_h, initial_c, peepholes = (*rest, *(None,) * 5)[:5]
        results = None if peepholes is not None else run(x, bias, lengths, initial_h, initial_c)
        return lstm(x, w, r, *rest, **given) if results is None else results

    return stepped


@replaces(gru)
def bind_gru(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """GRU of float32."""
    kind = _Layer.GRU_AFTER if attributes["linear_before_reset"] else _Layer.GRU_BEFORE
    return _without_memory(gru, _bound(kind, constants, attributes))


@replaces(rnn)
def bind_rnn(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """RNN of float32."""
    return _without_memory(rnn, _bound(_Layer.RNN, constants, attributes))


def _without_memory(readable: Kernel, run: Callable[..., Any] | None) -> Kernel | None:
    if run is None:
        return None

    @replayable
    def stepped(x: Tensor, w: Tensor, r: Tensor, *rest: Tensor | None, **given: Any) -> Any:
        bias, lengths, initial_h = (*rest, *(None,) * 3)[:3]
        results = run(x, bias, lengths, initial_h, None)
        return readable(x, w, r, *rest, **given) if results is None else results[:2]

    return stepped


def _bound(
    kind: _Layer, constants: Sequence[Tensor | None], attributes: Mapping[str, Any]
) -> Callable[..., tuple[Tensor, ...] | None] | None:
    """(x, bias, lengths, first state, first memory) -> (outputs, last state, last memory of LSTM).

    It gives None where an input is not as it must be. None where the node asks for anything else than what is compiled.
    """
    kernels = native()
    assert kernels is not None
    weights, recurrence = constants[1:3]
    if weights is None or recurrence is None or not (known_float32(weights) and known_float32(recurrence)):
        return None
    gates, _ = _GATES[kind]
    backwards = _BACKWARDS.get(attributes["direction"] or "")
    activation = _activation(kind, attributes, 0 if backwards is None else len(backwards))
    if backwards is None or activation is None or not _fit(weights, recurrence, len(backwards), gates, attributes):
        return None
    directions, width, hidden = recurrence.shape
    features = weights.shape[2]
    into = tuple(kernels.Matrix(each.T) for each in weights)
    together = 2 * hidden if kind is _Layer.GRU_BEFORE else width
    across = tuple(kernels.Matrix(each[:together].T) for each in recurrence)
    candidates = tuple(kernels.Matrix(each[together:].T) for each in recurrence) if together < width else None

    def run(
        x: Tensor, bias: Tensor | None, lengths: Tensor | None, initial_h: Tensor | None, initial_c: Tensor | None
    ) -> tuple[Tensor, ...] | None:
        if not is_float32(x) or x.ndim != 3 or x.shape[2] != features or not x.size:
            return None
        steps, batch, _ = x.shape
        shape = (directions, batch, hidden)
        for given, wanted in ((bias, (directions, 2 * width)), (initial_h, shape), (initial_c, shape)):
            if given is not None and not (is_float32(given) and given.shape == wanted):
                return None
        if lengths is not None:
            if lengths.shape != (batch,) or not _are_lengths(lengths, steps):
                return None
            kernels.interrupt()  # what they were held against is not looked at again
        laid_out = [None if each is None else contiguous(each) for each in (bias, initial_h, initial_c)]
        outputs, last = empty((steps, *shape), np.float32), empty(shape, np.float32)
        memory = empty(shape, np.float32) if kind is _Layer.LSTM else None
        kernels.run_layer(
            kind, x, into, across, candidates, *laid_out, outputs, last, memory, backwards, *activation, lengths
        )
        return (outputs, last) if memory is None else (outputs, last, memory)

    return run


def _are_lengths(lengths: Tensor, steps: int) -> bool:
    """Whether they are contiguous, of int32 and of 0 to ``steps``."""
    fits = lengths.dtype == np.int32 and lengths.flags.c_contiguous and lengths.flags.aligned
    return fits and bool(((lengths >= 0) & (lengths <= steps)).all())


def _fit(weights: Tensor, recurrence: Tensor, directions: int, gates: int, attributes: Mapping[str, Any]) -> bool:
    """Whether the weights have the shapes that they must have, and time comes first."""
    if weights.ndim != 3 or recurrence.ndim != 3 or not (weights.size and recurrence.size):
        return False
    hidden = recurrence.shape[2]
    shapes = weights.shape[:2] == recurrence.shape[:2] == (directions, gates * hidden)
    return shapes and attributes["hidden_size"] in (None, hidden) and not attributes.get("layout")


def _activation(kind: _Layer, attributes: Mapping[str, Any], directions: int) -> Activation | None:
    """What squashes the sums of RNN, the identity for others; None where the activations are not compiled."""
    if attributes["clip"] is not None or attributes["activation_alpha"] or attributes["activation_beta"]:
        return None
    names = tuple(name.lower() for name in attributes["activations"] or ())
    _, usual = _GATES[kind]
    if kind is not _Layer.RNN:
        return IDENTITY if names in ((), usual * directions) else None
    names = names[:directions] if len(names) == 2 else names  # the default names two, also for one direction
    return _SQUASHES.get(names[0]) if len(names) == directions and len(set(names)) == 1 else None
