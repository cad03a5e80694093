"""MaxPool, AveragePool, LpPool and the global pools against loops over windows, written from the texts' formulas."""

import itertools
import math
import random

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.nn.average_pool import average_pool, global_average_pool
from onnxeval.ops.nn.lp_pool import global_lp_pool, global_lp_pool_1, lp_pool, lp_pool_1
from onnxeval.ops.nn.max_pool import global_max_pool, max_pool

PLAIN = {"auto_pad": "NOTSET", "pads": None, "strides": None}


def pooled_max(x, **attributes):
    return max_pool(x, n_outputs=1, allocate=np.empty, **{**PLAIN, **attributes})[0]


def pooled_indices(x, **attributes):
    return max_pool(x, n_outputs=2, allocate=np.empty, **{**PLAIN, **attributes})


def pooled_mean(x, **attributes):
    return average_pool(x, allocate=np.empty, **{**PLAIN, **attributes})


def pooled_norm(x, **attributes):
    return lp_pool(x, allocate=np.empty, **{**PLAIN, **attributes})


def geometry(size, kernel, stride, dilation, begin, end, auto_pad, ceil_mode):
    """Number of windows and pads, as the formulas of AveragePool-22 read."""
    extent = (kernel - 1) * dilation + 1
    if auto_pad == "NOTSET":
        rounded = math.ceil if ceil_mode else math.floor
        count = rounded((size + begin + end - dilation * (kernel - 1) - 1) / stride + 1)
        while ceil_mode and (count - 1) * stride >= size + begin:
            count -= 1  # sliding windows that would start in the right padded region are ignored
        return count, begin, end
    if auto_pad == "VALID":
        return math.ceil((size - extent + 1) / stride), 0, 0
    count = math.ceil(size / stride)
    pad = max(0, (count - 1) * stride + extent - size)
    less, more = pad // 2, pad - pad // 2
    return (count, less, more) if auto_pad == "SAME_UPPER" else (count, more, less)


def looped(x, combine, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode):
    """combine(values on the input, their positions, number of taps on input and padding) for every window."""
    rank = x.ndim - 2
    axes = [
        geometry(
            x.shape[2 + i], kernel_shape[i], strides[i], dilations[i], pads[i], pads[rank + i], auto_pad, ceil_mode
        )
        for i in range(rank)
    ]
    out = np.empty((*x.shape[:2], *(count for count, _, _ in axes)), object)
    for place in np.ndindex(out.shape):
        values, positions, padded = [], [], 0
        for tap in itertools.product(*map(range, kernel_shape)):
            at = [place[2 + i] * strides[i] + tap[i] * dilations[i] - axes[i][1] for i in range(rank)]
            if all(p < x.shape[2 + i] + axes[i][2] for i, p in enumerate(at)):
                padded += 1
            if all(0 <= p < x.shape[2 + i] for i, p in enumerate(at)):
                values.append(x[(*place[:2], *at)])
                positions.append((*place[:2], *at))
        out[place] = combine(values, positions, padded)
    return out


def some_geometries(count=60):
    chance = random.Random(7)
    while count:
        rank = chance.choice([1, 1, 2, 2, 3])
        auto_pad = chance.choice(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
        kernel_shape = [chance.randint(1, 3) for _ in range(rank)]
        dilations = [chance.randint(1, 2) for _ in range(rank)]
        strides = [chance.randint(1, 4) for _ in range(rank)]
        sizes = [chance.randint(3, 7) for _ in range(rank)]
        pads = [chance.randint(0, kernel_shape[i % rank] - 1) if auto_pad == "NOTSET" else 0 for i in range(2 * rank)]
        attributes = {
            "kernel_shape": kernel_shape,
            "strides": strides,
            "dilations": dilations,
            "pads": pads,
            "auto_pad": auto_pad,
            "ceil_mode": chance.randint(0, 1),
        }
        x = np.random.default_rng(count).integers(-9, 9, (2, 2, *sizes)).astype(np.float32)
        fits = all(
            geometry(sizes[i], kernel_shape[i], strides[i], dilations[i], pads[i], pads[rank + i], auto_pad, 0)[0] > 0
            for i in range(rank)
        )
        if fits and (looped(x, lambda values, *_: len(values), **attributes) > 0).all():
            count -= 1
            yield pytest.param(x, attributes, id=f"{rank}d-{auto_pad}-{count}")


GEOMETRIES = list(some_geometries())


@pytest.mark.parametrize(("x", "attributes"), GEOMETRIES)
def test_max_pool(x, attributes):
    maxima = looped(x, lambda values, *_: max(values), **attributes).astype(np.float32)
    first = looped(
        x, lambda values, where, _: np.ravel_multi_index(where[values.index(max(values))], x.shape), **attributes
    )
    np.testing.assert_array_equal(pooled_max(x, **attributes), maxima)
    y, indices = pooled_indices(x, **attributes)
    np.testing.assert_array_equal(y, maxima)
    np.testing.assert_array_equal(indices, first.astype(np.int64))
    assert indices.dtype == np.int64


@pytest.mark.parametrize(("x", "attributes"), GEOMETRIES)
def test_max_pool_column_major(x, attributes):
    def index(values, where, _):
        n, c, *at = where[values.index(max(values))]
        plane = np.ravel_multi_index(at, x.shape[2:], order="F")
        return (n * x.shape[1] + c) * math.prod(x.shape[2:]) + plane

    expected = looped(x, index, **attributes).astype(np.int64)
    np.testing.assert_array_equal(pooled_indices(x, storage_order=1, **attributes)[1], expected)


@pytest.mark.parametrize(("x", "attributes"), GEOMETRIES)
def test_average_pool(x, attributes):
    without = looped(x, lambda values, *_: sum(values) / len(values), **attributes).astype(np.float32)
    with_pads = looped(x, lambda values, _, padded: sum(values) / padded, **attributes).astype(np.float32)
    np.testing.assert_allclose(pooled_mean(x, **attributes), without, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(pooled_mean(x, count_include_pad=1, **attributes), with_pads, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(("x", "attributes"), GEOMETRIES[:15])
def test_lp_pool(x, attributes, p):
    norms = looped(x, lambda values, *_: sum(abs(float(v)) ** p for v in values) ** (1 / p), **attributes)
    np.testing.assert_allclose(pooled_norm(x, p=p, **attributes), norms.astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_max_pool_of_integers_never_meets_its_padding(dtype):
    x = np.array([[[np.iinfo(dtype).min, 3, np.iinfo(dtype).max]]], dtype)
    y, indices = pooled_indices(x, kernel_shape=[2], pads=[1, 1])
    assert y.dtype == dtype
    np.testing.assert_array_equal(y[0, 0], [x[0, 0, 0], 3, x[0, 0, 2], x[0, 0, 2]])
    np.testing.assert_array_equal(indices[0, 0], [0, 1, 2, 2])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_pools_keep_the_dtype(dtype):
    x = np.array([[[1, -2, 3, 4.5]]]).astype(dtype)
    results = {
        "max": pooled_max(x, kernel_shape=[2]),
        "mean": pooled_mean(x, kernel_shape=[2]),
        "norm": pooled_norm(x, kernel_shape=[2], p=2),
        "global max": global_max_pool(x),
        "global mean": global_average_pool(x),
        "global norm": global_lp_pool(x, p=2),
    }
    assert {name: y.dtype for name, y in results.items()} == dict.fromkeys(results, np.dtype(dtype))
    np.testing.assert_array_equal(results["max"][0, 0].astype(float), [1, 3, 4.5])
    np.testing.assert_array_equal(results["mean"][0, 0].astype(float), [-0.5, 0.5, 3.75])


def test_half_precision_sums_do_not_overflow():
    x = np.full((1, 1, 4), 60000, np.float16)
    assert pooled_mean(x, kernel_shape=[4])[0, 0, 0] == np.float16(60000)
    assert global_average_pool(x)[0, 0, 0] == np.float16(60000)


def test_a_nan_is_the_maximum_wherever_it_stands():
    x = np.array([[[np.nan, 1, 2, np.nan, 3, 4, np.nan, np.nan]]], np.float32)
    y, indices = pooled_indices(x, kernel_shape=[2])
    np.testing.assert_array_equal(np.isnan(y[0, 0]), [True, False, True, True, False, True, True])
    np.testing.assert_array_equal(indices[0, 0], [0, 2, 3, 3, 5, 6, 6])
    assert np.isnan(global_max_pool(x)).all()


def test_minus_infinity_is_a_maximum_too():
    x = np.full((1, 1, 3), -np.inf, np.float32)
    y, indices = pooled_indices(x, kernel_shape=[2], pads=[1, 0])
    np.testing.assert_array_equal(y[0, 0], [-np.inf] * 3)
    np.testing.assert_array_equal(indices[0, 0], [0, 0, 1])


def test_pytorch_example_of_a_last_window_in_the_padding():
    # 5 elements, one more on each side, in steps of two: the fourth window would start in the end padding
    x = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
    attributes = {"kernel_shape": [2], "strides": [2], "pads": [1, 1], "ceil_mode": 1}
    np.testing.assert_array_equal(pooled_max(x, **attributes)[0, 0], [1, 3, 5])
    np.testing.assert_array_equal(pooled_mean(x, **attributes)[0, 0], [1, 2.5, 4.5])
    np.testing.assert_allclose(pooled_norm(x, p=1, **attributes)[0, 0], [1, 5, 9])


def test_ceil_mode_lets_one_window_reach_over_a_small_input():
    # ceil((2 - 3) / 2 + 1) = 1
    x = np.array([[[3, 5]]], np.float32)
    np.testing.assert_array_equal(pooled_mean(x, kernel_shape=[3], strides=[2], ceil_mode=1), [[[4]]])
    with pytest.raises(ValueError, match="no window: its size 2"):
        pooled_mean(x, kernel_shape=[3], strides=[2])


def test_valid_ignores_ceil_mode():
    # ceil((5 - 2 + 1) / 2) = 2 in either mode
    x = np.arange(5, dtype=np.float32).reshape(1, 1, 5)
    for ceil_mode in (0, 1):
        y = pooled_max(x, kernel_shape=[2], strides=[2], auto_pad="VALID", ceil_mode=ceil_mode)
        np.testing.assert_array_equal(y, [[[1, 3]]])


def test_same_never_pads_less_than_nothing():
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 12)
    for auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        y = pooled_max(x, kernel_shape=[1], strides=[4], auto_pad=auto_pad)
        np.testing.assert_array_equal(y, [[[0, 4, 8]]])


def test_count_include_pad_stops_at_the_padding():
    # windows at -1, 1, 3 of a padded axis of 6: the last one has two elements, one of them padding
    x = np.array([[[2, 4, 6, 8]]], np.float32)
    y = pooled_mean(x, kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1, count_include_pad=1)
    np.testing.assert_allclose(y[0, 0], [2, 6, 4])


def test_no_batch_gives_no_batch():
    x = np.empty((0, 3, 4, 4), np.float32)
    y, indices = pooled_indices(x, kernel_shape=[2, 2])
    assert y.shape == indices.shape == (0, 3, 3, 3)
    assert pooled_mean(x, kernel_shape=[2, 2]).shape == (0, 3, 3, 3)
    assert global_average_pool(x).shape == global_max_pool(x).shape == (0, 3, 1, 1)


def test_norms_that_overflow_float32_in_between():
    x = np.array([[[3e30, 4e30]]], np.float32)
    np.testing.assert_allclose(pooled_norm(x, kernel_shape=[2], p=2), [[[5e30]]], rtol=1e-6)
    np.testing.assert_allclose(global_lp_pool(x, p=2), [[[5e30]]], rtol=1e-6)


def test_a_fractional_norm_of_version_1():
    x = np.array([[[1, -2, 3]]], np.float32)
    expected = [(1 + 2**2.5) ** (1 / 2.5), (2**2.5 + 3**2.5) ** (1 / 2.5)]
    y = lp_pool_1(x, kernel_shape=[2], p=2.5, allocate=np.empty, **PLAIN)
    np.testing.assert_allclose(y[0, 0], expected, rtol=1e-6)
    whole = global_lp_pool_1(x, p=2.5)
    np.testing.assert_allclose(whole, [[[(1 + 2**2.5 + 3**2.5) ** (1 / 2.5)]]], rtol=1e-6)


def test_global_pools_of_any_rank():
    for sizes in [(5,), (2, 3), (2, 3, 2)]:
        x = np.random.default_rng(0).standard_normal((2, 3, *sizes)).astype(np.float32)
        flat, shape = x.reshape(2, 3, -1), (2, 3, *(1 for _ in sizes))
        np.testing.assert_array_equal(global_max_pool(x), flat.max(2).reshape(shape))
        np.testing.assert_allclose(global_average_pool(x), flat.mean(2).reshape(shape), rtol=1e-5, atol=1e-7)
        norms = (np.abs(flat.astype(np.float64)) ** 3).sum(2) ** (1 / 3)
        np.testing.assert_allclose(global_lp_pool(x, p=3), norms.reshape(shape), rtol=1e-5)


def test_a_huge_kernel_over_huge_pads_is_no_loop_over_its_taps():
    x = np.array([[[1, 5, 3]]], np.float32)
    many = 10**12
    np.testing.assert_array_equal(pooled_max(x, kernel_shape=[2 * many], pads=[many, many]), [[[5, 5, 5, 5]]])
    far_apart = {"kernel_shape": [many], "pads": [many, many], "strides": [many]}
    np.testing.assert_array_equal(pooled_norm(x, p=1, **far_apart), [[[0, 9]]])
    np.testing.assert_array_equal(pooled_norm(x[:, :, :0], p=1, **far_apart), [[[0, 0]]])
    with pytest.raises(MemoryError):
        pooled_max(x, kernel_shape=[1], pads=[10**15, 0])


X = np.zeros((1, 1, 4, 5), np.float32)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"kernel_shape": [2]}, r"kernel_shape \[2\] has 1 values, expected one for each of 2"),
        ({"kernel_shape": [2, 0]}, r"kernel_shape \[2, 0\] has a value below 1"),
        ({"kernel_shape": [2, 2], "strides": [0, 1]}, r"strides \[0, 1\] has a value below 1"),
        ({"kernel_shape": [2, 2], "dilations": [1]}, r"dilations \[1\] has 1 values"),
        ({"kernel_shape": [2, 2], "pads": [1, 1]}, r"pads \[1, 1\] has 2 values, expected two for each of 2"),
        ({"kernel_shape": [2, 2], "pads": [0, 0, -1, 0]}, r"pads \[0, 0, -1, 0\] has a negative value"),
        ({"kernel_shape": [2, 2], "auto_pad": "SAME"}, "auto_pad 'SAME' is none of NOTSET"),
        ({"kernel_shape": [2, 2], "auto_pad": "VALID", "pads": [1, 0, 0, 0]}, "together with auto_pad VALID"),
        ({"kernel_shape": [2, 2], "pads": [2**63 - 1, 0, 2**63 - 1, 0]}, "too many places to count"),
        ({"kernel_shape": [5, 1]}, "spatial axis 0 has no window: its size 4"),
        ({"kernel_shape": [2, 3], "dilations": [1, 3]}, "the 7 elements that kernel 3 with dilation 3 takes"),
    ],
)
@pytest.mark.parametrize("pool", [pooled_max, pooled_mean, pooled_norm])
def test_bad_geometry(pool, attributes, message):
    more = {"p": 2} if pool is pooled_norm else {}
    with pytest.raises(ValueError, match=message):
        pool(X, **attributes, **more)


@pytest.mark.parametrize("pool", [pooled_max, pooled_mean])
def test_a_window_in_the_padding_has_no_maximum_and_no_mean(pool):
    with pytest.raises(ValueError, match="window 0 of spatial axis 1 sees nothing but padding: size 5, kernel 2"):
        pool(X, kernel_shape=[2, 2], pads=[0, 2, 0, 0])


def test_a_window_in_the_padding_has_a_mean_with_the_padding_and_a_norm():
    x = np.ones((1, 1, 2), np.float32)
    np.testing.assert_array_equal(pooled_mean(x, kernel_shape=[2], pads=[2, 0], count_include_pad=1), [[[0, 0.5, 1]]])
    np.testing.assert_array_equal(pooled_norm(x, kernel_shape=[2], pads=[2, 0], p=1), [[[0, 1, 2]]])


def test_other_bad_input():
    with pytest.raises(ValueError, match="rank 2"):
        pooled_max(np.zeros((2, 2), np.float32), kernel_shape=[1])
    with pytest.raises(ValueError, match="storage_order 2"):
        pooled_max(X, kernel_shape=[1, 1], storage_order=2)
    with pytest.raises(ValueError, match="p 0 is not"):
        pooled_norm(X, kernel_shape=[1, 1], p=0)
    with pytest.raises(ValueError, match="kernel_shape is missing"):
        lp_pool_1(X, kernel_shape=None, p=2.0, allocate=np.empty, **PLAIN)
    for pool in (global_max_pool, global_average_pool):
        with pytest.raises(ValueError, match=r"planes of an input of shape \(1, 2, 0\) are empty"):
            pool(np.zeros((1, 2, 0), np.float32))
        with pytest.raises(ValueError, match="rank 2"):
            pool(np.zeros((1, 2), np.float32))
