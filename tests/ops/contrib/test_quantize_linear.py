"""QuantizeLinear and DequantizeLinear of com.microsoft."""

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.codes import F32, scale
from ops.contrib.nodes import assert_agree, ours

import onnxeval

BYTES_AND_WORDS = [np.uint8, np.int8, np.uint16, np.int16]
HALF_BYTES = [ml_dtypes.uint4, ml_dtypes.int4]
X = (np.random.default_rng(0).standard_normal((3, 4, 5)) * 3).astype(F32)
COLUMNS = np.array([0.021, 0.033, 0.27, 0.4], F32)


def range_of(dtype):
    limits = ml_dtypes.iinfo(dtype) if dtype in HALF_BYTES else np.iinfo(dtype)
    return int(limits.min), int(limits.max)


@pytest.mark.parametrize("dtype", [*BYTES_AND_WORDS, *HALF_BYTES])
@pytest.mark.parametrize("axis", [None, 1, -2])
@pytest.mark.parametrize("real", [F32, np.float16])
def test_quantize(dtype, axis, real) -> None:
    x, columns = X.astype(real), COLUMNS.astype(real)
    zero_point = np.arange(4).astype(dtype)
    given = ours("QuantizeLinear", [x, columns, zero_point], axis=axis)
    places = x.astype(float) / columns.astype(float)[:, None] + np.arange(4)[:, None]
    assert given.dtype == dtype
    np.testing.assert_allclose(given.astype(float), np.clip(places, *range_of(dtype)), rtol=0, atol=0.501)
    if dtype in BYTES_AND_WORDS:
        assert_agree("QuantizeLinear", [x, columns, zero_point], axis=axis, rtol=0, atol=0)


def test_quantize_by_one_scale() -> None:
    x = np.array([-3, -1, 1, 3, 5, 1e9, np.inf], F32)
    given = ours("QuantizeLinear", [x, scale(2)])
    assert given.dtype == np.uint8
    assert given.tolist() == [0, 0, 0, 2, 2, 255, 255]
    given = ours("QuantizeLinear", [x, scale(2), np.array(-7, np.int16)])
    assert given.tolist() == [-9, -7, -7, -5, -5, 32767, 32767]


@pytest.mark.parametrize("dtype", [*BYTES_AND_WORDS, *HALF_BYTES])
@pytest.mark.parametrize("axis", [None, 1, -2])
@pytest.mark.parametrize("real", [F32, np.float16])
def test_dequantize(dtype, axis, real) -> None:
    low, high = range_of(dtype)
    x = np.random.default_rng(1).integers(low, high + 1, (3, 4, 5))
    inputs = [x.astype(dtype), COLUMNS.astype(real), np.arange(4).astype(dtype)]
    given = ours("DequantizeLinear", inputs, axis=axis)
    wanted = (x - np.arange(4)[:, None]) * inputs[1].astype(float)[:, None]
    assert given.dtype == real
    np.testing.assert_allclose(given.astype(float), wanted, rtol=1e-6 if real == F32 else 1e-3)
    assert_agree("DequantizeLinear", inputs, axis=axis, constants=(0, 2), rtol=0, atol=0)


def test_dequantize_words_of_32_bits() -> None:
    x = np.array([0, 3, -7, 2**30, -(2**31)], np.int32)
    assert ours("DequantizeLinear", [x, scale(0.5)]).tolist() == [0, 1.5, -3.5, 2.0**29, -(2.0**30)]
    assert ours("DequantizeLinear", [x[:3], scale(0.5), np.array(3, np.int32)]).tolist() == [-1.5, 0, -5]
    assert_agree("DequantizeLinear", [x[:4], scale(0.5), np.array(3, np.int32)])
    # Nothing wraps around: -2^31 - 3 is no number of 32 bits.
    assert ours("DequantizeLinear", [x[4:], scale(1), np.array(3, np.int32)]).item() == np.float32(-(2.0**31) - 3)


@pytest.mark.parametrize("dtype", [*BYTES_AND_WORDS, *HALF_BYTES])
@pytest.mark.parametrize(("axis", "size", "blocks"), [(2, 3, (3, 4, 2)), (1, 2, (3, 2, 5)), (-3, 3, (1, 4, 5))])
def test_blocks(dtype, axis, size, blocks) -> None:
    """onnxruntime's quantizer writes such nodes, and its own checker refuses them: the formula is the standard's."""
    low, high = range_of(dtype)
    draw = np.random.default_rng(2)
    scales = draw.uniform(0.1, 0.5, blocks).astype(F32)
    zero_points = draw.integers(0, 4, blocks).astype(dtype)
    block_of = np.minimum(np.arange(X.shape[axis]) // size, blocks[axis] - 1)
    each, offset = (np.take(part.astype(float), block_of, axis) for part in (scales, zero_points))
    codes = ours("QuantizeLinear", [X, scales, zero_points], axis=axis, block_size=size)
    assert codes.dtype == dtype
    np.testing.assert_allclose(codes.astype(float), np.clip(X / each + offset, low, high), rtol=0, atol=0.501)
    numbers = ours("DequantizeLinear", [codes, scales, zero_points], axis=axis, block_size=size)
    np.testing.assert_allclose(numbers, (codes.astype(float) - offset) * each, rtol=1e-6)


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ([X, COLUMNS, np.zeros(3, np.int8)], {}, "zero point is of shape"),
        ([X, COLUMNS, np.zeros(4, np.int8)], {"axis": 0}, "the scale has 4 elements, axis 0 of the tensor 3"),
        ([X, scale(1).astype(np.float16)], {}, "both have one type"),
        ([X.astype(float), np.float64(1) * np.ones(1)], {}, "is float64, allowed: float32, float16"),
    ],
)
def test_refusals(inputs, attributes, message) -> None:
    with pytest.raises(onnxeval.NodeError, match=message):
        ours("QuantizeLinear", inputs, **attributes)
