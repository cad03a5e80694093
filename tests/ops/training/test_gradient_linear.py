"""Derivatives of products, reductions and convolutions against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from ops.training.differences import Case, check, check_in_16_bits, in_16_bits

RNG = np.random.default_rng(2)


def normal(*shape):
    return RNG.normal(size=shape)


def positive(*shape):
    return RNG.uniform(0.5, 2, shape)


MATRICES = [
    Case("MatMul", [normal(2, 3), normal(3, 4)]),
    Case("MatMul", [normal(3), normal(3)]),
    Case("MatMul", [normal(3), normal(3, 2)]),
    Case("MatMul", [normal(2, 3), normal(3)]),
    Case("MatMul", [normal(2, 1, 2, 3), normal(5, 3, 2)]),
    Case("MatMul", [normal(3), normal(2, 3, 4)], opset=9),
    Case("MatMul", [normal(2, 2, 3), normal(3)], opset=1),
    Case("Gemm", [normal(2, 3), normal(3, 4), normal(4)], {"alpha": 0.5, "beta": 2.0}),
    Case("Gemm", [normal(3, 2), normal(4, 3), normal(2, 1)], {"transA": 1, "transB": 1}),
    Case("Gemm", [normal(2, 3), normal(3, 4)], opset=11),
    Case("Gemm", [normal(2, 3), normal(3, 4), normal(1, 4)], {"broadcast": 1}, opset=6),
    *(
        Case("Einsum", inputs, {"equation": equation})
        for equation, inputs in {
            "ij,jk->ik": [normal(2, 3), normal(3, 4)],
            "ij->ji": [normal(2, 3)],
            "ij->": [normal(2, 3)],
            "ii->i": [normal(3, 3)],
            "iij->j": [normal(3, 3, 2)],
            "i,j": [normal(2), normal(3)],
            "bij, bjk, bk -> b": [normal(2, 3, 2), normal(2, 2, 3), normal(2, 3)],
            "...ij,...jk->...ik": [normal(2, 1, 3, 2), normal(1, 4, 2, 2)],
            "ab,bc->a": [normal(2, 1), normal(3, 4)],
            "ii,i->": [normal(2, 2), normal(2)],
            ",i->i": [normal(), normal(3)],
        }.items()
    ),
]

NAMES = ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare")
POSITIVE = ("ReduceLogSum", "ReduceLogSumExp")
REDUCTIONS = [
    *(Case(name, [positive(2, 3, 4), np.array([0, -1])]) for name in NAMES + POSITIVE),
    *(Case(name, [positive(2, 3, 2), np.array([1])], {"keepdims": 0}) for name in NAMES + POSITIVE),
    *(Case(name, [positive(2, 3)], {"keepdims": 0}) for name in NAMES + POSITIVE),
    *(Case(name, [positive(2, 3)], {"noop_with_empty_axes": 1}) for name in NAMES + POSITIVE),
    *(Case(name, [positive(2, 3, 2)], {"axes": [0, 2]}, opset=11) for name in NAMES + POSITIVE),
    *(Case(name, [positive(2, 3, 2)], {"axes": [1], "keepdims": 0}, opset=1) for name in NAMES + POSITIVE),
    Case("ReduceProd", [np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0]]), np.array([1])]),
    Case("ReduceProd", [normal(7)]),
    Case("CumSum", [normal(2, 4), np.array(1)]),
    Case("CumSum", [normal(2, 4), np.array(-2)], {"exclusive": 1, "reverse": 1}, opset=11),
    Case("CumProd", [normal(2, 4), np.array(1)]),
    Case("CumProd", [np.array([2.0, 0.0, 3.0, 0.0, 1.0]), np.array(0)], {"exclusive": 1}),
    Case("CumProd", [normal(3, 2), np.array(0)], {"reverse": 1}),
    Case("CumProd", [normal(3, 2), np.array(0)], {"exclusive": 1, "reverse": 1}),
]

CONVOLUTIONS = [
    Case("Conv", [normal(2, 3, 5), normal(4, 3, 2), normal(4)]),
    Case("Conv", [normal(1, 2, 6, 5), normal(3, 2, 3, 2)], {"strides": [2, 3], "pads": [1, 0, 2, 1]}),
    Case("Conv", [normal(2, 4, 7, 6), normal(6, 2, 2, 3), normal(6)], {"group": 2, "dilations": [2, 1]}),
    Case("Conv", [normal(2, 3, 6), normal(6, 1, 3)], {"group": 3, "strides": [2], "dilations": [2], "pads": [2, 1]}),
    Case("Conv", [normal(1, 2, 5, 6), normal(2, 2, 2, 2)], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    Case("Conv", [normal(1, 2, 5, 6), normal(2, 2, 2, 1)], {"auto_pad": "SAME_LOWER", "strides": [3, 3]}, opset=1),
    Case("Conv", [normal(1, 2, 5, 6), normal(2, 2, 2, 2)], {"auto_pad": "VALID"}, opset=11),
    Case("Conv", [normal(1, 1, 3, 3, 3), normal(2, 1, 2, 2, 2)], {"pads": [1, 0, 0, 0, 1, 0]}),
    Case("Conv", [normal(1, 1, 1), normal(1, 1, 1)], {"pads": [5, 0], "strides": [10]}),
    Case("ConvTranspose", [normal(2, 3, 4), normal(3, 2, 3), normal(2)]),
    Case("ConvTranspose", [normal(1, 4, 3, 2), normal(4, 3, 2, 3), normal(6)], {"group": 2, "strides": [3, 2]}),
    Case(
        "ConvTranspose",
        [normal(1, 2, 3, 3), normal(2, 2, 3, 2)],
        {"strides": [2, 2], "pads": [1, 0, 0, 1], "output_padding": [1, 0], "dilations": [1, 2]},
    ),
    Case("ConvTranspose", [normal(1, 2, 3), normal(2, 1, 4)], {"strides": [2], "auto_pad": "SAME_UPPER"}),
    Case("ConvTranspose", [normal(1, 2, 3), normal(2, 1, 5)], {"strides": [2], "auto_pad": "SAME_LOWER"}),
    Case("ConvTranspose", [normal(1, 2, 3), normal(2, 1, 4)], {"strides": [2], "output_shape": [5]}),
    Case("ConvTranspose", [normal(1, 2, 3), normal(2, 1, 2)], {"strides": [2], "output_shape": [9]}),
    Case("ConvTranspose", [normal(1, 2, 3), normal(2, 1, 4)], {"strides": [2], "output_shape": [5]}, opset=1),
    Case("ConvTranspose", [normal(1, 2, 3), normal(2, 1, 2)], {"output_padding": [3]}, opset=1),
]


CASES = [*MATRICES, *REDUCTIONS, *CONVOLUTIONS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", in_16_bits(CASES), ids=str)
def test_derivatives_in_16_bits(case: Case) -> None:
    check_in_16_bits(case)
