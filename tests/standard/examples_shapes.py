"""Steps of reductions, movements, resizing and control flow: examples of the meaning before and after.

What is wanted is worked out from the texts, number by number.
"""

import math

import numpy as np
from onnx import TensorProto, helper
from standard.one_node import Example, Outputs, f32, gives, i64, refuses

_ROWS = [[1, -2, 3], [4, 5, -6]]

#: Operator -> (last version with an attribute for axes, function of the numbers reduced).
_REDUCTIONS = {
    "ReduceL1": (13, lambda xs: sum(map(abs, xs))),
    "ReduceL2": (13, lambda xs: math.hypot(*xs)),
    "ReduceLogSum": (13, lambda xs: math.log(sum(xs))),
    "ReduceLogSumExp": (13, lambda xs: math.log(sum(map(math.exp, xs)))),
    "ReduceMax": (13, max),
    "ReduceMean": (13, lambda xs: sum(xs) / len(xs)),
    "ReduceMin": (13, min),
    "ReduceProd": (13, math.prod),
    "ReduceSum": (11, sum),
    "ReduceSumSquare": (13, lambda xs: sum(x * x for x in xs)),
}


def _reduced(name: str, older: int, function) -> list[Example]:
    newer = 13 if name == "ReduceSum" else 18
    rows = np.abs(_ROWS).tolist() if name == "ReduceLogSum" else _ROWS
    by_row, of_all = [function(row) for row in rows], function(rows[0] + rows[1])
    each = f32([[function([x]) for x in row] for row in rows])
    x = f32(rows)
    return [
        gives(older, [x], f32(by_row), axes=[1], keepdims=0),
        gives(older, [x], f32([[of_all]])),
        gives(newer, [x, i64([-1])], f32(by_row), keepdims=0),
        gives(newer, [x], f32([[of_all]])),
        gives(newer, [x, i64([])], f32([[of_all]])),
        gives(newer, [x], each, noop_with_empty_axes=1),
        refuses(newer, [x], 'no attribute "axes"', axes=[1]),
    ]


def _running_sum() -> object:
    """(state, x) -> (state + x, the same)."""
    names = ("state", "x", "sum", "row")
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in names}
    nodes = [helper.make_node("Add", ["state", "x"], ["sum"]), helper.make_node("Identity", ["sum"], ["row"])]
    return helper.make_graph(nodes, "body", [values["state"], values["x"]], [values["sum"], values["row"]])


def _two_items(outputs: Outputs) -> None:
    last, rows = outputs
    assert last.tolist() == [13, 20]
    assert rows.shape == (2, 2)
    assert rows[0].tolist() == [11, 13]
    assert rows[1, 0] == 20  # beyond the item's length the text leaves it open


_OPTIONAL = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
_X = f32([[1, 2], [3, 4]])
_LINE = f32([[1, 2]])
_NONE = f32([])
_SPARSE = helper.make_sparse_tensor(
    helper.make_tensor("", TensorProto.FLOAT, [1], [5.0]), helper.make_tensor("", TensorProto.INT64, [1], [2]), [3]
)
_DENSE = helper.make_tensor("", TensorProto.FLOAT, [2], [1.0, 2.0])


EXAMPLES: dict[str, list[Example]] = {
    **{
        f"{name}-{older} -> {13 if name == 'ReduceSum' else 18}": _reduced(name, older, function)
        for name, (older, function) in _REDUCTIONS.items()
    },
    "Concat-1 -> 4": [
        gives(1, [_X, _X], f32([[1, 2, 1, 2], [3, 4, 3, 4]])),
        gives(1, [_LINE, _X], f32([[1, 2], [1, 2], [3, 4]]), axis=0),
        refuses(4, [_X, _X], "needs the attribute axis"),
        gives(4, [_LINE, _X], f32([[1, 2], [1, 2], [3, 4]]), axis=0),
    ],
    "Constant-9 -> 11": [
        gives(9, [], f32([1, 2]), value=_DENSE),
        refuses(9, [], "needs the attribute value"),
        gives(11, [], f32([0, 0, 5]), sparse_value=_SPARSE),
        refuses(11, [], "exactly one"),
    ],
    "OptionalHasElement-15 -> 18": [
        gives(15, [_OPTIONAL], np.array(False)),
        gives(18, [_OPTIONAL], np.array(False)),
        gives(18, [None], np.array(False)),
        gives(18, [_X], np.array(True)),
    ],
    "Pad-1 -> 2": [
        gives(1, [_X], f32([[9, 1, 2], [9, 3, 4]]), paddings=[0, 1, 0, 0], value=9.0),
        refuses(1, [_X], "negative", paddings=[0, -1, 0, 0]),
        gives(2, [_X], f32([[2, 0], [4, 0]]), pads=[0, -1, 0, 1]),
    ],
    "Pad-2 -> 11": [
        gives(2, [_X], f32([[1, 1, 2], [3, 3, 4]]), pads=[0, 1, 0, 0], mode="edge"),
        gives(11, [i64([1, 2]), i64([1, 0]), i64(7)], i64([7, 1, 2])),
        gives(11, [i64([1, 2]), i64([1, 0])], i64([0, 1, 2])),
    ],
    "Pad-13 -> 18": [
        gives(13, [_X, i64([0, 1, 0, 0])], f32([[0, 1, 2], [0, 3, 4]])),
        refuses(13, [_X, i64([1, 0]), None, i64([-1])], "takes 2 to 3 inputs"),
        gives(18, [_X, i64([1, 0]), None, i64([-1])], f32([[0, 1, 2], [0, 3, 4]])),
    ],
    "Reshape-1 -> 5": [
        gives(1, [f32([[1, 2], [3, 4], [5, 6]])], f32([[1, 2, 3, 4, 5, 6]]), shape=[1, -1]),
        gives(1, [f32([[1, 2], [3, 4], [5, 6]])], f32([[[1, 2]], [[3, 4]], [[5, 6]]]), shape=[0, 1, 2]),
        gives(5, [f32([[1, 2], [3, 4], [5, 6]]), i64([0, 1, 2])], f32([[[1, 2]], [[3, 4]], [[5, 6]]])),
        refuses(5, [_X], "takes 2 inputs"),
    ],
    "Resize-10 -> 11": [
        gives(10, [_LINE, f32([1, 2])], f32([[1, 1.5, 2, 2]]), mode="linear"),
        gives(10, [_LINE, f32([1, 2])], f32([[1, 1, 2, 2]])),
        gives(11, [_LINE, _NONE, f32([1, 2])], f32([[1, 1.25, 1.75, 2]]), mode="linear"),
        gives(
            11,
            [_LINE, _NONE, f32([1, 2])],
            f32([[1, 1.5, 2, 2]]),
            mode="linear",
            coordinate_transformation_mode="asymmetric",
        ),
        gives(11, [_LINE, _NONE, _NONE, i64([1, 4])], f32([[1, 1, 2, 2]])),
    ],
    "Resize-11 -> 13": [
        gives(11, [_LINE, _NONE, _NONE, i64([1, 4])], f32([[1, 1, 2, 2]])),
        refuses(11, [_LINE, None, None, i64([1, 4])], "it is blank"),
        gives(13, [_LINE, None, None, i64([1, 4])], f32([[1, 1, 2, 2]])),
        gives(13, [_LINE, None, f32([1, 2])], f32([[1, 1, 2, 2]])),
    ],
    "Scan-8 -> 9": [
        gives(
            8,
            [i64([2, 1]), f32([10, 20]), f32([[1, 2], [0, 9]])],
            _two_items,
            body=_running_sum(),
            num_scan_inputs=1,
        ),
        gives(9, [f32(10), f32([1, 2])], f32(13), f32([11, 13]), body=_running_sum(), num_scan_inputs=1),
        gives(
            9,
            [f32(10), f32([1, 2])],
            f32(13),
            f32([13, 12]),
            body=_running_sum(),
            num_scan_inputs=1,
            scan_input_directions=[1],
            scan_output_directions=[1],
        ),
    ],
    "Slice-1 -> 10": [
        gives(1, [f32([0, 1, 2, 3])], f32([1, 2]), starts=[1], ends=[-1]),
        gives(1, [_X], f32([[2], [4]]), starts=[1], ends=[9], axes=[1]),
        gives(10, [f32([0, 1, 2, 3]), i64([-1]), i64([0]), i64([0]), i64([-2])], f32([3, 1])),
        gives(10, [_X, i64([1]), i64([9]), i64([1])], f32([[2], [4]])),
    ],
    "Split-1 -> 2": [
        gives(1, [f32([1, 2, 3]), f32([1, 2])], f32([1]), f32([2, 3])),
        gives(1, [f32([1, 2, 3])], f32([1]), f32([2, 3]), split=[1, 2]),
        gives(1, [_X], f32([[1], [3]]), f32([[2], [4]]), axis=1),
        gives(2, [f32([1, 2, 3])], f32([1]), f32([2, 3]), split=[1, 2]),
        refuses(2, [f32([1, 2, 3]), f32([3])], "takes 1 inputs"),
    ],
    "Split-11 -> 13": [
        gives(11, [f32([1, 2, 3])], f32([1]), f32([2, 3]), split=[1, 2]),
        gives(13, [f32([1, 2, 3]), i64([1, 2])], f32([1]), f32([2, 3])),
        gives(13, [_X], f32([[1], [3]]), f32([[2], [4]]), axis=-1),
        refuses(13, [f32([1, 2, 3])], 'no attribute "split"', split=[1, 2]),
    ],
    "Squeeze-11 -> 13": [
        gives(11, [f32([[[1, 2]]])], f32([[1, 2]]), axes=[-3]),
        gives(13, [f32([[[1, 2]]]), i64([-3])], f32([[1, 2]])),
        gives(13, [f32([[[1, 2]]])], f32([1, 2])),
    ],
    "Tile-1 -> 6": [
        gives(1, [_X, f32([2]), f32([1])], f32([[1, 2, 1, 2], [3, 4, 3, 4]])),
        gives(6, [_X, i64([2, 1])], f32([[1, 2], [3, 4], [1, 2], [3, 4]])),
    ],
    "TopK-1 -> 10": [
        gives(1, [f32([3, 9, 5, 9])], f32([9, 9, 5]), i64([1, 3, 2]), k=3),
        gives(10, [f32([3, 9, 5, 9]), i64([3])], f32([9, 9, 5]), i64([1, 3, 2])),
        refuses(10, [f32([3, 9])], "takes 2 inputs"),
    ],
    "Unsqueeze-11 -> 13": [
        gives(11, [f32([1, 2])], f32([[[1, 2]]]), axes=[1, 0]),
        gives(13, [f32([1, 2]), i64([-1])], f32([[1], [2]])),
        refuses(13, [f32([1, 2]), i64([0])], 'no attribute "axes"', axes=[0]),
    ],
    "Upsample-1 -> 7": [
        gives(
            1,
            [_X.reshape(1, 1, 2, 2)],
            f32([[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]).reshape(1, 1, 4, 4),
            width_scale=2.0,
            height_scale=2.0,
        ),
        refuses(1, [_X], "rank 2, expected 4", width_scale=1.0, height_scale=1.0),
        gives(7, [_X], f32([[1, 1, 2, 2], [3, 3, 4, 4]]), scales=[1.0, 2.0]),
        refuses(7, [_X], "'bilinear' is none of", scales=[1.0, 2.0], mode="bilinear"),
    ],
    "Upsample-7 -> 9": [
        gives(7, [_X], f32([[1, 1, 2, 2], [3, 3, 4, 4]]), scales=[1.0, 2.0]),
        gives(9, [_X, f32([1, 2])], f32([[1, 1, 2, 2], [3, 3, 4, 4]])),
        refuses(9, [_X, f32([1, 0.5])], "below 1"),
    ],
}
