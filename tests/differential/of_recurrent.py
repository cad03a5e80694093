"""Strategies of the recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, strategy

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_ACTIVATIONS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
_OTHERS = ("Relu", "Softsign", "Softplus", "Sigmoid", "Tanh")


@strategy("RNN", "GRU", "LSTM", ulps=64, scaled=True, absolute=16, palettes=("plain",))
def recurrent(d: Drawing) -> Node:
    kind = d.schema.key.op_type
    gates = _GATES[kind]
    direction = d.one_of("forward", "reverse", "bidirectional")
    directions = 2 if direction == "bidirectional" else 1
    length, batch, inner, hidden = d.integer(1, 3), d.integer(1, 2), d.integer(1, 3), d.integer(1, 3)
    x = d.tensor(0, (length, batch, inner))
    weights = (d.tensor(0, (directions, gates * hidden, n)) for n in (inner, hidden))
    bias = d.tensor(0, (directions, 2 * gates * hidden)) if d.flag() else None
    lengths = d.integers((batch,), 1, length, np.int32) if d.flag() else None
    states = [d.tensor(0, (directions, batch, hidden)) if d.flag() else None for _ in range(2 if kind == "LSTM" else 1)]
    peepholes = [d.tensor(0, (directions, 3 * hidden)) if d.flag() else None] if kind == "LSTM" else []
    options: dict[str, Any] = {"direction": direction, "hidden_size": hidden}
    options |= d.some(linear_before_reset=d.integer(0, 1), input_forget=d.integer(0, 1), clip=d.one_of(0.5, 3.0))
    if d.flag():
        options["activations"] = [d.one_of(*_OTHERS) for _ in range(directions * len(_ACTIVATIONS[kind]))]
    wanted = (True,) * (3 if kind == "LSTM" else 2)
    return d.node(x, *weights, bias, lengths, *states, *peepholes, wanted=wanted, **options)
