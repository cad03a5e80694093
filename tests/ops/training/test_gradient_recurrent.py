"""Derivatives of RNN, GRU and LSTM against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from ops.training.differences import Case, check, check_in_16_bits, gradient, in_16_bits, model_of

RNG = np.random.default_rng(7)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def normal(*shape):
    return RNG.normal(size=shape)


def layer(op_type, directions=1, *, lengths=None, states=False, bias=True, peepholes=False, layout=0):
    """Inputs of 3 steps for 2 sequences of 2 features, and 2 hidden elements."""
    width = GATES[op_type] * 2
    state = (2, directions, 2) if layout else (directions, 2, 2)
    inputs = [
        normal(2, 3, 2) if layout else normal(3, 2, 2),
        normal(directions, width, 2),
        normal(directions, width, 2),
        normal(directions, 2 * width) if bias else None,
        None if lengths is None else np.array(lengths, np.int32),
        normal(*state) if states else None,
    ]
    if op_type == "LSTM":
        inputs += [normal(*state) if states else None, normal(directions, 6) if peepholes else None]
    return inputs


SIZE = {"hidden_size": 2}
OUTPUTS = {"RNN": 2, "GRU": 2, "LSTM": 3}
CASES = [
    *(Case(name, layer(name), SIZE, outputs=OUTPUTS[name]) for name in GATES),
    *(
        Case(
            name,
            layer(name, 2, lengths=[3, 1], states=True, peepholes=True),
            {**SIZE, "direction": "bidirectional"},
            outputs=OUTPUTS[name],
        )
        for name in GATES
    ),
    *(
        Case(
            name,
            layer(name, lengths=[0, 2], states=True, bias=False, layout=1),
            {**SIZE, "direction": "reverse", "layout": 1},
            outputs=OUTPUTS[name],
        )
        for name in GATES
    ),
    *(Case(name, layer(name), SIZE, outputs=1, opset=7) for name in GATES),
    *(Case(name, layer(name), {**SIZE, "output_sequence": 1}, outputs=2, opset=1) for name in GATES),
    *(Case(name, layer(name, states=True), {**SIZE, "clip": 0.4}, outputs=2) for name in GATES),
    Case("GRU", layer("GRU", states=True), {**SIZE, "linear_before_reset": 1}, outputs=2),
    Case("GRU", layer("GRU"), {**SIZE, "linear_before_reset": 1}, opset=3, outputs=2),
    Case("LSTM", layer("LSTM", peepholes=True), {**SIZE, "input_forget": 1}, outputs=3),
    Case("LSTM", layer("LSTM"), {**SIZE, "activations": ["HardSigmoid", "Softsign", "Affine"]}, outputs=3),
    Case(
        "LSTM",
        layer("LSTM"),
        {
            **SIZE,
            "activations": ["ScaledTanh", "LeakyRelu", "ThresholdedRelu"],
            "activation_alpha": [0.8, 0.3, 0.1],
            "activation_beta": [0.6],
        },
        outputs=3,
    ),
    Case("GRU", layer("GRU"), {**SIZE, "activations": ["Softplus", "Elu"], "activation_alpha": [0.7]}, outputs=2),
    Case("RNN", layer("RNN"), {**SIZE, "activations": ["Relu"]}, outputs=2),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", in_16_bits(CASES), ids=str)
def test_derivatives_in_16_bits(case: Case) -> None:
    check_in_16_bits(case)


def test_no_steps() -> None:
    feeds = {"x": normal(0, 2, 2), "w": normal(1, 2, 2), "h": normal(1, 2, 2)}
    node = helper.make_node("RNN", ["x", "w", "w", "", "", "h"], ["", "y"], hidden_size=2)
    got = model_of([node, gradient("wh", "y", ["dw", "dh"], zs="x")], [*feeds], ["dw", "dh"]).run(feeds)
    assert not got["dw"].any()
    assert (got["dh"] == 1).all()
