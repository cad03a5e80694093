"""Channels last: the same as channels first with the axes moved."""

import numpy as np
import pytest
from ops.contrib.codes import BYTES, F32, draw
from ops.contrib.nodes import assert_agree, ours

import onnxeval

WINDOWS = [
    {"kernel_shape": [3, 2]},
    {"kernel_shape": [3, 3], "pads": [1, 1, 1, 0], "strides": [2, 1]},
    {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [2, 2], "dilations": [2, 1]},
]


def first(x):
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def last(x):
    return np.moveaxis(x, 1, -1)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("case", range(len(WINDOWS)))
def test_max_pool(case, dtype) -> None:
    x = draw((2, 7, 6, 3), dtype)
    given = ours("NhwcMaxPool", [x], **WINDOWS[case])
    wanted = ours("MaxPool", [first(x)], domain="", **WINDOWS[case])
    np.testing.assert_array_equal(given, last(wanted))
    assert given.dtype == dtype


def test_max_pool_of_whole_planes() -> None:
    x = draw((2, 3, 4, 5), np.uint8)
    given = ours("NhwcMaxPool", [x], kernel_shape=[3, 4])
    np.testing.assert_array_equal(given, x.max(axis=(1, 2), keepdims=True))


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("case", range(len(WINDOWS)))
def test_max_pool_as_onnxruntime(case, dtype) -> None:
    assert_agree("NhwcMaxPool", [draw((2, 7, 6, 3), dtype)], rtol=0, atol=0, **WINDOWS[case])


@pytest.mark.parametrize("dtype", [np.float16, F32, np.float64])
@pytest.mark.parametrize("group", [1, 2])
def test_conv(dtype, group) -> None:
    random = np.random.default_rng(0)
    x, w, b = (random.standard_normal(shape).astype(dtype) for shape in ((2, 6, 5, 4), (6, 4 // group, 1, 1), (6,)))
    given = ours("NhwcConv", [x, w, b], group=group, strides=[2, 1])
    full = np.zeros((6, 4))
    for m in range(6):
        place = m // (6 // group) * (4 // group)
        full[m, place : place + 4 // group] = w[m, :, 0, 0]
    assert given.dtype == dtype
    tolerance = 1e-2 if dtype == np.float16 else 1e-4
    np.testing.assert_allclose(given, x[:, ::2].astype(float) @ full.T + b, rtol=tolerance, atol=tolerance)


def test_conv_with_a_sum_and_an_activation() -> None:
    random = np.random.default_rng(0)
    x, w, b = (random.standard_normal(shape).astype(F32) for shape in ((1, 6, 5, 4), (3, 4, 3, 3), (3,)))
    z = random.standard_normal((1, 4, 3, 3)).astype(F32)
    plain = ours("Conv", [first(x), w, b], domain="")
    given = ours("NhwcFusedConv", [x, w, b, z], activation="Relu")
    np.testing.assert_allclose(given, np.maximum(last(plain) + z, 0), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(ours("NhwcFusedConv", [x, w]), ours("NhwcConv", [x, w]))
    with pytest.raises(onnxeval.NodeError, match="Z has shape"):
        ours("NhwcFusedConv", [x, w, b, z[:, :2]])


def test_refusals() -> None:
    with pytest.raises(onnxeval.NodeError, match=r"the input has shape \[2, 3\], expected rank 3"):
        ours("NhwcMaxPool", [draw((2, 3), np.uint8)], kernel_shape=[1])
    with pytest.raises(onnxeval.NodeError, match="is float32, allowed: uint8, int8"):
        ours("NhwcMaxPool", [np.ones((1, 3, 3, 2), F32)], kernel_shape=[1, 1])
