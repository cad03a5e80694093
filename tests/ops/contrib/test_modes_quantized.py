"""Quantized operators against onnxruntime, one mode after the other: each attribute, each optional input, each type."""

import itertools

import numpy as np
import pytest
from ops.contrib.codes import F32, draw, scale, zero
from ops.contrib.sweeps import Sweep, sweeping, varied

pytest.importorskip("onnxruntime")

BYTES = (np.uint8, np.int8)
RNG = np.random.default_rng(40)
#: Padding is made of zero points: what lies around 0 makes windows at the edge differ from those inside.
SCALE = scale(0.021)


@pytest.fixture
def sweep():
    with sweeping() as sweep:
        yield sweep


@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", BYTES)
def test_two_operands(op_type, dtype, sweep: Sweep) -> None:
    shapes = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((3, 1), (2, 1, 5)), ((), (2, 3)), ((1,), (7,))]
    for one, other in shapes:
        a, b = draw(one, dtype, 1), draw(other, dtype, 2)
        inputs = [a, SCALE, zero(120, dtype), b, scale(0.033), zero(140, dtype), scale(0.05), zero(99, dtype)]
        sweep.one_apart(op_type, inputs)
        sweep.one_apart(op_type, inputs[:-1])  # onnxruntime refuses others to be absent


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("QLinearSigmoid", [{}]),
        ("QLinearLeakyRelu", [{}, {"alpha": 0.3}, {"alpha": 0.0}, {"alpha": -0.2}, {"alpha": 1.5}]),
        ("QLinearSoftmax", [{"opset": 13, "axis": a} for a in (-1, 0, 1)] + [{"opset": 12, "axis": a} for a in (1, 2)]),
    ],
)
@pytest.mark.parametrize("dtype", BYTES)
def test_one_operand(op_type, attributes, dtype, sweep: Sweep) -> None:
    inputs = [draw((2, 3, 5), dtype), SCALE, zero(120, dtype), scale(1 / 256), zero(0, dtype)]
    for given in attributes:
        more = {"more": {"opset": given["opset"], "axis": given["axis"]}} if "opset" in given else given
        # Where a zero point is absent, onnxruntime reads address 0.
        sweep.one_apart(op_type, inputs, **more)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_concat(dtype, axis, sweep: Sweep) -> None:
    shapes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
    shapes[1][axis], shapes[2][axis] = 5, 1
    parts = [
        x
        for place, shape in enumerate(shapes)
        for x in (draw(shape, dtype, place), scale(0.02 + place / 100), zero(100 + 9 * place, dtype))
    ]
    sweep.one_apart("QLinearConcat", [scale(0.03), zero(120, dtype), *parts], axis=axis)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op_type", ["QLinearAveragePool", "NhwcMaxPool"])
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_pools(dtype, op_type, ceil_mode, sweep: Sweep) -> None:
    """NhwcMaxPool has channels last alone."""
    of_means = op_type == "QLinearAveragePool"
    for pads, strides, dilations, auto_pad, last, counted in itertools.product(
        (None, [0, 0, 1, 1], [1, 0, 0, 1]),
        (None, [2, 1], [2, 3]),
        (None, [2, 1]),
        (None, "SAME_UPPER", "SAME_LOWER", "VALID"),
        (0, 1),
        (0, 1),
    ):
        if (pads and auto_pad) or (of_means and dilations) or (not of_means and (not last or counted)):
            continue
        if ceil_mode and (counted or auto_pad == "VALID"):
            continue  # onnxruntime counts what lies beyond the padding, and has one size more
        shape = (2, 9, 8, 3) if last else (2, 3, 9, 8)
        given = {"kernel_shape": [2, 3], "ceil_mode": ceil_mode, "pads": pads, "strides": strides, "auto_pad": auto_pad}
        if of_means:
            given |= {"channels_last": last, "count_include_pad": counted}
            inputs = [draw(shape, dtype), SCALE, zero(120, dtype), scale(0.019), zero(131, dtype)]
            sweep.one_apart(op_type, inputs, **given)
        else:
            if auto_pad and dilations:
                continue  # onnxruntime pads as if the window was dense
            sweep.agree(op_type, [draw(shape, dtype)], **given, dilations=dilations, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
def test_absent_zero_points_of_pools(dtype, last, sweep: Sweep) -> None:
    inputs = [draw((2, 4, 6, 5), dtype), SCALE, zero(120, dtype), scale(0.019), zero(131, dtype)]
    for given in varied(inputs, 2, 4):
        sweep.one_apart("QLinearAveragePool", given, kernel_shape=[3, 2], channels_last=last)
    sweep.one_apart("QLinearGlobalAveragePool", inputs, channels_last=last)


@pytest.mark.parametrize(("x_type", "w_type"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("last", [0, 1])
def test_convolutions(x_type, w_type, last, sweep: Sweep) -> None:
    modes = [
        {},
        {"pads": [1, 0, 1, 2]},
        {"strides": [2, 1], "kernel_shape": [3, 2]},
        {"dilations": [2, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER"},
        {"auto_pad": "VALID"},
        {"group": 2},
        {"group": 4},
    ]
    for mode, biased, by_channel in itertools.product(modes, (False, True), (False, True)):
        group = mode.get("group", 1)
        w = draw((8, 4 // group, 3, 2), w_type, 3)
        w_scale = RNG.uniform(0.001, 0.004, 8).astype(F32) if by_channel else scale(0.003)
        w_zero = zero(128, w_type)
        x = draw((2, 7, 6, 4) if last else (2, 4, 7, 6), x_type)
        inputs = [x, SCALE, zero(120, x_type), w, w_scale, w_zero, scale(0.04), zero(128, x_type)]
        inputs += [RNG.integers(-3000, 3000, 8).astype(np.int32)] if biased else []
        constants = (3, 4, 5) if by_channel else ()
        sweep.one_apart("QLinearConv", inputs, channels_last=last, constants=constants, **mode)


@pytest.mark.parametrize(("a_type", "b_type"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("alpha", [None, 0.7])
def test_gemm(a_type, b_type, trans_a, trans_b, alpha, sweep: Sweep) -> None:
    a = draw((3, 6) if trans_a else (6, 3), a_type, 1)
    b = draw((4, 3) if trans_b else (3, 4), b_type, 2)
    bias = RNG.integers(-300, 300, 4).astype(np.int32)
    inputs = [a, SCALE, zero(120, a_type), b, scale(0.05), zero(128, b_type)]
    how = {"transA": trans_a, "transB": trans_b, "alpha": alpha, "constants": (1, 2, 3, 4, 5)}
    for c in (None, bias):
        sweep.agree("QGemm", [*inputs, c], **how, rtol=1e-5, atol=1e-5)
        sweep.one_apart("QGemm", [*inputs, c, scale(0.03), zero(100, a_type)], **how)


@pytest.mark.parametrize(("a_type", "b_type"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
def test_products_to_floats(a_type, b_type, sweep: Sweep) -> None:
    a, b = draw((2, 5, 3), a_type, 1), draw((3, 4), b_type, 2)
    columns, offsets = RNG.uniform(0.01, 0.05, 4).astype(F32), draw(4, b_type, 5)
    for b_scale, b_zero, a_zero, bias in itertools.product(
        (scale(0.04), columns), (None, zero(130, b_type), offsets), (None, zero(120, a_type)), (None, columns)
    ):
        if b_zero is not None and b_zero.shape != b_scale.shape:
            continue
        inputs = [a, b, SCALE, b_scale, a_zero, b_zero, bias]
        sweep.agree("MatMulIntegerToFloat", inputs, rtol=1e-5, atol=1e-5)
    x = RNG.standard_normal((2, 5, 3)).astype(F32)
    for b_scale, b_zero, bias in itertools.product(
        (scale(0.04), columns), (None, zero(130, b_type), offsets), (None, columns)
    ):
        if b_zero is None or b_zero.shape == b_scale.shape:
            inputs = [x, b, b_scale, b_zero, bias]
            sweep.agree("DynamicQuantizeMatMul", inputs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("w_type", BYTES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstm(w_type, direction, sweep: Sweep) -> None:
    steps, batch, size, hidden = 4, 2, 3, 5
    ways = 2 if direction == "bidirectional" else 1
    x = RNG.standard_normal((steps, batch, size)).astype(F32)
    w, r = draw((ways, size, 4 * hidden), w_type, 1), draw((ways, hidden, 4 * hidden), w_type, 2)
    codes = [np.full(ways, 0.004, F32), np.full(ways, zero(128, w_type)), np.full(ways, 0.005, F32)]
    codes.append(np.full(ways, zero(121, w_type)))
    states = RNG.standard_normal((2, ways, batch, hidden)).astype(F32)
    bias, peepholes = (
        RNG.standard_normal((ways, 8 * hidden)).astype(F32),
        RNG.standard_normal((ways, 3 * hidden)).astype(F32),
    )
    options = [bias, np.array([4, 2], np.int32), states[0], states[1], peepholes]
    masks = [[False] * 5, [True] * 5, *([place == one for place in range(5)] for one in range(5))]
    for mask in masks:
        given = [option if there else None for option, there in zip(options, mask, strict=True)]
        for attributes in ({}, {"input_forget": 1}):  # onnxruntime leaves the state unclipped that tanh goes over
            sweep.agree(
                "DynamicQuantizeLSTM",
                [x, w, r, *given, *codes],
                hidden_size=hidden,
                direction=direction,
                outputs=3,
                constants=(1, 2, 8, 9, 10, 11),
                rtol=1e-3,
                atol=2e-3,
                **attributes,
            )
