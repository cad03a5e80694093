"""QLinear operators element by element: against the real numbers that the codes stand for."""

import numpy as np
import pytest
from ops.contrib.codes import BYTES, F32, assert_nearest, assert_one_apart, draw, real, scale, zero
from ops.contrib.nodes import ours

import onnxeval

BINARY = {"QLinearAdd": np.add, "QLinearMul": np.multiply}
SHAPES = [((3, 40), (3, 40)), ((3, 40), (40,)), ((1, 40), (3, 1)), ((), (7,)), ((0, 3), (1, 3))]


def binary(dtype, one, other):
    return [
        draw(one, dtype),
        scale(0.03),
        zero(130, dtype),
        draw(other, dtype, 1),
        scale(0.07),
        zero(119, dtype),
        scale(0.11),
        zero(125, dtype),
    ]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op_type", BINARY)
@pytest.mark.parametrize(("one", "other"), SHAPES)
def test_two_operands(op_type, dtype, one, other) -> None:
    inputs = binary(dtype, one, other)
    a, b = real(*inputs[:3]), real(*inputs[3:6])
    assert_nearest(ours(op_type, inputs), BINARY[op_type](a, b), *inputs[6:], dtype)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op_type", BINARY)
@pytest.mark.parametrize(("one", "other"), SHAPES[:-1])
def test_two_operands_as_onnxruntime(op_type, dtype, one, other) -> None:
    assert_one_apart(op_type, binary(dtype, one, other))


@pytest.mark.parametrize("op_type", BINARY)
def test_absent_zero_points_are_0(op_type) -> None:
    inputs = binary(np.int8, (20,), (20,))
    inputs[2] = inputs[5] = inputs[7] = None
    numbers = BINARY[op_type](real(*inputs[:3]), real(*inputs[3:6]))
    assert_nearest(ours(op_type, inputs), numbers, inputs[6], None, np.int8)


def test_out_of_range_saturates_and_ties_are_even() -> None:
    a = np.array([1, 3, 5, 100, -100], np.int8)
    given = ours("QLinearAdd", [a, scale(1), None, np.zeros(1, np.int8), scale(1), None, scale(2), np.int8(100) * 1])
    assert given.tolist() == [100, 102, 102, 127, 50]


def all_codes(dtype):
    return np.arange(256).astype(np.uint8).view(dtype)


UNARY = {
    "QLinearSigmoid": ({}, lambda x: 1 / (1 + np.exp(-x))),
    "QLinearLeakyRelu": ({}, lambda x: np.where(x < 0, 0.01 * x, x)),
    "QLinearLeakyRelu, alpha": ({"alpha": 0.3}, lambda x: np.where(x < 0, 0.3 * x, x)),
}


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name, dtype) -> None:
    attributes, function = UNARY[name]
    for x_zero_point, y_zero_point in ((zero(140, dtype), zero(3, dtype)), (None, None)):
        inputs = [all_codes(dtype), scale(0.05), x_zero_point, scale(1 / 256), y_zero_point]
        given = ours(name.split(",")[0], inputs, **attributes)
        assert_nearest(given, function(real(*inputs[:3])), *inputs[3:], dtype)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("constants", [(), (1, 2, 3, 4)])
def test_one_operand_as_onnxruntime(name, dtype, constants) -> None:
    inputs = [all_codes(dtype), scale(0.05), zero(140, dtype), scale(1 / 256), zero(3, dtype)]
    assert_one_apart(name.split(",")[0], inputs, constants=constants, **UNARY[name][0])


SOFTMAX = [(-1, 13), (1, 13), (1, 12), (0, 13), (0, 12), (-2, 11), (None, 13)]


def softmax(dtype):
    return [draw((3, 4, 5), dtype), scale(0.03), zero(140, dtype), scale(1 / 200), zero(10, dtype)]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("axis", "opset"), SOFTMAX)
def test_softmax(dtype, axis, opset) -> None:
    inputs = softmax(dtype)
    powers = np.exp(real(*inputs[:3]))
    place = -1 if axis is None else axis
    axes = place if opset >= 13 else tuple(range(place % 3, 3))
    given = ours("QLinearSoftmax", inputs, axis=axis, more={"opset": opset})
    assert_nearest(given, powers / powers.sum(axis=axes, keepdims=True), *inputs[3:], dtype)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("axis", "opset"), SOFTMAX)
def test_softmax_as_onnxruntime(dtype, axis, opset) -> None:
    assert_one_apart("QLinearSoftmax", softmax(dtype), axis=axis, more={"opset": opset})


def test_softmax_needs_to_know_the_opset() -> None:
    with pytest.raises(onnxeval.ModelError, match="needs the attribute opset"):
        ours("QLinearSoftmax", softmax(np.uint8))


def where(dtype, condition, one, other):
    return [
        np.random.default_rng(3).random(condition) < 0.5,
        *(draw(one, dtype), scale(0.05), zero(120, dtype)),
        *(draw(other, dtype, 1), scale(0.04), zero(139, dtype)),
        *(scale(0.06), zero(131, dtype)),
    ]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("shapes", [((3, 40), (3, 40), (3, 40)), ((3, 1), (40,), (1, 40)), ((40,), (), (3, 1))])
def test_where(dtype, shapes) -> None:
    inputs = where(dtype, *shapes)
    numbers = np.where(inputs[0], real(*inputs[1:4]), real(*inputs[4:7]))
    assert_nearest(ours("QLinearWhere", inputs), numbers, *inputs[7:], dtype)
    assert_one_apart("QLinearWhere", inputs)


def concat(dtype):
    return [
        *(scale(0.05), zero(120, dtype)),
        *(draw((3, 4), dtype), scale(0.05), zero(120, dtype)),
        *(draw((3, 6), dtype, 1), scale(0.04), zero(139, dtype)),
        *(draw((3, 0), dtype, 2), scale(7), zero(1, dtype)),
    ]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("axis", [1, -1])
def test_concat(dtype, axis) -> None:
    inputs = concat(dtype)
    numbers = np.concatenate([real(*inputs[start : start + 3]) for start in (2, 5, 8)], axis=axis)
    given = ours("QLinearConcat", inputs, axis=axis)
    assert_nearest(given, numbers, *inputs[:2], dtype)
    np.testing.assert_array_equal(given[:, :4], inputs[2])


@pytest.mark.parametrize("dtype", BYTES)
def test_concat_as_onnxruntime(dtype) -> None:
    assert_one_apart("QLinearConcat", concat(dtype)[:8], axis=1)


REFUSALS = {
    "scale": ("QLinearAdd", 1, np.ones(2, F32), "A_scale must be a scalar"),
    "zero point": ("QLinearAdd", 7, np.ones(2, np.uint8), "C_zero_point must be a scalar"),
    "types": ("QLinearMul", 3, np.ones(2, np.int8), 'input 3 "b" is int8'),
    "no byte": ("QLinearMul", 0, np.ones(2, np.int16), "is int16, allowed: uint8, int8"),
    "shapes": ("QLinearMul", 0, np.ones(3, np.uint8), "broadcast"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name) -> None:
    op_type, place, value, message = REFUSALS[name]
    inputs = binary(np.uint8, (2,), (2,))
    inputs[place] = value
    with pytest.raises(onnxeval.NodeError, match=message):
        ours(op_type, inputs)


def test_concat_refuses_incomplete_threes_and_other_types() -> None:
    inputs = concat(np.uint8)
    with pytest.raises(onnxeval.NodeError, match="8 inputs after y_zero_point are not"):
        ours("QLinearConcat", inputs[:10], axis=1)
    inputs[5] = inputs[5].view(np.int8)
    with pytest.raises(onnxeval.NodeError, match="tensor 1 is int8, y_zero_point uint8"):
        ours("QLinearConcat", inputs, axis=1)
