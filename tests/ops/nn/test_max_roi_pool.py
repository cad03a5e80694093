"""MaxRoiPool against a loop over the pixels of each cell, and against onnxruntime."""

import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.nn.max_roi_pool import max_roi_pool


def pooled(x, rois, pooled_shape, spatial_scale=1.0):
    return max_roi_pool(x, rois, pooled_shape=pooled_shape, spatial_scale=spatial_scale, allocate=np.empty)


def away_from_zero(value):
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)


def looped(x, rois, pooled_shape, spatial_scale):
    y = np.zeros((len(rois), x.shape[1], *pooled_shape))
    for r, (batch, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (away_from_zero(corner * spatial_scale) for corner in corners)
        high, wide = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for c, i, j in np.ndindex(y.shape[1:]):
            rows = range(y1 + math.floor(i * high / pooled_shape[0]), y1 + math.ceil((i + 1) * high / pooled_shape[0]))
            columns = range(
                x1 + math.floor(j * wide / pooled_shape[1]), x1 + math.ceil((j + 1) * wide / pooled_shape[1])
            )
            seen = [
                float(x[int(batch), c, row, column])
                for row in rows
                for column in columns
                if 0 <= row < x.shape[2] and 0 <= column < x.shape[3]
            ]
            y[r, c, i, j] = max(seen, default=0)
    return y


def some(seed=0, count=20):
    numbers = np.random.default_rng(seed)
    x = numbers.standard_normal((2, 3, 7, 9)).astype(np.float32)
    rois = np.column_stack((numbers.integers(0, 2, count), numbers.uniform(-4, 14, (count, 4)))).astype(np.float32)
    return x, rois


@pytest.mark.parametrize(
    ("pooled_shape", "spatial_scale"), [((2, 3), 1.0), ((1, 1), 0.5), ((7, 7), 0.75), ((4, 2), 2.0)]
)
def test_max_roi_pool(pooled_shape, spatial_scale):
    x, rois = some()
    y = pooled(x, rois, pooled_shape, spatial_scale)
    np.testing.assert_array_equal(y, looped(x, rois, pooled_shape, spatial_scale).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_it_keeps_the_type(dtype):
    x = np.arange(16).reshape(1, 1, 4, 4).astype(dtype)
    y = pooled(x, np.array([[0, 0, 0, 3, 3]]).astype(dtype), (2, 2))
    assert y.dtype == dtype
    np.testing.assert_array_equal(y[0, 0].astype(int), [[5, 7], [13, 15]])


def test_no_regions_and_far_regions():
    x = np.ones((1, 2, 3, 3), np.float32)
    assert pooled(x, np.empty((0, 5), np.float32), (2, 2)).shape == (0, 2, 2, 2)
    far = np.array([[0, 1e30, 1e30, 2e30, 2e30]], np.float32)
    np.testing.assert_array_equal(pooled(x, far, (2, 2)), np.zeros((1, 2, 2, 2)))


@pytest.mark.parametrize(
    ("rois", "pooled_shape", "message"),
    [
        ([[0, 1, 1, 2]], (1, 1), r"the regions have shape \[1, 4\], expected \[R, 5\]"),
        ([[1, 0, 0, 1, 1]], (1, 1), "batch index 1.0 is none of an input of 1 samples"),
        ([[0.5, 0, 0, 1, 1]], (1, 1), "batch index 0.5"),
        ([[0, 0, np.nan, 1, 1]], (1, 1), "corners nan of a region"),
        ([[0, 0, 0, 1, 1]], (0, 1), r"pooled_shape \[0, 1\]"),
    ],
)
def test_bad_max_roi_pool(rois, pooled_shape, message):
    with pytest.raises(ValueError, match=message):
        pooled(np.zeros((1, 1, 3, 3), np.float32), np.array(rois, np.float32), pooled_shape)


def test_against_onnxruntime():
    onnxruntime = pytest.importorskip("onnxruntime")
    helper = pytest.importorskip("onnx").helper
    x, rois = some(seed=4)
    rois[:, 3:] = rois[:, 1:3] + np.abs(rois[:, 3:])
    graph = helper.make_graph(
        [helper.make_node("MaxRoiPool", ["x", "rois"], ["y"], pooled_shape=[3, 2], spatial_scale=0.5)],
        "pool",
        [helper.make_tensor_value_info(name, 1, value.shape) for name, value in (("x", x), ("rois", rois))],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(pooled(x, rois, (3, 2), 0.5), session.run(None, {"x": x, "rois": rois})[0])
