from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.nn import instance_norm, layer_norm, lp_norm, lrn  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT, FLOAT16, DOUBLE, BFLOAT = 1, 10, 11, 16  # element types
RNG = np.random.default_rng(3)


def kernel(name, version):
    return STANDARD["", name, version]


def standard(values, epsilon):
    """A list of numbers, standardised in double precision."""
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / len(values)
    return [(v - mean) / (variance + epsilon) ** 0.5 for v in values]


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 2, 3, 2), (2, 2, 2, 1, 3)])
@pytest.mark.parametrize("version", [1, 6, 22])
def test_instance_normalization(shape, version):
    x = RNG.normal(size=shape).astype(np.float32)
    scale, bias = RNG.normal(size=(2, shape[1])).astype(np.float32)
    y = kernel("InstanceNormalization", version)(x, scale, bias, epsilon=1e-2)
    for n, c in np.ndindex(shape[:2]):
        expected = [float(scale[c]) * v + float(bias[c]) for v in standard([float(v) for v in x[n, c].ravel()], 1e-2)]
        np.testing.assert_allclose(y[n, c].ravel(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16, np.float64])
def test_instance_normalization_types(dtype):
    x = np.array([[[60000, 58000]]], np.float32).astype(dtype)
    y = kernel("InstanceNormalization", 22)(x, np.ones(1, dtype), np.zeros(1, dtype), epsilon=0.0)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(np.float32), [[[1, -1]]])


@pytest.mark.parametrize("shape", [(2, 4), (2, 6, 3), (1, 4, 2, 3)])
@pytest.mark.parametrize("num_groups", [1, 2])
def test_group_normalization(shape, num_groups):
    x = RNG.normal(size=shape).astype(np.float32)
    scale, bias = RNG.normal(size=(2, shape[1])).astype(np.float32)
    grouped = RNG.normal(size=(2, num_groups)).astype(np.float32)
    y = kernel("GroupNormalization", 21)(x, scale, bias, num_groups=num_groups, epsilon=1e-2, stash_type=FLOAT)
    per_group = kernel("GroupNormalization", 18)(x, *grouped, num_groups=num_groups, epsilon=1e-2)
    size = shape[1] // num_groups
    for n, g in itertools.product(range(shape[0]), range(num_groups)):
        channels = slice(g * size, (g + 1) * size)
        normal = np.array(standard([float(v) for v in x[n, channels].ravel()], 1e-2)).reshape(x[n, channels].shape)
        broadcast = (size,) + (1,) * (len(shape) - 2)
        expected = normal * scale[channels].reshape(broadcast) + bias[channels].reshape(broadcast)
        np.testing.assert_allclose(y[n, channels], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(per_group[n, channels], normal * grouped[0, g] + grouped[1, g], rtol=1e-5, atol=1e-5)


def test_group_normalization_rounds_between_the_stages():
    """Stage one ends in the type of x; the second stage multiplies and adds in it."""
    x = RNG.normal(size=(2, 4, 5)).astype(np.float16)
    scale, bias = RNG.normal(size=(2, 4)).astype(np.float16)
    y = kernel("GroupNormalization", 21)(x, scale, bias, num_groups=2, epsilon=1e-5, stash_type=FLOAT)
    wide = x.astype(np.float32)
    unit = kernel("GroupNormalization", 21)(
        wide, np.ones(4, np.float32), np.zeros(4, np.float32), num_groups=2, epsilon=1e-5, stash_type=FLOAT
    )
    expected = scale[:, None] * unit.astype(np.float16) + bias[:, None]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("stash_type", [FLOAT, FLOAT16, DOUBLE, BFLOAT])
def test_group_normalization_stash_types(stash_type):
    x = RNG.normal(size=(1, 2, 8)).astype(BFLOAT16)
    y = kernel("GroupNormalization", 21)(
        x, np.ones(2, BFLOAT16), np.zeros(2, BFLOAT16), num_groups=1, epsilon=1e-5, stash_type=stash_type
    )
    expected = standard([float(v) for v in x.ravel()], 1e-5)
    assert y.dtype == BFLOAT16
    np.testing.assert_allclose(y.ravel().astype(np.float64), expected, rtol=0.03, atol=0.01)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_layer_normalization(axis):
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    shape = x.shape[axis:]
    scale, bias = RNG.normal(size=(2, *shape)).astype(np.float32)
    y, mean, inverse = kernel("LayerNormalization", 17)(x, scale, bias, axis=axis, epsilon=1e-2, stash_type=FLOAT)
    first = axis % 3
    assert mean.shape == inverse.shape == x.shape[:first] + (1,) * (3 - first)
    for lead in np.ndindex(x.shape[:first]):
        values = [float(v) for v in x[lead].ravel()]
        normal = np.array(standard(values, 1e-2)).reshape(shape)
        np.testing.assert_allclose(y[lead], normal * scale + bias, rtol=1e-5, atol=1e-5)
        average = sum(values) / len(values)
        variance = sum((v - average) ** 2 for v in values) / len(values)
        np.testing.assert_allclose(mean[lead].item(), average, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(inverse[lead].item(), (variance + 1e-2) ** -0.5, rtol=1e-5)


def test_layer_normalization_scale_broadcasts():
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    run = kernel("LayerNormalization", 17)
    scale = RNG.normal(size=(3, 1)).astype(np.float32)
    y, *_ = run(x, scale, None, axis=-1, epsilon=1e-5, stash_type=FLOAT)
    unit, *_ = run(x, np.ones((), np.float32), None, axis=-1, epsilon=1e-5, stash_type=FLOAT)
    np.testing.assert_array_equal(y, unit * scale)
    with pytest.raises(ValueError, match=r"Scale of shape \[2, 2, 3, 4\]"):
        run(x, np.ones((2, 2, 3, 4), np.float32), None, axis=-1, epsilon=1e-5, stash_type=FLOAT)
    with pytest.raises(ValueError, match=r"B of shape \[3\]"):
        run(x, scale, np.ones(3, np.float32), axis=-1, epsilon=1e-5, stash_type=FLOAT)


def test_layer_normalization_takes_its_statistics_in_the_stash_type():
    x = np.array([[1e5, 1e5 + 1e-3, 1e5 + 2e-3, 1e5 + 3e-3]])  # differ in float64, equal in float32
    y, mean, inverse = kernel("LayerNormalization", 17)(x, np.ones(4), None, axis=-1, epsilon=1.0, stash_type=FLOAT)
    assert (y.dtype, mean.dtype, inverse.dtype) == (np.float64, np.float32, np.float32)
    np.testing.assert_array_equal(y, np.zeros((1, 4)))
    half = np.array([[300, -300, 100, -100]], np.float16)  # squares overflow float16
    y, mean, inverse = kernel("LayerNormalization", 17)(
        half, np.ones(4, np.float16), None, axis=-1, epsilon=0.0, stash_type=BFLOAT
    )
    assert (y.dtype, mean.dtype, inverse.dtype) == (np.float16, BFLOAT16, BFLOAT16)
    np.testing.assert_allclose(y.astype(np.float64), half.astype(np.float64) / 50000**0.5, rtol=0.01)
    with pytest.raises(ValueError, match="stash_type 11 is float64, expected float32 or bfloat16"):
        kernel("LayerNormalization", 17)(x, np.ones(4), None, axis=-1, epsilon=1.0, stash_type=DOUBLE)


@pytest.mark.parametrize("version", [9, 13])
@pytest.mark.parametrize("axes", [(0, 2, 3), (-1,), (0, 1, 2, 3), ()])
def test_mean_variance_normalization(version, axes):
    x = RNG.normal(size=(2, 3, 2, 2)).astype(np.float32)
    y = kernel("MeanVarianceNormalization", version)(x, axes=axes)
    reduced = {axis % 4 for axis in axes or range(4)}
    kept = [range(size) if axis not in reduced else [slice(None)] for axis, size in enumerate(x.shape)]
    for index in itertools.product(*kept):
        expected = standard([float(v) for v in x[index].ravel()], 0.0)
        np.testing.assert_allclose(y[index].ravel(), expected, rtol=1e-4, atol=1e-5)


def test_mean_variance_normalization_of_a_constant_is_zero():
    y = kernel("MeanVarianceNormalization", 13)(np.full((2, 2), 7, np.float16), axes=(0, 1))
    np.testing.assert_array_equal(y, np.zeros((2, 2), np.float16))


@pytest.mark.parametrize("version", [1, 22])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lp_normalization(version, p, axis):
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    y = kernel("LpNormalization", version)(x, axis=axis, p=p)
    for row, result in zip(np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1), strict=True):
        norm = sum(abs(float(v)) ** p for v in row) ** (1 / p)
        np.testing.assert_allclose(result, [float(v) / norm for v in row], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16, np.float32, np.float64])
def test_lp_normalization_of_extremes(dtype):
    largest, least = ml_dtypes.finfo(dtype).max, ml_dtypes.finfo(dtype).smallest_subnormal
    x = np.array([[largest, -largest], [least, least], [0, -0.0]], dtype)
    run = kernel("LpNormalization", 22)
    half = np.float64(0.5) ** 0.5
    np.testing.assert_allclose(
        run(x, axis=-1, p=2).astype(np.float64), [[half, -half], [half, half], [0, 0]], rtol=4e-3
    )
    np.testing.assert_array_equal(run(x, axis=-1, p=1).astype(np.float64), [[0.5, -0.5], [0.5, 0.5], [0, 0]])


def test_lp_normalization_of_infinities_and_nothing():
    run = kernel("LpNormalization", 22)
    with np.errstate(invalid="ignore"):
        y = run(np.array([[np.inf, 1], [np.nan, 1]], np.float32), axis=1, p=2)
    np.testing.assert_array_equal(y, [[np.nan, 0], [np.nan, np.nan]])
    assert run(np.zeros((3, 0), np.float32), axis=1, p=2).shape == (3, 0)
    with pytest.raises(ValueError, match="p 3"):
        run(np.ones((2, 2)), axis=1, p=3)


def in_window(i, c, size, channels):
    """The text: max(0, c - floor((size - 1) / 2)) <= i <= min(C - 1, c + ceil((size - 1) / 2))."""
    return max(0, c - (size - 1) // 2) <= i <= min(channels - 1, c + -(-(size - 1) // 2))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 12, 10**12])
@pytest.mark.parametrize("shape", [(2, 5), (1, 5, 3), (2, 4, 2, 2)])
def test_lrn(size, shape):
    x = RNG.normal(size=shape)
    for version in (1, 13):
        y = kernel("LRN", version)(x, size=size, alpha=0.7, beta=0.6, bias=1.5)
        for n, c in np.ndindex(shape[:2]):
            energy = sum(x[n, i] ** 2 for i in range(shape[1]) if in_window(i, c, size, shape[1]))
            np.testing.assert_allclose(y[n, c], x[n, c] / (1.5 + 0.7 / size * energy) ** 0.6, rtol=1e-12)


def test_lrn_in_half_precision_squares_in_float32():
    y = kernel("LRN", 13)(np.full((1, 1), 300, np.float16), size=1, alpha=1.0, beta=0.5, bias=0.0)
    np.testing.assert_array_equal(y, np.ones((1, 1), np.float16))


@pytest.mark.parametrize(
    ("name", "version", "x", "others", "attributes", "message"),
    [
        ("InstanceNormalization", 22, (2, 3), [3, 3], {"epsilon": 1.0}, "rank 2"),
        ("InstanceNormalization", 22, (2, 3, 4), [2, 3], {"epsilon": 1.0}, r"scale has shape \[2\], expected \[3\]"),
        ("GroupNormalization", 18, (2, 3), [2, 2], {"epsilon": 1.0, "num_groups": 2}, "num_groups 2 does not divide"),
        ("GroupNormalization", 18, (2, 4), [4, 4], {"epsilon": 1.0, "num_groups": 2}, r"expected \[2\]"),
        (
            "GroupNormalization",
            21,
            (2, 4),
            [2, 2],
            {"epsilon": 1.0, "num_groups": 2, "stash_type": 1},
            r"expected \[4\]",
        ),
        (
            "GroupNormalization",
            21,
            (2, 4),
            [4, 4],
            {"epsilon": 1.0, "num_groups": 0, "stash_type": 1},
            "num_groups 0",
        ),
        (
            "GroupNormalization",
            21,
            (2, 4),
            [4, 4],
            {"epsilon": 1.0, "num_groups": 2, "stash_type": 7},
            "stash_type 7 is int64",
        ),
        ("MeanVarianceNormalization", 13, (2, 3), [], {"axes": (0, 2)}, "axes 2 is outside"),
        ("LRN", 13, (2,), [], {"size": 1, "alpha": 1.0, "beta": 1.0, "bias": 1.0}, "rank 1"),
        ("LRN", 13, (2, 2), [], {"size": 0, "alpha": 1.0, "beta": 1.0, "bias": 1.0}, "size 0"),
    ],
)
def test_refusals(name, version, x, others, attributes, message):
    with pytest.raises(ValueError, match=message):
        kernel(name, version)(np.ones(x, np.float32), *(np.ones(n, np.float32) for n in others), **attributes)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rms_normalization(axis):
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    scale = RNG.normal(size=x.shape[axis:]).astype(np.float32)
    y = kernel("RMSNormalization", 23)(x, scale, axis=axis, epsilon=1e-2, stash_type=FLOAT)
    for lead in np.ndindex(x.shape[: axis % 3]):
        values = [float(v) for v in x[lead].ravel()]
        root = (sum(v * v for v in values) / len(values) + 1e-2) ** 0.5
        np.testing.assert_allclose(y[lead], x[lead] / root * scale, rtol=1e-5, atol=1e-6)


def test_rms_normalization_types():
    x = np.array([[300, 400]], np.float16)  # squares overflow float16
    run = kernel("RMSNormalization", 23)
    for stash_type in (FLOAT, DOUBLE, BFLOAT):
        y = run(x, np.ones(2, np.float64), axis=-1, epsilon=0.0, stash_type=stash_type)
        assert y.dtype == np.float64
        np.testing.assert_allclose(y, np.array([[0.6, 0.8]]) * 2**0.5, rtol=1e-2)
    exact = run(x, np.ones(2, np.float64), axis=-1, epsilon=0.0, stash_type=FLOAT)
    np.testing.assert_array_equal(exact, exact.astype(np.float16))  # stage one ends in the type of x
    with pytest.raises(ValueError, match="stash_type 7 is int64"):
        run(x, np.ones(2, np.float16), axis=-1, epsilon=0.0, stash_type=7)
    with pytest.raises(ValueError, match=r"scale of shape \[3\]"):
        run(x, np.ones(3, np.float16), axis=-1, epsilon=0.0, stash_type=FLOAT)
