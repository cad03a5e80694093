"""MaxUnpool and Col2Im: what MaxPool and a sliding window took apart comes back."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.nn.col2im import col2im
from onnxeval.ops.nn.max_pool import max_pool
from onnxeval.ops.nn.max_unpool import max_unpool


def unpooled(x, indices, output_shape=None, *, kernel_shape, pads=None, strides=None):
    shape = None if output_shape is None else np.array(output_shape)
    return max_unpool(x, indices, shape, kernel_shape=kernel_shape, pads=pads, strides=strides, allocate=np.empty)


def folded(columns, image_shape, block_shape, *, pads=None, strides=None, dilations=None):
    shapes = np.array(image_shape), np.array(block_shape)
    return col2im(columns, *shapes, pads=pads, strides=strides, dilations=dilations, allocate=np.empty)


@pytest.mark.parametrize("sizes", [(7,), (6, 5), (5, 4, 6)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16])
def test_max_unpool_undoes_max_pool(sizes, dtype):
    count = 6 * int(np.prod(sizes))
    x = np.random.default_rng(1).permutation(count).reshape(2, 3, *sizes).astype(dtype)
    attributes = {
        "kernel_shape": [2] * len(sizes),
        "strides": [2] * len(sizes),
        "pads": [1] + [0] * (2 * len(sizes) - 1),
    }
    y, indices = max_pool(x, auto_pad="NOTSET", n_outputs=2, allocate=np.empty, **attributes)
    back = unpooled(y, indices, x.shape, **attributes)
    expected = np.zeros_like(x)
    expected.ravel()[indices.ravel()] = x.ravel()[indices.ravel()]
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, expected)


def test_the_size_without_an_output_shape():
    # stride * (count - 1) + kernel - pads: 3 * 1 + 4 - 1 - 2 and 2 * 2 + 3
    x, indices = np.ones((1, 1, 2, 3), np.float32), np.arange(6).reshape(1, 1, 2, 3)
    y = unpooled(x, indices, kernel_shape=[4, 3], strides=[3, 2], pads=[1, 0, 2, 0])
    assert y.shape == (1, 1, 4, 7)
    assert unpooled(x, indices, kernel_shape=[4, 3]).shape == (1, 1, 5, 5)


@pytest.mark.parametrize(
    ("indices", "output_shape", "more", "message"),
    [
        ([[[0, 4]]], None, {}, "index 4 lies outside an output of shape .*, 4 elements"),
        ([[[0, -1]]], None, {}, "index -1 lies outside"),
        ([[0, 1]], None, {}, r"the indices have shape \[1, 2\], the input \[1, 1, 2\]"),
        ([[[0, 1]]], [1, 1, 1, 4], {}, r"an output of shape \[1, 1, 1, 4\] does not fit"),
        ([[[0, 1]]], [1, 2, 4], {}, r"an output of shape \[1, 2, 4\] does not fit"),
        ([[[0, 1]]], None, {"pads": [3, 2]}, r"an output of shape \[1, 1, -1\] does not fit"),
        ([[[0, 1]]], None, {"kernel_shape": [2, 2]}, "kernel_shape"),
    ],
)
def test_bad_max_unpool(indices, output_shape, more, message):
    x = np.ones((1, 1, 2), np.float32)
    with pytest.raises(ValueError, match=message):
        unpooled(x, np.array(indices), output_shape, **{"kernel_shape": [2], "strides": [2], **more})


def places_of(image_shape, block_shape, pads, strides, dilations):
    rank = len(image_shape)
    return [
        (image_shape[i] + pads[i] + pads[rank + i] - dilations[i] * (block_shape[i] - 1) - 1) // strides[i] + 1
        for i in range(rank)
    ]


def looped_fold(columns, image_shape, block_shape, pads, strides, dilations):
    """Blocks in lexicographic order of their indices, each laid with its dilation."""
    rank, counts = len(image_shape), places_of(image_shape, block_shape, pads, strides, dilations)
    channels = columns.shape[1] // int(np.prod(block_shape))
    image = np.zeros((columns.shape[0], channels, *image_shape), columns.dtype)
    for block, place in enumerate(itertools.product(*map(range, counts))):
        for element, tap in enumerate(itertools.product(*map(range, block_shape))):
            at = [place[i] * strides[i] + tap[i] * dilations[i] - pads[i] for i in range(rank)]
            if all(0 <= a < size for a, size in zip(at, image_shape, strict=True)):
                rows = slice(element, None, int(np.prod(block_shape)))
                image[(..., *at)] += columns[:, rows, block]
    return image


@pytest.mark.parametrize(
    ("image_shape", "block_shape", "pads", "strides", "dilations"),
    [
        ([5, 5], [1, 5], [0] * 4, [1, 1], [1, 1]),
        ([4, 6], [2, 3], [1, 0, 2, 1], [2, 1], [1, 2]),
        ([3, 4, 5], [2, 1, 2], [0, 1, 0, 1, 0, 1], [1, 2, 1], [1, 1, 2]),
    ],
)
@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, np.float64, np.complex64, np.bool_])
def test_col2im(image_shape, block_shape, pads, strides, dilations, dtype):
    geometry = {"pads": pads, "strides": strides, "dilations": dilations}
    blocks = np.prod(places_of(image_shape, block_shape, **geometry))
    shape = (2, 3 * int(np.prod(block_shape)), int(blocks))
    columns = np.random.default_rng(4).integers(0, 100, shape).astype(dtype)
    expected = looped_fold(columns, image_shape, block_shape, **geometry)
    image = folded(columns, image_shape, block_shape, **geometry)
    assert image.dtype == dtype
    np.testing.assert_array_equal(image, expected)


def test_the_standards_example_of_block_order():
    # an image of 10 x 20 and blocks of 9 x 18: 2 * 3 blocks, block(0, 0), block(0, 1), ...
    columns = np.zeros((1, 9 * 18, 6), np.int64)
    columns[0, 0] = range(1, 7)
    corners = folded(columns, [10, 20], [9, 18])[0, 0, :2, :3]
    np.testing.assert_array_equal(corners, [[1, 2, 3], [4, 5, 6]])


def test_half_precision_sums_round_once():
    columns = np.array([2048, 1, 1, 1], np.float16).reshape(1, 4, 1).repeat(4, 2)
    image = folded(columns, [2, 2], [2, 2], pads=[1, 1, 0, 0])
    wide = folded(columns.astype(np.float64), [2, 2], [2, 2], pads=[1, 1, 0, 0])
    np.testing.assert_array_equal(image, wide.astype(np.float16))


def test_strings_move_and_do_not_add_up():
    columns = np.array([["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]], object).reshape(1, 4, 2)
    image = folded(columns, [2, 5], [2, 2], strides=[1, 3])
    np.testing.assert_array_equal(image[0, 0], [["a", "c", "", "b", "d"], ["e", "g", "", "f", "h"]])
    with pytest.raises(ValueError, match="overlap, and strings do not add up"):
        folded(columns, [2, 3], [2, 2])


@pytest.mark.parametrize(
    ("shape", "image_shape", "block_shape", "message"),
    [
        ((1, 4), [2, 2], [2, 2], "the input has rank 2"),
        ((1, 4, 2), [2, 2], [2, 2], r"expected \[N, a multiple of 4, 1\]"),
        ((1, 5, 1), [2, 2], [2, 2], r"expected \[N, a multiple of 4, 1\]"),
        ((1, 4, 1), [4], [4], r"image_shape \[4\] is not a list of at least two"),
        ((1, 4, 1), [2, 2], [4], r"block_shape \[4\] does not fit image_shape \[2, 2\]"),
        ((1, 4, 1), [2, -2], [2, 2], "positive sizes"),
        ((1, 9, 1), [2, 2], [3, 3], "spatial axis 0 has no window"),
    ],
)
def test_bad_col2im(shape, image_shape, block_shape, message):
    with pytest.raises(ValueError, match=message):
        folded(np.zeros(shape, np.float32), image_shape, block_shape)
