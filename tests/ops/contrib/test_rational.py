"""The curves of quantized recurrences against their limits, and to the last bit against onnxruntime's."""

import numpy as np
import pytest
from ops.contrib.nodes import theirs

from onnxeval.ops.contrib._rational import rational_sigmoid, rational_tanh

F32 = np.float32

# What onnxruntime 1.32's Tanh and Sigmoid make of POINTS on a processor with fused multiply-adds, bit for bit.
POINTS = [-30, -18, -17.5, -9, -8.5, -3, -1, -0.6, -1e-3, 0, 1e-20, 1e-5, 0.3, 0.625, 1.7, 2.9, 5, 8.999, 17.9, np.inf]
TANH = """bf800000 bf800000 bf800000 bf800000 bf7ffffe bf7ebbe8 bf42f7d6 bf097c15 ba83126b 00000000
          1e3ce507 3727c5ab 3e9526ed 3f0dfa3f 3f6f76f8 3f7e7461 3f7ffa0c 3f800001 3f800000 3f800000"""
SIGMOID = """00000000 00000000 33000000 39016000 39555800 3d4241a0 3e89b2b1 3eb56c8a 3effdf3b 3f000000
             3f000000 3f00002a 3f130eaa 3f26bf31 3f5874f7 3f72a612 3f7e4960 3f7ff7e7 3f800000 3f800000"""


def applied(curve, x):
    return curve(x, np.empty_like(x))


@pytest.mark.parametrize(("curve", "bits"), [(rational_tanh, TANH), (rational_sigmoid, SIGMOID)])
def test_known_bits(curve, bits) -> None:
    given = applied(curve, np.array(POINTS, F32))
    assert [f"{word:08x}" for word in given.view(np.uint32)] == bits.split()


@pytest.mark.parametrize(
    ("curve", "exact", "within"),
    [(rational_tanh, np.tanh, 4e-7), (rational_sigmoid, lambda x: 1 / (1 + np.exp(-x)), 2e-7)],
)
def test_close_to_the_curve(curve, exact, within) -> None:
    x = np.linspace(-25, 25, 200_001, dtype=F32)
    np.testing.assert_allclose(applied(curve, x), exact(x.astype(float)), rtol=0, atol=within)
    assert np.isnan(applied(curve, np.array([np.nan], F32)))


@pytest.mark.parametrize(("curve", "op_type"), [(rational_tanh, "Tanh"), (rational_sigmoid, "Sigmoid")])
def test_onnxruntime(curve, op_type) -> None:
    x = np.random.default_rng(0).standard_normal(100_000).astype(F32) * 6
    np.testing.assert_array_equal(applied(curve, x), theirs(op_type, [x], domain=""))
