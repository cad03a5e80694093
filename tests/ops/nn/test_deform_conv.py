"""DeformConv against a loop over every sample, and against Conv where nothing moves."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.nn.conv import conv
from onnxeval.ops.nn.deform_conv import deform_conv

PLAIN = {
    "dilations": None,
    "group": 1,
    "kernel_shape": None,
    "offset_group": 1,
    "pads": None,
    "strides": None,
}


def deformed(x, w, offset, b=None, mask=None, **attributes):
    return deform_conv(x, w, offset, b, mask, **{**PLAIN, **attributes})


def between(plane, position):
    """Linear interpolation in a plane that goes on as zeros."""
    total = 0.0
    for corner in itertools.product(range(2), repeat=plane.ndim):
        at = [math.floor(p) + c for p, c in zip(position, corner, strict=True)]
        if all(0 <= a < size for a, size in zip(at, plane.shape, strict=True)):
            total += math.prod(1 - abs(p - a) for p, a in zip(position, at, strict=True)) * float(plane[tuple(at)])
    return total


def looped(x, w, offset, b, mask, strides, dilations, pads, group, offset_group):
    rank, kernel = x.ndim - 2, w.shape[2:]
    counts = offset.shape[2:]
    taps = list(itertools.product(*map(range, kernel)))
    y = np.zeros((x.shape[0], w.shape[0], *counts))
    for n, m, *place in np.ndindex(y.shape):
        y[(n, m, *place)] = 0 if b is None else b[m]
        for k in range(w.shape[1]):
            channel = m // (w.shape[0] // group) * w.shape[1] + k
            moved_by = channel // (x.shape[1] // offset_group)
            for number, tap in enumerate(taps):
                row = moved_by * len(taps) + number
                at = [
                    place[i] * strides[i] + tap[i] * dilations[i] - pads[i] + float(offset[(n, row * rank + i, *place)])
                    for i in range(rank)
                ]
                scale = 1 if mask is None else float(mask[(n, row, *place)])
                y[(n, m, *place)] += between(x[n, channel], at) * scale * float(w[(m, k, *tap)])
    return y


@pytest.mark.parametrize(
    ("sizes", "kernel", "strides", "dilations", "pads"),
    [
        ((6,), (3,), (2,), (1,), (1, 0)),
        ((4, 5), (2, 3), (1, 2), (2, 1), (1, 0, 0, 2)),
        ((3, 4, 3), (2, 1, 2), (1, 2, 1), (1, 1, 1), (0, 1, 0, 0, 1, 1)),
    ],
)
@pytest.mark.parametrize(("group", "offset_group"), [(1, 1), (2, 1), (1, 2), (2, 4)])
@pytest.mark.parametrize("with_mask", [False, True])
def test_deform_conv(sizes, kernel, strides, dilations, pads, group, offset_group, with_mask):
    numbers, rank = np.random.default_rng(2), len(sizes)
    counts = [
        (sizes[i] + pads[i] + pads[rank + i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
        for i in range(rank)
    ]
    x = numbers.standard_normal((2, 4, *sizes)).astype(np.float32)
    w = numbers.standard_normal((2, 4 // group, *kernel)).astype(np.float32)
    offset = numbers.uniform(-3, 3, (2, offset_group * math.prod(kernel) * rank, *counts)).astype(np.float32)
    b = mask = None
    if with_mask:
        b = numbers.standard_normal(2).astype(np.float32)
        mask = numbers.uniform(0, 1, (2, offset_group * math.prod(kernel), *counts)).astype(np.float32)
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "group": group,
        "offset_group": offset_group,
    }
    expected = looped(x, w, offset, b, mask, **attributes)
    np.testing.assert_allclose(deformed(x, w, offset, b, mask, **attributes), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_without_offsets_it_is_a_conv(dtype):
    numbers = np.random.default_rng(6)
    x, w = numbers.integers(-4, 5, (2, 3, 5, 5)).astype(dtype), numbers.integers(-4, 5, (4, 3, 3, 3)).astype(dtype)
    attributes = {"dilations": None, "group": 1, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    y = deformed(x, w, np.zeros((2, 18, 3, 3), dtype), **attributes)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, conv(x, w, None, auto_pad="NOTSET", allocate=np.empty, **attributes))


def test_an_offset_that_is_no_number_spoils_its_place_alone():
    offset = np.zeros((1, 2, 2, 2), np.float32)
    offset[0, 0, 1, 0] = np.nan
    y = deformed(np.ones((1, 1, 2, 2), np.float32), np.ones((1, 1, 1, 1), np.float32), offset)
    np.testing.assert_array_equal(y, [[[[1, 1], [np.nan, 1]]]])


X, W = np.zeros((1, 2, 3, 3), np.float32), np.zeros((1, 2, 2, 2), np.float32)
OFFSET = np.zeros((1, 8, 2, 2), np.float32)


@pytest.mark.parametrize(
    ("offset", "mask", "attributes", "message"),
    [
        (OFFSET[:, :4], None, {}, r"the offset has shape \[1, 4, 2, 2\], expected \[1, 8, 2, 2\]"),
        (OFFSET[..., :1], None, {}, "the offset has shape"),
        (OFFSET, OFFSET, {}, r"the mask has shape \[1, 8, 2, 2\], expected \[1, 4, 2, 2\]"),
        (OFFSET, None, {"offset_group": 3}, "2 channels cannot be divided into 3 groups of offsets"),
        (OFFSET, None, {"group": 2}, "the input has 2 channels, expected 2 for each of 2 groups"),
    ],
)
def test_bad_deform_conv(offset, mask, attributes, message):
    with pytest.raises(ValueError, match=message):
        deformed(X, W, offset, None, mask, **attributes)
