"""Steps whose text alone changes the meaning: examples of both sides.

What is wanted is worked out from the texts, number by number.
"""

import operator

import numpy as np
from onnx import GraphProto, TensorProto, helper
from standard.one_node import Example, f32, gives, i64, refuses, strings

_SAME = f32([[1, -2], [3, 8]]), f32([[5, -9], [0, 4]])
_ROW = f32([[5, -9]])


def _variadic(function) -> list[Example]:
    """Equal shapes until 6, broadcasting from 8 on."""

    def each(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return f32([[function(x[i, j].item(), y[i % len(y), j].item()) for j in range(2)] for i in range(2)])

    return [
        gives(6, _SAME, each(*_SAME)),
        refuses(6, [_SAME[0], _ROW], "differ"),
        gives(8, _SAME, each(*_SAME)),
        gives(8, [_SAME[0], _ROW], each(_SAME[0], _ROW)),
    ]


def _constant(values: list[float]) -> GraphProto:
    """A sub-graph without inputs that gives a vector."""
    tensor = helper.make_tensor("", TensorProto.FLOAT, [len(values)], values)
    output = helper.make_tensor_value_info("branch", TensorProto.FLOAT, [len(values)])
    return helper.make_graph([helper.make_node("Constant", [], ["branch"], value=tensor)], "branch", [], [output])


_BRANCHES = {"then_branch": _constant([1, 2]), "else_branch": _constant([3])}
_TRUE, _FALSE = np.array(True), np.array(False)
_FLOATS = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
_POOL = {"kernel_shape": [2], "strides": [2], "pads": [0, 1], "ceil_mode": 1}
_SPREAD = [f32([[[1, 10]]]), f32([[[1, 2, 3]]])]  # laid out with a stride of 1: 1, 12, 23, 30
_HALF_WAY = {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"}


def _bytes(*values: int) -> np.ndarray:
    return np.array(values, np.uint8)


def _signed(*values: int) -> np.ndarray:
    return np.array(values, np.int8)


def _scattered(nd: bool, version: int) -> list[Example]:
    inputs = [f32([1, 2, 3]), i64([[1], [1]] if nd else [1, 1]), f32([5, 7])]
    added, multiplied = f32([1, 14, 3]), f32([1, 70, 3])
    both = [gives(version, inputs, added, reduction="add"), gives(version, inputs, multiplied, reduction="mul")]
    if version < 18:
        return [*both, *(refuses(version, inputs, "came with version 18", reduction=name) for name in ("max", "min"))]
    greatest, least = f32([1, 7, 3]), f32([1, 2, 3])
    return [*both, gives(18, inputs, greatest, reduction="max"), gives(18, inputs, least, reduction="min")]


EXAMPLES: dict[str, list[Example]] = {
    "AveragePool-19 -> 22": [
        example
        for version in (19, 22)
        for example in (
            gives(version, [f32([[[3, 5]]])], f32([[[4]]]), **_POOL),
            gives(version, [f32([[[3, 5, 9]]])], f32([[[4, 9]]]), **_POOL),
            gives(version, [f32([[[3, 5, 9]]])], f32([[[4, 4.5]]]), count_include_pad=1, **_POOL),
        )
    ],
    "BitShift-11 -> 28": [
        gives(11, [_bytes(1, 4), _bytes(1, 1)], _bytes(0, 2), direction="RIGHT"),
        gives(11, [_bytes(1, 255), _bytes(7, 8)], _bytes(128, 0), direction="LEFT"),
        refuses(11, [_signed(1), _signed(1)], "int8, allowed", direction="RIGHT"),
        gives(28, [_signed(-8, -8, 8), _signed(1, 9, -1)], _signed(-4, -1, 0), direction="RIGHT"),
        gives(28, [_signed(65, -1, 3), _signed(1, 8, -2)], _signed(-126, 0, 0), direction="LEFT"),
    ],
    "Cast-6 -> 9": [
        refuses(6, [strings("1.5")], "string, allowed", to=TensorProto.FLOAT),
        refuses(6, [f32([1.5])], "string, allowed", to=TensorProto.STRING),
        gives(9, [strings("1.5", "1E2", "-inf")], f32([1.5, 100, -np.inf]), to=TensorProto.FLOAT),
        gives(9, [f32([314.15625])], strings("314.15625"), to=TensorProto.STRING),
    ],
    "ConvTranspose-1 -> 11": [
        gives(1, _SPREAD, f32([[[1, 12, 23]]]), output_shape=[3]),
        gives(1, _SPREAD, f32([[[12, 23, 30]]]), output_shape=[3], auto_pad="SAME_UPPER"),
        gives(11, _SPREAD, f32([[[12, 23, 30]]]), output_shape=[3]),
        gives(11, _SPREAD, f32([[[1, 12, 23]]]), output_shape=[3], auto_pad="SAME_UPPER"),
        gives(1, [f32([[[1]]]), f32([[[2]]])], f32([[[2, 0, 0]]]), output_padding=[2]),
        refuses(11, [f32([[[1]]]), f32([[[2]]])], "not below the strides", output_padding=[2]),
    ],
    "DequantizeLinear-13 -> 19": [
        refuses(13, [f32([1]).astype("float8_e5m2"), f32(2)], "allowed"),
        gives(13, [_bytes(3, 5), f32([2, 10]), _bytes(1, 1)], f32([4, 40]), axis=0),
        gives(19, [f32([1.5]).astype("float8_e5m2"), f32(2)], f32([3])),
        gives(19, [_bytes(3, 5), f32([2])], f32([6, 10])),
    ],
    "Flatten-9 -> 11": [
        gives(9, [f32([[[1, 2]], [[3, 4]]])], f32([[1, 2], [3, 4]]), axis=2),
        refuses(9, [f32([[[1, 2]], [[3, 4]]])], "counts from the back", axis=-1),
        gives(11, [f32([[[1, 2]], [[3, 4]]])], f32([[1, 2], [3, 4]]), axis=-1),
    ],
    "If-1 -> 11": [
        gives(1, [_TRUE], f32([1, 2]), **_BRANCHES),
        gives(11, [_TRUE], f32([1, 2]), **_BRANCHES),
        gives(11, [_FALSE], f32([3]), **_BRANCHES),
    ],
    "Max-6 -> 8": _variadic(max),
    "MaxPool-12 -> 22": [gives(version, [f32([[[3, 5, 9]]])], f32([[[5, 9]]]), **_POOL) for version in (12, 22)]
    + [gives(version, [f32([[[3, 5]]])], f32([[[5]]]), **_POOL) for version in (12, 22)],
    "Mean-6 -> 8": _variadic(lambda x, y: (x + y) / 2),
    "Min-6 -> 8": _variadic(min),
    "Mod-13 -> 28": [
        gives(13, [i64([-7, 7]), i64([3, -3])], i64([2, -2])),
        gives(13, [f32([-7, 7]), f32([3, -3])], f32([-1, 1]), fmod=1),
        refuses(13, [f32([-7]), f32([3])], "fmod must be 1"),
        gives(28, [f32([-7, 7, -1, 1]), f32([3, -3, np.inf, np.inf])], f32([2, -2, np.inf, 1])),
        gives(28, [f32([-7, 7]), f32([3, -3])], f32([-1, 1]), fmod=1),
    ],
    "OneHot-9 -> 11": [
        gives(9, [i64([1, -1, 3]), i64(3), i64([0, 1])], i64([[0, 1, 0], [0, 0, 0], [0, 0, 0]])),
        gives(11, [i64([1, -1, 3]), i64(3), i64([0, 1])], i64([[0, 1, 0], [0, 0, 1], [0, 0, 0]])),
    ],
    "OptionalGetElement-15 -> 18": [
        refuses(15, [_FLOATS], "the optional is empty"),
        refuses(18, [_FLOATS], "the optional is empty"),
        gives(18, [f32([1])], f32([1])),
    ],
    "PRelu-6 -> 7": [
        gives(6, [f32([[[-1, 1], [-2, 2]]]), f32([3, 5])], f32([[[-3, 1], [-10, 2]]])),
        gives(7, [f32([[[-1, 1], [-2, -2]]]), f32([3, 5])], f32([[[-3, 1], [-6, -10]]])),
        refuses(7, [f32([[[-1, 1, 0], [-2, -2, 0]]]), f32([3, 5])], "does not broadcast"),
    ],
    "Pad-18 -> 19": [
        refuses(18, [f32([1, 2, 3]), i64([1, 2])], "came with version 19", mode="wrap"),
        gives(18, [f32([1, 2, 3]), i64([1, 2])], f32([2, 1, 2, 3, 2, 1]), mode="reflect"),
        gives(19, [f32([1, 2, 3]), i64([1, 2])], f32([3, 1, 2, 3, 1, 2]), mode="wrap"),
    ],
    "ReduceMax-18 -> 20": [
        refuses(18, [np.array([True, False])], "bool, allowed"),
        gives(18, [f32([1, 2])], f32([2])),
        gives(20, [np.array([True, False])], np.array([True])),
    ],
    "ReduceMin-18 -> 20": [
        refuses(18, [np.array([True, False])], "bool, allowed"),
        gives(18, [f32([1, 2])], f32([1])),
        gives(20, [np.array([True, False])], np.array([False])),
    ],
    "Resize-18 -> 19": [
        gives(18, [f32([0, 4, 8]), None, f32([0.5])], f32([2]), mode="linear"),
        # 3 * 0.5 = 1.5, of which 1 is made: 3 / 2 * (1 - 1 / 1.5) + 0.5 / 0.5 - 0.5 = 1
        gives(19, [f32([0, 4, 8]), None, f32([0.5])], f32([4]), **_HALF_WAY),
        gives(19, [f32([0, 4, 8]), None, f32([0.5])], f32([2]), mode="linear"),
    ],
    "ScatterElements-16 -> 18": [*_scattered(False, 16), *_scattered(False, 18)],
    "ScatterND-16 -> 18": [*_scattered(True, 16), *_scattered(True, 18)],
    "Squeeze-1 -> 11": [
        gives(1, [f32([[1, 2]])], f32([1, 2]), axes=[0]),
        refuses(1, [f32([[1, 2]])], "count from the back", axes=[-2]),
        gives(11, [f32([[1, 2]])], f32([1, 2]), axes=[-2]),
    ],
    "Sum-6 -> 8": _variadic(operator.add),
    "Unsqueeze-1 -> 11": [
        gives(1, [f32([1, 2])], f32([[[1, 2]]]), axes=[1, 0]),
        refuses(1, [f32([1, 2])], "count from the back", axes=[-1]),
        gives(11, [f32([1, 2])], f32([[1], [2]]), axes=[-1]),
        refuses(11, [f32([1, 2])], "twice", axes=[0, -3]),
    ],
}
