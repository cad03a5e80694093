"""GridSample and AffineGrid against loops over the positions, written from the texts."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.tensor.affine_grid import affine_grid
from onnxeval.ops.tensor.grid_sample import grid_sample, grid_sample_16

MODES = ["linear", "nearest", "cubic"]
PADDINGS = ["zeros", "border", "reflection"]


def sampled(x, grid, *, mode="linear", padding_mode="zeros", align_corners=0):
    return grid_sample(x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)


def reflect(position, low, high):
    """Reflected by either border as long as it is out of bounds."""
    if low == high:
        return low
    while not low <= position <= high:
        position = 2 * low - position if position < low else 2 * high - position
    return position


def element(x, at, padding_mode, align_corners):
    """The element at whole positions, which may be out of bounds."""
    place = []
    for a, size in zip(at, x.shape, strict=True):
        if 0 <= a < size:
            place.append(a)
        elif padding_mode == "zeros":
            return 0
        elif padding_mode == "border":
            place.append(min(max(a, 0), size - 1))
        else:
            place.append(int(reflect(a, 0, size - 1) if align_corners else reflect(a, -0.5, size - 0.5)))
    return x[tuple(place)]


def cubic_weight(distance, a=-0.75):
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0


def looped(x, grid, mode, padding_mode, align_corners):
    rank = x.ndim - 2
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *place in np.ndindex(grid.shape[:-1]):
        position = []
        for axis in range(rank):
            coordinate, size = float(grid[(n, *place, rank - 1 - axis)]), x.shape[2 + axis]
            at = (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2
            if padding_mode == "reflection":
                at = reflect(at, 0, size - 1) if align_corners else reflect(at, -0.5, size - 0.5)
            position.append(at)
        for c in range(x.shape[1]):
            if mode == "nearest":
                y[(n, c, *place)] = element(x[n, c], [round(at) for at in position], padding_mode, align_corners)
                continue
            offsets = range(2) if mode == "linear" else range(-1, 3)
            for corner in itertools.product(offsets, repeat=rank):
                whole = [math.floor(at) + offset for at, offset in zip(position, corner, strict=True)]
                weigh = cubic_weight if mode == "cubic" else lambda distance: 1 - abs(distance)
                weight = math.prod(weigh(at - w) for at, w in zip(position, whole, strict=True))
                y[(n, c, *place)] += weight * float(element(x[n, c], whole, padding_mode, align_corners))
    return y


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding_mode", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [(5,), (4, 3), (1, 4), (3, 2, 4)])
def test_grid_sample(sizes, mode, padding_mode, align_corners):
    numbers = np.random.default_rng(len(sizes))
    x = numbers.standard_normal((2, 2, *sizes)).astype(np.float32)
    grid = numbers.uniform(-2.2, 2.2, (2, *(3 for _ in sizes), len(sizes))).astype(np.float32)
    y = sampled(x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, looped(x, grid, mode, padding_mode, align_corners), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("align_corners", [0, 1])
def test_version_16_names_its_modes_differently(align_corners):
    numbers = np.random.default_rng(8)
    x = numbers.standard_normal((1, 2, 4, 5)).astype(np.float32)
    grid = numbers.uniform(-1.3, 1.3, (1, 3, 2, 2)).astype(np.float32)
    for old, new in (("bilinear", "linear"), ("bicubic", "cubic"), ("nearest", "nearest")):
        more = {"padding_mode": "border", "align_corners": align_corners}
        np.testing.assert_array_equal(grid_sample_16(x, grid, mode=old, **more), sampled(x, grid, mode=new, **more))
        with pytest.raises(ValueError, match="rank 3"):
            grid_sample_16(x[0], grid, mode=old, **more)
    with pytest.raises(ValueError, match="mode 'linear' is none of 'bilinear', 'nearest', 'bicubic'"):
        grid_sample_16(x, grid, mode="linear", padding_mode="zeros", align_corners=0)


def test_halves_round_to_even():
    x = np.array([[[10, 11, 12, 13]]], np.int64)
    # with align_corners an element is 2/3 wide: positions -0.5, 0.5, 1.5, 2.5, 3.5
    grid = ((np.array([-0.5, 0.5, 1.5, 2.5, 3.5]) * 2 / 3) - 1).reshape(1, 5, 1)
    y = sampled(x, grid, mode="nearest", align_corners=1)
    np.testing.assert_array_equal(y[0, 0], [10, 10, 12, 12, 0])


def test_nearest_reflects_the_position_before_it_rounds():
    # -1.5 reflects by the border -0.5 and becomes 0.5, which is nearest to 0
    x = np.array([[[10, 11, 12, 13]]], np.int64)
    grid = np.array([[[-1.5]]])
    np.testing.assert_array_equal(sampled(x, grid, mode="nearest", padding_mode="reflection"), [[[10]]])


def test_the_example_of_reflection_in_the_text():
    # location -3.5 reflects by border -1 to 1.5, then by border 1 to 0.5
    x = np.random.default_rng(0).standard_normal((1, 1, 9))
    for align_corners in (0, 1):
        both = [
            sampled(x, np.array([[[at]]]), padding_mode="reflection", align_corners=align_corners) for at in (-3.5, 0.5)
        ]
        np.testing.assert_allclose(both[0], both[1], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("grid_dtype", [np.float16, np.float32, ml_dtypes.bfloat16, np.float64])
def test_floats_keep_their_type(dtype, grid_dtype):
    x = np.array([[[1, 2, 4]]]).astype(dtype)
    y = sampled(x, np.array([[[0], [0.5], [-0.5]]]).astype(grid_dtype), align_corners=1)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y[0, 0].astype(np.complex128), [2, 3, 1.5])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_integers_are_cast_at_the_end(dtype):
    x = np.array([[[7, 7, 100]]], dtype)
    # 0.3 * 7 + 0.7 * 7 is 7 in real numbers, whatever floats make of it; 7 + 0.45 * 93 = 48.85
    y = sampled(x, np.array([[[-0.7], [-0.3], [0.45]]]), align_corners=1)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y[0, 0], [7, 7, 48])


def test_nearest_keeps_integers_exact_and_moves_strings_and_booleans():
    grid = np.array([[[1.0], [-1.0], [3.0]]])
    large = np.array([[[2**63 - 1, 0, 2**53 + 1]]], np.int64)
    np.testing.assert_array_equal(
        sampled(large, grid, mode="nearest", align_corners=1)[0, 0], [2**53 + 1, 2**63 - 1, 0]
    )
    words = np.array([[["a", "b", "c"]]], object)
    np.testing.assert_array_equal(sampled(words, grid, mode="nearest", align_corners=1)[0, 0], ["c", "a", ""])
    flags = np.array([[[True, False, True]]])
    y = sampled(flags, grid, mode="nearest", align_corners=1)
    assert y.dtype == np.bool_
    np.testing.assert_array_equal(y[0, 0], [True, True, False])
    np.testing.assert_array_equal(sampled(flags, np.array([[[-0.5]]]), align_corners=1), [[[True]]])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("align_corners", [0, 1])
def test_positions_at_infinity_and_nowhere(mode, align_corners):
    x, grid = np.ones((1, 2, 3), np.float32), np.array([[[np.inf], [-np.inf], [np.nan], [0]]])
    expected = {"zeros": [0, 0, np.nan, 1], "border": [1, 1, np.nan, 1], "reflection": [np.nan, np.nan, np.nan, 1]}
    for padding_mode, values in expected.items():
        y = sampled(x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
        np.testing.assert_allclose(y, [[values, values]], atol=1e-6)
    with pytest.raises(ValueError, match="positions of the grid are not numbers, and int8"):
        sampled(x.astype(np.int8), grid, mode=mode)


def test_what_is_outside_is_zero_whatever_is_inside():
    # at 2.5 both neighbours are outside of an axis of 2 whose elements are infinite
    x = np.array([[[np.inf, np.nan]]], np.float32)
    np.testing.assert_array_equal(sampled(x, np.array([[[2.0]]])), [[[0]]])


def test_no_positions():
    assert sampled(np.ones((2, 3, 4, 4), np.float32), np.ones((2, 0, 5, 2), np.float32)).shape == (2, 3, 0, 5)


X, GRID = np.ones((1, 1, 2, 2), np.float32), np.zeros((1, 3, 3, 2), np.float32)


@pytest.mark.parametrize(
    ("x", "grid", "attributes", "message"),
    [
        (X[0, 0], GRID, {}, r"the input has shape \[2, 2\]"),
        (X[..., :0], GRID, {}, "with something to sample"),
        (X, GRID[..., :1], {}, r"the grid has shape \[1, 3, 3, 1\], expected \[1, D1_out, D2_out, 2\]"),
        (X, GRID[0], {}, "the grid has shape"),
        (X, np.concatenate((GRID, GRID)), {}, r"the grid has shape \[2, 3, 3, 2\]"),
        (X, GRID, {"mode": "bilinear"}, "mode 'bilinear'"),
        (X, GRID, {"padding_mode": "edge"}, "padding_mode 'edge'"),
    ],
)
def test_bad_grid_sample(x, grid, attributes, message):
    with pytest.raises(ValueError, match=message):
        sampled(x, grid, **attributes)


def test_strings_cannot_be_interpolated():
    with pytest.raises(TypeError, match="strings cannot be interpolated, as mode 'linear'"):
        sampled(X.astype(object), GRID)


def affine(theta, size, align_corners=0):
    return affine_grid(theta, np.array(size), align_corners=align_corners, allocate=np.empty)


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("sizes", [(2, 3), (4, 1), (2, 3, 4), (1, 2, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_affine_grid(sizes, align_corners, dtype):
    rank = len(sizes)
    theta = np.random.default_rng(rank).standard_normal((2, rank, rank + 1)).astype(dtype)
    grid = affine(theta, [2, 7, *sizes], align_corners)
    assert grid.dtype == dtype
    assert grid.shape == (2, *sizes, rank)
    for n, *place in np.ndindex(2, *sizes):
        if align_corners:
            at = [2 * p / (size - 1) - 1 if size > 1 else -1 for p, size in zip(place, sizes, strict=True)]
        else:
            at = [(2 * p + 1) / size - 1 for p, size in zip(place, sizes, strict=True)]
        np.testing.assert_allclose(grid[(n, *place)], theta[n] @ [*reversed(at), 1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("align_corners", [0, 1])
def test_the_identity_samples_what_is_there(align_corners):
    x = np.random.default_rng(3).standard_normal((1, 2, 3, 4)).astype(np.float32)
    grid = affine(np.eye(2, 3, dtype=np.float32)[np.newaxis], x.shape, align_corners)
    np.testing.assert_allclose(sampled(x, grid, align_corners=align_corners), x, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_affine_grid_in_half_precision(dtype):
    grid = affine(np.array([[[1, 0, 0.5], [0, 1, 0]]]).astype(dtype), [1, 1, 2, 2])
    assert grid.dtype == dtype
    np.testing.assert_array_equal(grid[0].astype(float), [[[0, -0.5], [1, -0.5]], [[0, 0.5], [1, 0.5]]])


@pytest.mark.parametrize(
    ("shape", "size", "message"),
    [
        ((1, 2, 3), [1, 1, 4], r"size \[1, 1, 4\] is not"),
        ((1, 2, 3), [1, 1, -1, 2], r"size \[1, 1, -1, 2\] is not"),
        ((1, 2, 3), [2, 1, 2, 2], r"theta has shape \[1, 2, 3\], expected \[2, 2, 3\]"),
        ((1, 2, 3), [1, 1, 2, 2, 2], r"expected \[1, 3, 4\]"),
    ],
)
def test_bad_affine_grid(shape, size, message):
    with pytest.raises(ValueError, match=message):
        affine(np.zeros(shape, np.float32), size)
