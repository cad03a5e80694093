"""QLinear pools, means and convolutions, channels first and last, against sums window by window."""

import itertools

import numpy as np
import pytest
from ops.contrib.codes import BYTES, F32, assert_nearest, assert_one_apart, draw, real, scale, zero
from ops.contrib.nodes import ours

import onnxeval


def window_of(place, size, kernel, stride, begin):
    """The elements that a window sees, and how many it has on input and padding."""
    start = place * stride - begin
    return range(max(start, 0), min(start + kernel, size))


def average(x, kernel, pads, strides, counts, include_pad=False):
    """Means of (N, C, *sizes) in float64, loops over windows."""
    y = np.zeros((*x.shape[:2], *counts))
    for place in itertools.product(*map(range, counts)):
        seen = [window_of(*each) for each in zip(place, x.shape[2:], kernel, strides, pads, strict=True)]
        total = sum(x[(slice(None), slice(None), *at)] for at in itertools.product(*seen))
        number = np.prod(kernel) if include_pad else np.prod([len(each) for each in seen])
        y[(slice(None), slice(None), *place)] = total / number
    return y


#: Attributes, then begin pads, strides and counts for an input of (2, 4, 8, 5).
POOLS = [
    ({"kernel_shape": [3, 3]}, (0, 0), (1, 1), (6, 3)),
    ({"kernel_shape": [3, 2], "pads": [1, 1, 1, 0]}, (1, 1), (1, 1), (8, 5)),
    (
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1, "strides": [2, 2]},
        (1, 1),
        (2, 2),
        (4, 3),
    ),
    ({"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, (0, 0), (2, 2), (4, 2)),
    ({"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}, (0, 0), (1, 1), (8, 5)),
    ({"kernel_shape": [2, 3], "auto_pad": "SAME_LOWER", "strides": [2, 2]}, (0, 1), (2, 2), (4, 3)),
    ({"kernel_shape": [2, 3], "auto_pad": "VALID"}, (0, 0), (1, 1), (7, 3)),
]


def pooled(shape, dtype):
    return [draw(shape, dtype), scale(0.0517), zero(120, dtype), scale(0.0391), zero(139, dtype)]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("case", range(len(POOLS)))
def test_average_pool(case, last, dtype) -> None:
    attributes, pads, strides, counts = POOLS[case]
    inputs = pooled((2, 4, 8, 5), dtype)
    numbers = average(
        real(*inputs[:3]), attributes["kernel_shape"], pads, strides, counts, "count_include_pad" in attributes
    )
    if last:
        inputs[0], numbers = np.moveaxis(inputs[0], 1, -1), np.moveaxis(numbers, 1, -1)
    given = ours("QLinearAveragePool", inputs, channels_last=last, **attributes)
    assert_nearest(given, numbers, *inputs[3:], dtype)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("case", range(len(POOLS)))
def test_average_pool_as_onnxruntime(case, last, dtype) -> None:
    shape = (2, 8, 5, 4) if last else (2, 4, 8, 5)
    assert_one_apart("QLinearAveragePool", pooled(shape, dtype), channels_last=last, **POOLS[case][0])


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("kernel", [[3], [3, 2, 2]])
def test_average_pool_of_other_ranks(kernel, last) -> None:
    shape = (*(2, 9, 6, 5)[: len(kernel) + 1], 4)
    assert_one_apart("QLinearAveragePool", pooled(shape, np.uint8), channels_last=last, kernel_shape=kernel)


def test_what_lies_beyond_the_padding_does_not_count() -> None:
    inputs = [np.full((1, 1, 2), 90, np.uint8), scale(1), None, scale(1), None]
    given = ours("QLinearAveragePool", inputs, kernel_shape=[3], strides=[2], ceil_mode=1, count_include_pad=1)
    assert given.tolist() == [[[90]]]
    given = ours("QLinearAveragePool", inputs, kernel_shape=[3], pads=[0, 1], ceil_mode=1, count_include_pad=1)
    assert given.tolist() == [[[60]]]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("shape", [(2, 16, 7, 7), (2, 16, 7), (3, 5, 2, 4, 3)])
def test_global_average_pool(shape, last, dtype) -> None:
    inputs = pooled(shape, dtype)
    axes = tuple(range(1, len(shape) - 1)) if last else tuple(range(2, len(shape)))
    given = ours("QLinearGlobalAveragePool", inputs, channels_last=last)
    assert_nearest(given, real(*inputs[:3]).mean(axis=axes, keepdims=True), *inputs[3:], dtype)
    if dtype == np.int8:
        assert_one_apart("QLinearGlobalAveragePool", inputs, channels_last=last)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("axes", "keepdims"), [([1], 0), ([0, -1], 1), ([0, 1, 2], 0)])
def test_reduce_mean(axes, keepdims, dtype) -> None:
    inputs = pooled((3, 4, 5), dtype)
    numbers = real(*inputs[:3]).mean(axis=tuple(axes), keepdims=bool(keepdims))
    assert_nearest(ours("QLinearReduceMean", inputs, axes=axes, keepdims=keepdims), numbers, *inputs[3:], dtype)


#: Attributes, begin pads, strides, dilations, counts for an input of (2, 4, 7, 8) and kernels of (3, 3).
CONVS = [
    ({}, (0, 0), (1, 1), (1, 1), (5, 6)),
    ({"pads": [1, 0, 1, 2], "strides": [2, 1]}, (1, 0), (2, 1), (1, 1), (4, 8)),
    ({"auto_pad": "SAME_UPPER"}, (1, 1), (1, 1), (1, 1), (7, 8)),
    ({"dilations": [2, 1]}, (0, 0), (1, 1), (2, 1), (3, 6)),
    ({"group": 2}, (0, 0), (1, 1), (1, 1), (5, 6)),
]


def convolved(group, dtype):
    return [
        *(draw((2, 4, 7, 8), dtype), scale(0.05), zero(120, dtype)),
        *(draw((6, 4 // group, 3, 3), np.int8, 1), np.linspace(0.002, 0.01, 6, dtype=F32), np.zeros(6, np.int8)),
        *(scale(0.5), zero(130, dtype)),
        np.arange(-3000, 3000, 1000, dtype=np.int32),
    ]


def correlation(inputs, pads, strides, dilations, counts, group):
    """What the sums stand for, in float64, loops over maps, windows and taps."""
    x, x_scale, x_zero_point, w, w_scale, w_zero_point, _, _, b = inputs
    x, w = x.astype(int) - int(x_zero_point), w.astype(int) - w_zero_point.astype(int)[:, None, None, None]
    y = np.zeros((len(x), len(w), *counts))
    y += b[:, None, None]
    per_group = len(w) // group
    for m, row, column, i, j in itertools.product(range(len(w)), *map(range, counts), range(3), range(3)):
        places = [at * strides[a] + tap * dilations[a] - pads[a] for a, (at, tap) in enumerate(((row, i), (column, j)))]
        if all(0 <= place < size for place, size in zip(places, x.shape[2:], strict=True)):
            channels = slice(m // per_group * w.shape[1], (m // per_group + 1) * w.shape[1])
            y[:, m, row, column] += x[:, channels, places[0], places[1]] @ w[m, :, i, j]
    return y * (float(x_scale) * w_scale.astype(float))[:, None, None]


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("case", range(len(CONVS)))
def test_conv(case, last) -> None:
    attributes, *geometry = CONVS[case]
    group = attributes.get("group", 1)
    inputs = convolved(group, np.uint8)
    numbers = correlation(inputs, *geometry, group)
    if last:
        inputs[0], numbers = np.moveaxis(inputs[0], 1, -1), np.moveaxis(numbers, 1, -1)
    given = ours("QLinearConv", inputs, channels_last=last, **attributes)
    assert_nearest(given, numbers, *inputs[6:8], np.uint8)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("case", range(len(CONVS)))
def test_conv_as_onnxruntime(case, last, dtype) -> None:
    attributes = CONVS[case][0]
    inputs = convolved(attributes.get("group", 1), dtype)
    if last:
        inputs[0] = np.ascontiguousarray(np.moveaxis(inputs[0], 1, -1))
    assert_one_apart("QLinearConv", inputs, channels_last=last, constants=(3, 4, 5), **attributes)


def test_refusals() -> None:
    with pytest.raises(onnxeval.NodeError, match=r"the input has shape \[2, 3\], expected rank 3"):
        ours("QLinearAveragePool", pooled((2, 3), np.uint8), kernel_shape=[1], channels_last=1)
    with pytest.raises(onnxeval.NodeError, match="kernel_shape"):
        ours("QLinearAveragePool", pooled((2, 3, 4), np.uint8), kernel_shape=[1, 2])
    with pytest.raises(onnxeval.NodeError, match="expected 4 for each of 1 groups"):
        ours("QLinearConv", [draw((2, 5, 7, 8), np.uint8), *convolved(1, np.uint8)[1:]])


def test_a_mean_halfway_between_two_numbers_goes_to_the_even_one() -> None:
    x = np.array([[[0, 1, 1, 2, 2, 3]]], np.uint8)
    inputs = [x, scale(0.1), np.array(7, np.uint8), scale(0.1), np.array(7, np.uint8)]
    means = np.array([[[0.5, 1.5, 2.5]]]) - 7
    assert ours("QLinearAveragePool", inputs, kernel_shape=[2], strides=[2]).tolist() == (np.rint(means) + 7).tolist()
