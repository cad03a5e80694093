"""Hints for arguments of functions that are not defined everywhere, scales, probabilities and masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from onnxeval.dtypes import STRING, DType, is_integer
from onnxeval.random_feeds.drawing import texts
from onnxeval.random_feeds.looking import Looked
from onnxeval.random_feeds.wishes import NONZERO, NOT_NEGATIVE, POSITIVE, TRUTH, UNIT, Wish, between, exactly
from onnxeval.values import TensorType

Wishes = Mapping[int, Wish]

#: A factor from here on turns 1 into what no softmax sees: what it is multiplied with is a mask.
_MASKING = 1000
_SCALE = Wish(low=0.02, high=0.1)


def _always(wishes: Wishes) -> Callable[[Looked], Wishes]:
    return lambda _node: wishes


def _cast(node: Looked) -> Wishes:
    """Text that is cast to numbers has to be one."""
    made = node.record.outputs[0].type
    if node.dtype(0) != STRING or not isinstance(made, TensorType) or made.dtype == STRING:
        return {}
    whole = made.dtype is not None and is_integer(made.dtype)
    return {0: Wish(choices=("0", "1", "2", "12") if whole else ("0.5", "-1.25", "3", "1e2"))}


def _clip(node: Looked) -> Wishes:
    unsigned = (dtype := node.dtype(0)) is not None and dtype.kind == "u"
    return {1: between(0, 2) if unsigned else Wish(low=-1, high=0), 2: Wish(low=1, high=3)}


def _shift(node: Looked) -> Wishes:
    bits = _bits(node.dtype(0))
    return {1: between(0, bits - 1)}


def _bits(dtype: DType | None) -> int:
    return 8 if dtype is None else 8 * dtype.itemsize


def _multiply(node: Looked) -> Wishes:
    """What is multiplied with a very large number is a mask."""
    wishes = {}
    for place in (0, 1):
        array = node.elements(1 - place)
        if array is not None and array.size and array.dtype.kind == "f" and np.abs(array).min() >= _MASKING:
            wishes[place] = TRUTH
    return wishes


def _power(node: Looked) -> Wishes:
    exponent = node.number(1)
    if exponent is not None and exponent.is_integer() and exponent >= 0:
        return {}
    whole = (dtype := node.dtype(1)) is not None and is_integer(dtype)
    return {0: Wish(low=0.5, high=2), 1: between(0, 2) if whole else Wish(low=0, high=2)}


def _mel(_node: Looked) -> Wishes:
    return {0: exactly([8]), 1: exactly([64]), 2: exactly([8192]), 3: exactly([0.0]), 4: exactly([4096.0])}


def _fourier(node: Looked) -> Wishes:
    """The length of a transform; the axis, which is not that of real and imaginary parts."""
    axis = node.attribute("axis", 1) if node.version < 20 else 1
    sizes = (node.dimensions(0) or (1, 1))[:-1]
    long = [place for place, size in enumerate(sizes) if size != 1]
    return {1: between(1, node.size(0, axis)), 2: Wish(choices=tuple(long or range(len(sizes))))}


def _short_time(node: Looked) -> Wishes:
    """Steps and frames that fit into the signal, the frame as long as the window and the declared result have it."""
    length, frame = node.size(0, 1), node.size(2, 0, 0)
    result = node.result()
    if not frame and result and len(result) == 4:
        frame = 2 * (result[2] - 1) if node.attribute("onesided", 1) else result[2]
    frame = frame or max(length // 2, 1)
    steps = max(result[1] - 1, 1) if result and len(result) == 4 else 2
    return {1: exactly([max((length - frame) // steps, 1)]), 3: exactly([frame])}


def _text(node: Looked) -> Wishes:
    """Text that can be split."""
    delimiter = node.attribute("delimiter") or " "
    return {0: Wish(make=lambda rng, shape, _dtype: texts(rng, shape, delimiter))}


HINTS: dict[tuple[str, str], Callable[[Looked], Wishes]] = {
    ("", "Acos"): _always({0: Wish(low=-1, high=1)}),
    ("", "Acosh"): _always({0: Wish(low=1, high=3)}),
    ("", "Asin"): _always({0: Wish(low=-1, high=1)}),
    ("", "Atanh"): _always({0: Wish(low=-0.9, high=0.9)}),
    ("", "Bernoulli"): _always({0: UNIT}),
    ("", "BitShift"): _shift,
    ("", "BlackmanWindow"): _always({0: between(4, 10)}),
    ("", "Cast"): _cast,
    ("", "CastLike"): _cast,
    ("", "Clip"): _clip,
    ("", "DFT"): _fourier,
    ("", "DequantizeLinear"): _always({1: _SCALE}),
    ("", "Div"): _always({1: NONZERO}),
    ("", "Dropout"): _always({1: Wish(low=0, high=0.9)}),
    ("", "HammingWindow"): _always({0: between(4, 10)}),
    ("", "HannWindow"): _always({0: between(4, 10)}),
    ("", "Log"): _always({0: POSITIVE}),
    ("", "MelWeightMatrix"): _mel,
    ("", "Mod"): _always({1: NONZERO}),
    ("", "Mul"): _multiply,
    ("", "Pow"): _power,
    ("", "QuantizeLinear"): _always({1: _SCALE}),
    ("", "QLinearConv"): _always({1: _SCALE, 4: _SCALE, 6: _SCALE}),
    ("", "QLinearMatMul"): _always({1: _SCALE, 4: _SCALE, 6: _SCALE}),
    ("", "Reciprocal"): _always({0: NONZERO}),
    ("", "STFT"): _short_time,
    ("", "StringSplit"): _text,
    ("", "Sqrt"): _always({0: NOT_NEGATIVE}),
    ("ai.onnx.preview.training", "Adagrad"): _always({1: NOT_NEGATIVE, 4: NOT_NEGATIVE}),
    ("ai.onnx.preview.training", "Adam"): _always({1: between(1, 9), 5: NOT_NEGATIVE}),
    ("ai.onnx.preview.training", "Momentum"): _always({1: between(0, 9)}),
}
