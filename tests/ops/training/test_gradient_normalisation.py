"""Derivatives of softmaxes, normalisations and losses against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from ops.training.differences import Case, check, check_in_16_bits, in_16_bits

RNG = np.random.default_rng(4)


def normal(*shape):
    return RNG.normal(size=shape)


def positive(*shape):
    return RNG.uniform(0.5, 2, shape)


def moments(channels):
    """Scale, bias, mean and variance."""
    return [normal(channels), normal(channels), normal(channels), positive(channels)]


SOFTMAXES = [
    *(Case(name, [normal(2, 3, 4)], {"axis": 1}) for name in ("Softmax", "LogSoftmax")),
    *(Case(name, [normal(2, 3, 4)], opset=11) for name in ("Softmax", "LogSoftmax", "Hardmax")),
    *(Case(name, [normal(2, 3, 2)], {"axis": 2}, opset=1) for name in ("Softmax", "LogSoftmax")),
]
NORMALISATIONS = [
    Case("BatchNormalization", [normal(2, 3, 2), *moments(3)]),
    Case("BatchNormalization", [normal(4), *moments(1)], opset=14),
    Case("BatchNormalization", [normal(3, 2, 2), *moments(2)], {"training_mode": 1, "momentum": 0.7}, outputs=3),
    Case("BatchNormalization", [normal(2, 3, 2), *moments(3)], opset=9),
    Case("BatchNormalization", [normal(3, 2, 2), *moments(2)], {"momentum": 0.7}, opset=9, outputs=5),
    Case("BatchNormalization", [normal(2, 3, 2), *moments(3)], opset=7),
    Case("BatchNormalization", [normal(3, 2), *moments(2)], {"spatial": 0}, opset=7, outputs=5),
    Case("BatchNormalization", [normal(3, 2), *moments(2)], {"is_test": 1}, opset=6),
    Case("BatchNormalization", [normal(3, 2), *moments(2)], opset=6, outputs=5),
    Case("InstanceNormalization", [normal(2, 3, 4), normal(3), normal(3)]),
    Case("GroupNormalization", [normal(2, 4, 3), normal(4), normal(4)], {"num_groups": 2, "stash_type": 11}),
    Case("GroupNormalization", [normal(2, 4, 3), normal(2), normal(2)], {"num_groups": 2}, opset=18),
    Case("RMSNormalization", [normal(2, 3, 4), normal(4)], {"stash_type": 11}),
    Case("RMSNormalization", [normal(2, 3, 4), normal(3, 4)], {"stash_type": 11, "axis": 1, "epsilon": 0.1}),
    *(
        Case("LayerNormalization", inputs, attributes, outputs=outputs, rtol=2e-3, step=1e-2)
        for inputs, attributes, outputs in (
            ([normal(2, 5), normal(5), normal(5)], {}, 3),
            ([normal(2, 2, 3), normal(3)], {"axis": 1, "epsilon": 0.1}, 1),
        )
    ),
    Case("MeanVarianceNormalization", [normal(2, 3, 2, 2)]),
    Case("MeanVarianceNormalization", [normal(2, 3, 2)], {"axes": [1]}, opset=9),
    Case("LpNormalization", [normal(2, 3)], {"p": 1}),
    Case("LpNormalization", [normal(2, 3)], {"axis": 0}),
]
SCORES, CLASSES, WEIGHTS = normal(2, 4, 3), np.array([[0, 3, 1], [1, 1, 2]]), positive(4)
LOSSES = [
    Case(name, inputs, {"reduction": reduction, **attributes})
    for name in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    for reduction in ("none", "sum", "mean")
    for inputs, attributes in (
        ([SCORES, CLASSES], {}),
        ([SCORES, CLASSES, WEIGHTS], {"ignore_index": 1}),
        ([SCORES, np.where(CLASSES == 3, -7, CLASSES)], {"ignore_index": -7}),
    )
]
LOSSES += [
    Case("SoftmaxCrossEntropyLoss", [normal(3, 4), np.array([0, 3, 1])], outputs=2, opset=12),
    Case("NegativeLogLikelihoodLoss", [normal(3, 4), np.array([0, 3, 1], np.int32), WEIGHTS], opset=12),
]


CASES = [*SOFTMAXES, *NORMALISATIONS, *LOSSES]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", in_16_bits(CASES), ids=str)
def test_derivatives_in_16_bits(case: Case) -> None:
    check_in_16_bits(case)
