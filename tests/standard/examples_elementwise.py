"""Steps of arithmetic, comparisons, bounds and casts: examples of the meaning before and after.

What is wanted is worked out from the texts, number by number.
"""

import math
import operator

import numpy as np
from standard.one_node import Example, f32, gives, i64, refuses, strings

_A = np.arange(12).reshape(2, 3, 2) - 4
_B = np.array([3, -2, 5])

#: Operator -> (version with axis and broadcast, type, function).
_BINARY = {
    "Add": (6, np.float32, operator.add),
    "Sub": (6, np.float32, operator.sub),
    "Mul": (6, np.float32, operator.mul),
    "Div": (6, np.float32, operator.truediv),
    "Pow": (1, np.float32, math.pow),
    "And": (1, np.bool_, lambda a, b: bool(a and b)),
    "Or": (1, np.bool_, lambda a, b: bool(a or b)),
    "Xor": (1, np.bool_, lambda a, b: bool(a) != bool(b)),
    "Equal": (1, np.int32, operator.eq),
    "Greater": (1, np.float32, operator.gt),
    "Less": (1, np.float32, operator.lt),
}


def _binary(older: int, dtype: type, function) -> list[Example]:
    a, b = (_A + 5 if function is math.pow else _A).astype(dtype), _B.astype(dtype)
    rows = [[[function(x.item(), b[j].item()) for x in a[i, j]] for j in range(3)] for i in range(2)]
    wanted = np.array(rows)
    wanted = wanted.astype(np.bool_ if wanted.dtype == np.bool_ else dtype)
    return [
        gives(older, [a, b], wanted, axis=1, broadcast=1),
        refuses(older, [a, b.reshape(3, 1)], "broadcast is 0"),
        gives(7, [a, b.reshape(3, 1)], wanted),
        refuses(7, [a, b], "broadcast"),
    ]


_X = f32([[1, -5], [7, math.inf]])
_LARGEST = float(np.finfo(np.float32).max)
_LABELS = strings("b", "x", "a")
_TEXT = strings("a", "b")


EXAMPLES: dict[str, list[Example]] = {
    **{f"{name}-{older} -> 7": _binary(older, dtype, f) for name, (older, dtype, f) in _BINARY.items()},
    "Cast-1 -> 6": [
        gives(1, [f32([1.9, -1.9])], np.array([1, -1], np.int32), to="INT32"),
        gives(6, [f32([1.9, -1.9])], np.array([1, -1], np.int32), to=6),
    ],
    "Clip-1 -> 6": [
        gives(1, [_X], f32([[1, -2], [7, _LARGEST]]), min=-2.0),
        gives(6, [_X], f32([[1, -2], [7, _LARGEST]]), min=-2.0),
        gives(6, [np.array([1e300, -math.inf])], np.array([1e300, -float(np.finfo(float).max)])),
    ],
    "Clip-6 -> 11": [
        gives(6, [_X], f32([[1, -2], [3, 3]]), min=-2.0, max=3.0),
        gives(11, [_X, f32(-2), f32(3)], f32([[1, -2], [3, 3]])),
        gives(11, [_X, None, f32(3)], f32([[1, -5], [3, 3]])),
        refuses(11, [_X, f32([-2, -2])], "min must be a scalar"),
    ],
    "Gemm-6 -> 7": [
        gives(6, [f32([[1, 2]]), f32([[3], [4]]), f32([[5]])], f32([[16]])),
        gives(6, [f32([[1, 2], [0, 1]]), f32([[3], [4]]), f32([5])], f32([[16], [9]]), broadcast=1),
        refuses(6, [f32([[1, 2], [0, 1]]), f32([[3], [4]]), f32([5])], "broadcast is 0"),
        gives(7, [f32([[1, 2], [0, 1]]), f32([[3], [4]]), f32([5])], f32([[16], [9]])),
    ],
    "Gemm-9 -> 11": [
        refuses(9, [f32([[1, 2]]), f32([[3], [4]])], "takes 3 inputs"),
        gives(11, [f32([[1, 2]]), f32([[3], [4]])], f32([[11]])),
    ],
    "Selu-1 -> 6": [
        gives(1, [f32([-1, 2])], f32([1.0507 * 1.6732 * math.expm1(-1), 1.0507 * 2])),
        gives(6, [f32([-1, 2])], f32([1.0507010221481323 * 1.6732631921768188 * math.expm1(-1), 2.1014020442962646])),
    ],
    "ai.onnx.ml.LabelEncoder-1 -> 2": [
        gives(1, [_LABELS], i64([1, -1, 0]), classes_strings=["a", "b"]),
        gives(1, [i64([1, 5, 0])], strings("b", "none", "a"), classes_strings=["a", "b"], default_string="none"),
        gives(2, [_LABELS], f32([2.5, 9, 1.5]), keys_strings=["a", "b"], values_floats=[1.5, 2.5], default_float=9.0),
        gives(2, [f32([0.0, -0.0])], i64([-1, 4]), keys_floats=[-0.0], values_int64s=[4]),
    ],
}
