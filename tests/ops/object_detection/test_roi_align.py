"""RoiAlign against a loop over the sampled points, as the text and the paper it names have them."""

import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.object_detection.roi_align import roi_align, roi_align_10

PLAIN = {
    "coordinate_transformation_mode": "half_pixel",
    "mode": "avg",
    "output_height": 1,
    "output_width": 1,
    "sampling_ratio": 0,
    "spatial_scale": 1.0,
}


def aligned(x, rois, batch_indices, **attributes):
    return roi_align(x, rois, np.array(batch_indices, np.int64), allocate=np.empty, **{**PLAIN, **attributes})


def value_at(plane, row, column):
    height, width = plane.shape
    if not (-1 <= row <= height and -1 <= column <= width):
        return 0.0
    row, column = min(max(row, 0), height - 1), min(max(column, 0), width - 1)
    total = 0.0
    for r in range(height):
        for c in range(width):
            total += max(0, 1 - abs(row - r)) * max(0, 1 - abs(column - c)) * float(plane[r, c])
    return total


def looped(x, rois, batch_indices, attributes):
    shape = attributes["output_height"], attributes["output_width"]
    y = np.zeros((len(rois), x.shape[1], *shape))
    shift = 0.5 if attributes["coordinate_transformation_mode"] == "half_pixel" else 0
    for r, (x1, y1, x2, y2) in enumerate((rois.astype(np.float64) * attributes["spatial_scale"]).tolist()):
        high, wide = (y2 - y1, x2 - x1) if shift else (max(y2 - y1, 1), max(x2 - x1, 1))
        cell = high / shape[0], wide / shape[1]
        points = [attributes["sampling_ratio"] or max(0, math.ceil(size)) for size in cell]
        for c, i, j in np.ndindex(y.shape[1:]):
            values = [
                value_at(
                    x[batch_indices[r], c],
                    y1 - shift + (i + (a + 0.5) / points[0]) * cell[0],
                    x1 - shift + (j + (b + 0.5) / points[1]) * cell[1],
                )
                for a in range(points[0])
                for b in range(points[1])
            ]
            if values:
                y[r, c, i, j] = max(values) if attributes["mode"] == "max" else sum(values) / len(values)
    return y


def some():
    numbers = np.random.default_rng(3)
    x = numbers.standard_normal((2, 2, 5, 6)).astype(np.float32)
    corners = numbers.uniform(-3, 8, (12, 2, 2))
    rois = np.concatenate((corners.min(1), corners.max(1)), axis=1).astype(np.float32)
    rois[-1] = [3, 2, 1, 1]
    rois[-2] = [2, 2, 2, 2]
    return x, rois, numbers.integers(0, 2, 12)


@pytest.mark.parametrize("coordinate_transformation_mode", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize(("sampling_ratio", "spatial_scale"), [(0, 1.0), (2, 0.5), (1, 1.25), (0, 2.0)])
def test_roi_align(coordinate_transformation_mode, mode, sampling_ratio, spatial_scale):
    attributes = {
        "coordinate_transformation_mode": coordinate_transformation_mode,
        "mode": mode,
        "output_height": 2,
        "output_width": 3,
        "sampling_ratio": sampling_ratio,
        "spatial_scale": spatial_scale,
    }
    x, rois, batch_indices = some()
    y = aligned(x, rois, batch_indices, **attributes)
    np.testing.assert_allclose(y, looped(x, rois, batch_indices, attributes), rtol=1e-5, atol=1e-5)


def test_version_10_does_not_shift():
    x, rois, batch_indices = some()
    attributes = {name: value for name, value in PLAIN.items() if name != "coordinate_transformation_mode"}
    attributes["output_width"] = 2
    old = roi_align_10(x, rois, batch_indices, allocate=np.empty, **attributes)
    new = aligned(x, rois, batch_indices, coordinate_transformation_mode="output_half_pixel", output_width=2)
    np.testing.assert_array_equal(old, new)


def test_maximum_of_interpolated_values():
    # one point at (1, 1), between the four pixels 0, 1, 2, 3: their mean, not the greatest weighted one
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    y = aligned(x, np.array([[0, 0, 2, 2]], np.float32), [0], mode="max", sampling_ratio=1)
    np.testing.assert_array_equal(y, [[[[1.5]]]])


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_it_keeps_the_type(dtype):
    x = np.ones((1, 1, 3, 3), dtype)
    y = aligned(x, np.array([[0, 0, 3, 3]]).astype(dtype), [0], output_height=2)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(float), [[[[1], [1]]]])


def test_no_regions():
    assert aligned(np.ones((1, 2, 3, 3), np.float32), np.empty((0, 4), np.float32), []).shape == (0, 2, 1, 1)


@pytest.mark.parametrize(
    ("rois", "batch_indices", "attributes", "message"),
    [
        ([[0, 0, 1]], [0], {}, r"have shapes \[1, 3\] and \[1\]"),
        ([[0, 0, 1, 1]], [0, 0], {}, r"have shapes \[1, 4\] and \[2\]"),
        ([[0, 0, 1, 1]], [2], {}, "batch index 2 is none of an input of 2 samples"),
        ([[0, 0, 1, 1]], [-1], {}, "batch index -1"),
        ([[0, 0, np.inf, 1]], [0], {}, "a corner of a region is inf"),
        ([[0, 0, 1, 1]], [0], {"mode": "sum"}, "mode 'sum'"),
        ([[0, 0, 1, 1]], [0], {"coordinate_transformation_mode": "x"}, "coordinate_transformation_mode 'x'"),
        ([[0, 0, 1, 1]], [0], {"output_height": 0}, "output_height 0"),
        ([[0, 0, 1, 1]], [0], {"sampling_ratio": -1}, "sampling_ratio -1"),
    ],
)
def test_bad_roi_align(rois, batch_indices, attributes, message):
    with pytest.raises(ValueError, match=message):
        aligned(np.zeros((2, 1, 3, 3), np.float32), np.array(rois, np.float32), batch_indices, **attributes)
