"""Derivatives of operators that move or pick elements against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from ops.training.differences import Case, check, check_in_16_bits, in_16_bits

RNG = np.random.default_rng(3)


def normal(*shape):
    return RNG.normal(size=shape)


def ints(*values):
    return np.array(values, np.int64)


SHAPES = [
    Case("Reshape", [normal(2, 3), ints(3, -1)]),
    Case("Reshape", [normal(2, 3)], {"shape": [6]}, opset=1),
    Case("Flatten", [normal(2, 3, 2)], {"axis": 2}),
    Case("Flatten", [normal(2, 3, 2)], opset=1),
    Case("Squeeze", [normal(2, 1, 3), ints(1)]),
    Case("Squeeze", [normal(2, 1, 3)]),
    Case("Squeeze", [normal(2, 1, 3)], {"axes": [-2]}, opset=11),
    Case("Squeeze", [normal(2, 1, 3)], opset=1),
    Case("Unsqueeze", [normal(2, 3), ints(0, -1)]),
    Case("Unsqueeze", [normal(2, 3)], {"axes": [1]}, opset=11),
    Case("Unsqueeze", [normal(2, 3)], {"axes": [1]}, opset=1),
    Case("Transpose", [normal(2, 3, 4)], {"perm": [1, 2, 0]}),
    Case("Transpose", [normal(2, 3, 4)], opset=1),
    Case("Expand", [normal(3, 1), ints(2, 1, 4)]),
    Case("Tile", [normal(2, 3), ints(2, 2)]),
    Case("Tile", [normal(2, 3), np.array(2.0), np.array(1.0)], opset=1, fixed=(1, 2)),
    Case("DepthToSpace", [normal(1, 8, 1, 2)], {"blocksize": 2, "mode": "CRD"}),
    Case("DepthToSpace", [normal(1, 8, 1, 2)], {"blocksize": 2}, opset=1),
    Case("SpaceToDepth", [normal(1, 2, 2, 4)], {"blocksize": 2}),
]
WHOLES = [
    Case("Concat", [normal(2, 3), normal(2, 1), normal(2, 2)], {"axis": -1}),
    Case("Concat", [normal(2, 3), normal(2, 1)], opset=1),
    Case("Concat", [normal(2)], {"axis": 0}),
    Case("Split", [normal(2, 7)], {"axis": 1, "num_outputs": 3}, outputs=3),
    Case("Split", [normal(2, 7), ints(3, 4)], {"axis": -1}, outputs=2, counted=(1,)),
    Case("Split", [normal(4)], outputs=2, opset=13),
    Case("Split", [normal(3, 2)], {"split": [1, 2]}, outputs=2, opset=11),
    Case("Split", [normal(3, 2)], {"split": [1, 2]}, outputs=2, opset=1, counted=(0,)),
    Case("Slice", [normal(5, 4), ints(4, 0), ints(-100, 3), ints(0, 1), ints(-2, 2)]),
    Case("Slice", [normal(5, 4), ints(1), ints(3)], opset=10),
    Case("Slice", [normal(5, 4)], {"starts": [1, 0], "ends": [3, -1]}, opset=1),
    Case("Pad", [normal(2, 3), ints(1, 0, 2, 1), np.array(0.7)]),
    Case("Pad", [normal(2, 3), ints(-1, 1), None, ints(1)]),
    *(Case("Pad", [normal(3, 4), ints(2, 1, 1, 2)], {"mode": mode}) for mode in ("reflect", "edge", "wrap")),
    Case("Pad", [normal(3, 4), ints(2, 1, 1, 2), np.array(0.5)], opset=11),
    Case("Pad", [normal(3)], {"pads": [1, 2], "value": 3.0}, opset=2),
    Case("Pad", [normal(3)], {"paddings": [1, 2], "value": 3.0}, opset=1),
    Case("CenterCropPad", [normal(4, 3), ints(3, 6)]),
    Case("ReverseSequence", [normal(4, 2, 3), ints(2, 4)], {"time_axis": 0, "batch_axis": 1}),
    Case("Trilu", [normal(2, 3, 4), np.array(1)]),
    Case("Trilu", [normal(3, 4)], {"upper": 0}),
    Case("TensorScatter", [normal(2, 4, 3), normal(2, 2, 3), ints(1, 2)], {"axis": 1}),
    Case("TensorScatter", [normal(2, 4, 3), normal(2, 2, 3), ints(3, 2)], {"axis": 1, "mode": "circular"}),
    Case("Resize", [normal(1, 1, 2, 3), None, None, ints(1, 1, 4, 5)], {"mode": "nearest"}),
    Case(
        "Resize",
        [normal(2, 3), np.array([-0.5, 0, 0.5, 1]), None, ints(3, 4)],
        {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 5.0},
        fixed=(1,),
    ),
    Case("Resize", [normal(2, 3), np.array([2, 1.5], np.float32)], opset=10),
    Case("Upsample", [normal(1, 1, 2, 3), np.array([1, 1, 2, 1.5], np.float32)], opset=9),
    Case("Upsample", [normal(1, 1, 2, 3)], {"scales": [1.0, 1.0, 2.0, 1.5]}, opset=7),
]
PICKED = [
    Case("Gather", [normal(4, 3), np.array([[0, -1], [2, 0]])]),
    Case("Gather", [normal(4, 3), np.array(1)], {"axis": 1}),
    Case("Gather", [normal(4, 3), ints(1, 1)], opset=1),
    Case("GatherElements", [normal(4, 3), np.array([[0, -1], [2, 0]])], {"axis": 1}),
    Case("GatherND", [normal(2, 3, 4), np.array([[0, 1], [1, -1], [0, 1]])]),
    Case("GatherND", [normal(2, 3, 4), np.array([[1], [-1]])], {"batch_dims": 1}),
    Case("GatherND", [normal(2, 3, 4), np.array([[[0]], [[1]]])], opset=11),
    Case("ScatterElements", [normal(4, 3), np.array([[0, -1], [2, 0]]), normal(2, 2)], {"axis": 1}),
    Case("ScatterElements", [normal(4), ints(1, 1, 2), normal(3)]),
    Case("ScatterElements", [normal(4), ints(1, 1, 2), normal(3)], {"reduction": "add"}),
    Case("ScatterElements", [normal(4), ints(1, 3, 2), normal(3)], opset=11),
    Case("Scatter", [normal(4), ints(1, 3, 2), normal(3)], opset=9),
    Case("ScatterND", [normal(4, 2), np.array([[1], [1], [2]]), normal(3, 2)]),
    Case("ScatterND", [normal(4, 2), np.array([[1], [1], [2]]), normal(3, 2)], {"reduction": "add"}),
    Case("ScatterND", [normal(4, 2), np.array([[1, 0], [2, 1]]), normal(2)], opset=11),
    Case("Compress", [normal(3, 4), np.array([True, False, True])], {"axis": 0}),
    Case("Compress", [normal(3, 4), np.array([True, False, True, True])], opset=9),
    Case("OneHot", [ints(0, 2, -1), np.array(3), normal(2)]),
    Case("OneHot", [ints(0, 2, -1), np.array(3), normal(2)], {"axis": 0}, opset=9),
    Case("TopK", [normal(3, 5), ints(2)], {"axis": 1}, outputs=2),
    Case("TopK", [normal(3, 5), ints(2)], {"axis": 0, "largest": 0}, outputs=2, opset=11),
    Case("TopK", [normal(3, 5)], {"k": 2}, outputs=2, opset=1),
    Case("MaxUnpool", [normal(1, 1, 2), np.array([[[1, 3]]])], {"kernel_shape": [2], "strides": [2]}),
    Case("EyeLike", [normal(3, 3)], opset=22),
]
POOLS = [
    Case("MaxPool", [normal(2, 2, 5)], {"kernel_shape": [2], "strides": [2]}),
    Case("MaxPool", [normal(1, 2, 5, 4)], {"kernel_shape": [3, 2], "storage_order": 1}, outputs=2),
    Case("MaxPool", [normal(1, 2, 5, 4)], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}, opset=8),
    Case("MaxPool", [normal(1, 2, 5, 4)], {"kernel_shape": [3, 2], "ceil_mode": 1, "strides": [3, 3]}, opset=10),
    Case("MaxPool", [normal(1, 2, 5, 4)], {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER"}, opset=1),
    Case("AveragePool", [normal(2, 2, 5)], {"kernel_shape": [2], "strides": [2]}),
    Case("AveragePool", [normal(1, 2, 5, 4)], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "count_include_pad": 1}),
    Case("AveragePool", [normal(1, 2, 5, 4)], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "dilations": [2, 1]}),
    Case("AveragePool", [normal(1, 1, 6, 6)], {"kernel_shape": [3, 3], "ceil_mode": 1, "strides": [2, 4]}, opset=10),
    Case("AveragePool", [normal(1, 1, 6)], {"kernel_shape": [3], "auto_pad": "SAME_UPPER", "strides": [2]}, opset=1),
    Case("LpPool", [normal(1, 2, 5)], {"kernel_shape": [3], "strides": [2]}),
    Case("LpPool", [normal(1, 2, 5)], {"kernel_shape": [3], "p": 3, "pads": [1, 1], "ceil_mode": 1}),
    Case("LpPool", [normal(1, 2, 5)], {"kernel_shape": [3], "p": 1.5}, opset=1),
    Case("GlobalAveragePool", [normal(2, 2, 3, 2)]),
    Case("GlobalMaxPool", [normal(2, 2, 3, 2)]),
    Case("GlobalLpPool", [normal(2, 2, 3, 2)], {"p": 3}),
    Case("GlobalLpPool", [normal(2, 2, 3, 2)], opset=1),
    Case("LRN", [normal(2, 5, 3)], {"size": 4, "alpha": 0.5}),
    Case("LRN", [normal(2, 3)], {"size": 9, "alpha": 0.5, "beta": 0.6, "bias": 2.0}, opset=1),
]


CASES = [*SHAPES, *WHOLES, *PICKED, *POOLS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", in_16_bits(CASES), ids=str)
def test_derivatives_in_16_bits(case: Case) -> None:
    check_in_16_bits(case)
