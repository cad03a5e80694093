"""DynamicQuantizeMatMul and MatMulIntegerToFloat against sums over integers."""

import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

import onnxeval

F32 = np.float32


def draw(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def column(values, dtype=F32):
    return np.array(values, dtype)


INTEGER_CASES = {
    "one scale": [draw((3, 4), np.uint8), draw((4, 5), np.int8, 1), F32(0.1), column([0.5])],
    "zero points": [
        draw((2, 3, 4), np.uint8),
        draw((4, 2), np.uint8, 1),
        F32(0.1),
        column([0.5, 0.25]),
        np.uint8(7),
        column([3, 200], np.uint8),
        column([1.5, -2]),
    ],
    "a scale for each row": [draw((3, 4), np.int8), draw((4, 2), np.int8, 1), column([[0.1], [0.2], [0.4]]), F32(2)],
    "batches of B": [
        draw((3, 4), np.uint8),
        draw((2, 4, 2), np.int8, 1),
        F32(0.1),
        draw((2, 1, 2), F32, 2) ** 2,
        None,
        draw((2, 1, 2), np.int8, 3),
    ],
}


def integer_product(a, b, a_scale, b_scale, a_zero_point=None, b_zero_point=None, bias=None):
    left = a.astype(np.int64) - (0 if a_zero_point is None else np.int64(a_zero_point))
    right = b.astype(np.int64) - (0 if b_zero_point is None else b_zero_point.astype(np.int64))
    product = (left @ right).astype(F32) * (
        np.asarray(a_scale, F32) * np.asarray(b_scale, F32)
    )  # rounded in this order
    return product if bias is None else product + bias


@pytest.mark.parametrize("name", INTEGER_CASES)
def test_integers_to_float(name: str) -> None:
    inputs = [None if x is None else np.asarray(x) for x in INTEGER_CASES[name]]
    given = ours("MatMulIntegerToFloat", inputs)
    assert given.dtype == F32
    np.testing.assert_array_equal(given, integer_product(*inputs).astype(F32))


@pytest.mark.parametrize("name", INTEGER_CASES)
def test_integers_to_float_as_onnxruntime(name: str) -> None:
    assert_agree("MatMulIntegerToFloat", [None if x is None else np.asarray(x) for x in INTEGER_CASES[name]])


def test_integers_to_float16() -> None:
    a, b = draw((3, 4), np.uint8), draw((4, 5), np.int8, 1)
    scales = np.float16(0.1), np.float16(0.3)
    given = ours("MatMulIntegerToFloat", [a, b, *map(np.asarray, scales)])
    assert given.dtype == np.float16
    np.testing.assert_array_equal(given, integer_product(a, b, *scales).astype(np.float16))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (2, column([0.1, 0.2, 0.3]), r"a_scale of shape \[3\] is neither one number nor \(M, 1\)"),
        (4, column([1, 2, 3], np.uint8), "a_zero_point of shape"),
        (3, column([0.1, 0.2, 0.3]), "b_scale of shape"),
        (5, column([1, 2], np.uint8), "both have one type"),
        (6, column([1, 2, 3]), r"the bias has shape \[3\], expected \[5\]"),
        (1, draw((3, 5), np.int8), "do not multiply"),
    ],
)
def test_integers_to_float_refuses(place, value, message) -> None:
    inputs = [draw((3, 4), np.uint8), draw((4, 5), np.int8), column(0.1), column(0.5), None, None, None]
    inputs[place] = value
    with pytest.raises(onnxeval.NodeError, match=message):
        ours("MatMulIntegerToFloat", inputs)


DYNAMIC_CASES = {
    "one scale": [draw((3, 4), F32), draw((4, 5), np.uint8, 1), column(0.1)],
    "a scale for each column": [
        draw((2, 3, 4), F32),
        draw((4, 2), np.int8, 1),
        column([0.1, 0.2]),
        column([3, -4], np.int8),
        column([1.5, -2]),
    ],
    "zeros": [np.zeros((2, 4), F32), draw((4, 2), np.int8, 1), column(0.1), None, column([1, 2])],
    "positive": [draw((4, 4), F32) ** 2 + 3, draw((4, 2), np.int8, 1), column(0.1)],
    "batches of B": [draw((3, 4), F32), draw((2, 4, 2), np.uint8, 1), column([0.1, 0.4])],
    "a vector": [draw((4,), F32), draw((4, 2), np.uint8, 1), column([0.1, 0.4])],
}


@pytest.mark.parametrize("name", DYNAMIC_CASES)
def test_dynamic(name: str) -> None:
    a, *others = DYNAMIC_CASES[name]
    low, high = min(a.min(), F32(0)), max(a.max(), F32(0))
    scale = (high - low) / F32(255) or F32(1)
    zero_point = np.uint8(np.rint(-low / scale))
    codes = np.clip(np.rint(a / scale) + zero_point, 0, 255).astype(np.uint8)
    b, b_scale, b_zero_point, bias = (*others, None, None)[:4]
    wanted = integer_product(codes, b, scale, b_scale, zero_point, b_zero_point, bias)
    given = ours("DynamicQuantizeMatMul", DYNAMIC_CASES[name])
    assert given.dtype == F32
    np.testing.assert_allclose(given, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", DYNAMIC_CASES)
def test_dynamic_as_onnxruntime(name: str) -> None:
    assert_agree("DynamicQuantizeMatMul", DYNAMIC_CASES[name])
