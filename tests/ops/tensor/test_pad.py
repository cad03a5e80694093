"""Pad against a walk along each axis, written from the text."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from onnxeval.errors import ResourceLimitError
from onnxeval.ops.tensor.pad import pad, pad_attributes, pad_paddings, pad_without_wrap


def padded(x, pads, mode="constant", value=None, axes=None, kernel=pad):
    axes = None if axes is None else np.array(axes, np.int64)
    return kernel(x, np.array(pads, np.int64), value, axes, mode=mode, allocate=np.empty)


def walked(row, before, after, mode, value=0):
    """One axis as a list: crop first, then step outwards from the ends."""
    kept = row[max(0, -before) : len(row) + min(0, after)]
    last = len(kept) - 1

    def at(place):
        if mode == "reflect" and last:
            step, position = 1, 0
            for _ in range(abs(place)):
                if not 0 <= position + step <= last:
                    step = -step
                position += step
            return kept[position]
        if mode == "wrap":
            return kept[place % len(kept)]
        return kept[min(max(place, 0), last)]

    sides = [-place for place in range(max(before, 0), 0, -1)], [last + 1 + place for place in range(max(after, 0))]
    front, back = ([value if mode == "constant" else at(place) for place in side] for side in sides)
    return front + kept + back


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_one_axis(mode):
    for size, before, after in itertools.product([1, 2, 3, 5], range(-3, 12, 2), range(-2, 9)):
        if min(size + before, size + after, size + min(before, 0) + min(after, 0)) > 0:
            row = list(range(10, 10 + size))
            got = padded(np.array(row), [before, after], mode)
            assert got.tolist() == walked(row, before, after, mode), (size, before, after)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_axes_are_padded_independently(mode):
    x = np.arange(24).reshape(2, 3, 4)
    got = padded(x, [1, -1, 3, 0, 2, 1], mode, axes=[0, -1, 1])
    along = {0: (1, 0), 1: (3, 1), 2: (-1, 2)}
    wanted = x
    for axis, (before, after) in along.items():
        wanted = np.apply_along_axis(lambda row, b=before, a=after: walked(row.tolist(), b, a, mode), axis, wanted)
    assert got.tolist() == wanted.tolist()


def test_worked_examples():
    x = np.array([[1.0, 1.2], [2.3, 3.4], [4.5, 5.7]], np.float32)
    zeros = np.array(0, np.float32)
    assert padded(x, [0, 2, 0, 0], value=zeros).tolist() == np.pad(x, ((0, 0), (2, 0))).tolist()
    assert padded(x, [0, 2, 0, 0], "reflect").tolist() == x[:, [0, 1, 0, 1]].tolist()
    assert padded(x, [0, 2, 0, 0], "edge").tolist() == x[:, [0, 0, 0, 1]].tolist()
    assert padded(x, [2, 1, 1, 1], "wrap").tolist() == x[[1, 2, 0, 1, 2, 0]][:, [1, 0, 1, 0]].tolist()
    paddings = pad_paddings(x, paddings=(0, 0, 2, 0), mode="edge", value=0.0, allocate=np.empty)
    assert paddings.tolist() == x[[0, 1, 2, 2, 2]].tolist()  # the example's layout is [begins..., ends...]
    half = x.astype(np.float16)
    old = pad_attributes(half, pads=(-1, 0, 0, 1), mode="constant", value=0.1, allocate=np.empty)
    assert old.dtype == np.float16
    assert old.tolist() == [[*half[1].tolist(), np.float16(0.1)], [*half[2].tolist(), np.float16(0.1)]]


@pytest.mark.parametrize("before", range(-6, 7))
def test_constant_when_everything_is_cropped(before):
    wanted = [(10, 11, 12, 13)[at - before] if 0 <= at - before < 4 else 0 for at in range(4)]
    assert padded(np.arange(10, 14), [before, -before]).tolist() == wanted


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [(object, ""), (np.bool_, False), (np.complex128, 0), (np.uint64, 0), (ml_dtypes.bfloat16, 0)]
    + [(t, 0) for t in (ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.float4_e2m1fn, ml_dtypes.uint2)]
    + [(ml_dtypes.float8_e8m0fnu, 2.0**-127)],
)
def test_every_kind_of_element(dtype, fill):
    x = np.array(["a", "b"], object) if dtype is object else np.array([1, 0.5 if fill else 0], dtype)
    got = padded(x, [1, 0])
    assert got.dtype == dtype
    assert got.tolist() == [fill, *x.tolist()]
    assert padded(x, [1, 0], value=x[:1]).tolist() == [x.tolist()[0], *x.tolist()]
    assert padded(x, [0, 2], "reflect").tolist() == [*x.tolist(), *x.tolist()]


def test_nothing_to_pad():
    assert padded(np.array(3), []).tolist() == 3
    assert padded(np.zeros((0, 2)), [0, 1, 0, 1], "reflect").shape == (0, 4)
    assert padded(np.zeros((0, 2)), [1, 0, 1, 0]).shape == (2, 2)
    assert padded(np.arange(3), [0, 0], "wrap", axes=[0]).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("pads", "options", "message"),
    [
        ([0, 1, 0], {}, "3 elements, expected 2 for each of 2 axes"),
        ([[0, 1, 0, 1]], {}, "pads has rank 2"),
        ([-2, 0, -2, 0], {}, "negative size"),
        ([1, 0, 0, 0], {"mode": "bounce"}, "mode 'bounce'"),
        ([1, 0, 0, 0], {"mode": "wrap", "kernel": pad_without_wrap}, "mode 'wrap'"),
        ([3, 0, -3, 0], {"mode": "reflect"}, "nothing to copy from"),
        ([1, 0], {"axes": [2]}, "axes 2 is outside"),
        ([1, 0, 1, 0], {"axes": [0, -2]}, "twice"),
        ([1, 0, 1, 0], {"value": np.zeros(2)}, "constant_value has 2 elements"),
    ],
)
def test_errors(pads, options, message):
    with pytest.raises(ValueError, match=message):
        padded(np.zeros((3, 2)), pads, **options)


def test_version_1_only_adds():
    with pytest.raises(ValueError, match="negative count"):
        pad_paddings(np.zeros(3), paddings=(0, -1), mode="constant", value=0.0, allocate=np.empty)


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_the_size_is_refused_before_anything_is_made(mode):
    def refuse(shape, dtype):
        raise ResourceLimitError(f"{shape}")

    with pytest.raises(ResourceLimitError, match=str(2**50 + 1)):
        pad(np.zeros(1), np.array([0, 2**50]), None, None, mode=mode, allocate=refuse)
