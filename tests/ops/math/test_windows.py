"""Windows, the mel weights and determinants."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from onnxeval.dtypes import dtype_of
from onnxeval.registry import STANDARD

STANDARD.load_section("math")
COSINES = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}
TYPES = {
    name: TensorProto.DataType.Value(name)
    for name in ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT8", "INT32", "INT64", "UINT8", "UINT64"]
}


def window(name, size, *, periodic=1, output_datatype=TensorProto.DOUBLE):
    kernel = STANDARD["", name, 17]
    return kernel(np.array(size), periodic=periodic, output_datatype=output_datatype, allocate=np.empty)


@pytest.mark.parametrize("name", COSINES)
@pytest.mark.parametrize(("size", "periodic"), [(0, 0), (2, 0), (5, 0), (8, 0), (0, 1), (1, 1), (2, 1), (5, 1), (8, 1)])
def test_windows(name, size, periodic):
    a, b, c = COSINES[name]
    result = window(name, size, periodic=periodic)
    around = size if periodic else size - 1
    expected = [
        a - b * math.cos(2 * math.pi * i / around) + c * math.cos(4 * math.pi * i / around) for i in range(size)
    ]
    assert result.shape == (size,)
    np.testing.assert_allclose(result, expected, atol=1e-15)


@pytest.mark.parametrize("name", COSINES)
def test_a_symmetric_window_of_one(name):
    assert np.isnan(window(name, 1, periodic=0)).tolist() == [True]  # as 0 / 0 in the function body


@pytest.mark.parametrize("name", COSINES)
@pytest.mark.parametrize("element_type", TYPES)
def test_window_types(name, element_type):
    result = window(name, 4, output_datatype=TYPES[element_type])
    dtype = dtype_of(TYPES[element_type])
    assert result.dtype == dtype
    single = window(name, 4).astype(np.float32)
    expected = np.trunc(single) if dtype.kind in "iu" else single.astype(dtype)
    np.testing.assert_allclose(result.astype(float), expected.astype(float), rtol=1e-7)


@pytest.mark.parametrize("name", COSINES)
def test_the_peak_of_an_integer_window(name):
    assert window(name, 8, output_datatype=TensorProto.INT64).tolist() == [0, 0, 0, 0, 1, 0, 0, 0]


def test_window_sizes():
    with pytest.raises(ValueError, match="size -1 is negative"):
        window("HannWindow", -1)
    with pytest.raises(ValueError, match="size must be a scalar"):
        window("HannWindow", [2, 3])


def mel(bands, length, rate, low, high, output_datatype=TensorProto.FLOAT):
    inputs = [np.array(bands), np.array(length), np.array(rate), np.float32([low]), np.float32([high])]
    return STANDARD["", "MelWeightMatrix", 17](*inputs, output_datatype=output_datatype, allocate=np.empty)


@pytest.mark.parametrize(
    ("bands", "length", "rate", "low", "high"),
    [(8, 16, 8192, 0, 4096), (20, 64, 8000, 100, 4000), (3, 33, 100, 10, 50), (5, 8, 16000, 0, 8000), (0, 8, 8, 1, 2)],
)
def test_mel_triangles(bands, length, rate, low, high):
    result = mel(bands, length, rate, low, high)
    assert result.shape == (length // 2 + 1, bands)
    bottom, top = (2595 * math.log10(1 + f / 700) for f in (low, high))
    corners = [bottom + i * (top - bottom) / (bands + 2) for i in range(bands + 2)]
    bins = [int((length + 1) * 700 * (10 ** (m / 2595) - 1) // rate) for m in corners]
    expected = np.zeros((length // 2 + 1, bands))
    for band in range(bands):
        left, centre, right = bins[band : band + 3]
        for i in range(length // 2 + 1):
            if i == centre:
                expected[i, band] = 1
            elif left <= i < centre:
                expected[i, band] = (i - left) / (centre - left)
            elif centre < i < right:
                expected[i, band] = (right - i) / (right - centre)
    np.testing.assert_allclose(result, expected, atol=1e-6)
    assert mel(bands, length, rate, low, high, TensorProto.INT32).tolist() == np.trunc(expected).tolist()


@pytest.mark.parametrize(
    "values",
    [(-1, 8, 8, 1, 2), (4, 0, 8, 1, 2), (4, 8, 0, 1, 2), (4, 8, 8, 3, 2), (4, 8, 8, -1, 2), (4, 8, 8, 0, math.nan)],
)
def test_mel_refuses(values):
    with pytest.raises(ValueError, match=r"must be positive|rising order"):
        mel(*values)


def cofactors(matrix: list[list[float]]) -> float:
    if not matrix:
        return 1
    return sum(
        (-1) ** i * first * cofactors([row[:i] + row[i + 1 :] for row in matrix[1:]])
        for i, first in enumerate(matrix[0])
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (3, 3), (2, 4, 4), (2, 0, 2, 2)])
def test_determinants(dtype, shape):
    x = np.random.default_rng(0).integers(-2, 3, shape).astype(dtype)
    result = np.asarray(STANDARD["", "Det", 22](x))
    assert (result.dtype, result.shape) == (dtype, shape[:-2])
    for place in np.ndindex(shape[:-2]):
        np.testing.assert_allclose(
            result[place].astype(float), cofactors(x[place].astype(float).tolist()), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("shape", [(3,), (2, 3), ()])
def test_only_squares_have_a_determinant(shape):
    with pytest.raises(ValueError, match="square"):
        STANDARD["", "Det", 11](np.ones(shape))
