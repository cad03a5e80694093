"""Softmax, LogSoftmax and Hardmax: one axis since 13, whole rows of a flattened matrix before."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.math import softmax as _  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
NAMES = ["Softmax", "LogSoftmax", "Hardmax"]


def of_a_row(name: str, row: list[float]) -> list[float]:
    if name == "Hardmax":
        first = row.index(max(row))
        return [float(i == first) for i in range(len(row))]
    total = sum(math.exp(value) for value in row)
    return [math.exp(v) / total if name == "Softmax" else math.log(math.exp(v) / total) for v in row]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 2])
def test_along_an_axis(name, dtype, axis):
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(dtype)
    result = STANDARD["", name, 13](x, axis=axis)
    assert result.dtype == dtype
    expected = np.apply_along_axis(lambda row: of_a_row(name, row.tolist()), axis, x.astype(float))
    digits = {np.float16: 2**-10, ml_dtypes.bfloat16: 2**-7, np.float32: 1e-6, np.float64: 1e-14}[dtype]
    np.testing.assert_allclose(result.astype(float), expected, rtol=digits, atol=digits)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", [1, 11])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_whole_rows_before_13(name, version, axis):
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    result = STANDARD["", name, version](x, axis=axis)
    rows = math.prod(x.shape[: axis % 3])
    expected = np.array([of_a_row(name, row.tolist()) for row in x.reshape(rows, -1)]).reshape(x.shape)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", [1, 11, 13])
def test_empty(name, version):
    for shape in [(5, 0, 0), (0, 3), (3, 0)]:
        assert STANDARD["", name, version](np.zeros(shape, np.float32), axis=1).shape == shape


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", [1, 11, 13])
@pytest.mark.parametrize(("shape", "axis"), [((2, 3), 2), ((2, 3), -3), ((), 0), ((4,), 1)])
def test_axis_out_of_range(name, version, shape, axis):
    with pytest.raises(ValueError, match=f"axis {axis} is outside"):
        STANDARD["", name, version](np.zeros(shape, np.float32), axis=axis)


def test_large_numbers():
    x = np.array([[1000, 999, -1000]], np.float32)
    np.testing.assert_allclose(STANDARD["", "Softmax", 13](x, axis=1), [[0.7310586, 0.26894143, 0]], rtol=1e-6)
    np.testing.assert_allclose(
        STANDARD["", "LogSoftmax", 13](x, axis=1), [[-0.31326166, -1.31326166, -2000.3133]], rtol=1e-6
    )
    masked = np.array([0, -np.inf], np.float16)
    assert STANDARD["", "Softmax", 13](masked, axis=0).tolist() == [1, 0]
    assert STANDARD["", "LogSoftmax", 13](masked, axis=0).tolist() == [0, -np.inf]


@pytest.mark.parametrize("dtype", FLOATS)
def test_hardmax_takes_the_first(dtype):
    x = np.array([[1, 3, 3], [2, 2, 2], [-np.inf] * 3], dtype)
    result = STANDARD["", "Hardmax", 13](x, axis=-1)
    assert result.dtype == dtype
    assert result.astype(float).tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0]]


def test_float16_sums_in_float32():
    x = np.zeros(4096, np.float16)
    assert set(STANDARD["", "Softmax", 13](x, axis=0).tolist()) == {1 / 4096}
