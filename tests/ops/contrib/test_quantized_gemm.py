"""Products of integers, against integer arithmetic."""

import numpy as np
import pytest
from ops.contrib.codes import BYTES, F32, assert_nearest, assert_one_apart, draw, scale, zero
from ops.contrib.nodes import assert_agree, ours

import onnxeval

FORMS = [{}, {"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1, "alpha": 0.7}]


def gemm(left, right, form, per_column=False, c=None, output=None):
    a = draw((4, 3) if form.get("transA") else (3, 4), left)
    b = draw((5, 4) if form.get("transB") else (4, 5), right, 1)
    b_scale = np.linspace(0.01, 0.02, 5, dtype=F32) if per_column else scale(0.0213)
    b_zero_point = draw((5,), right, 2) if per_column else zero(131, right)
    bias = None if c is None else np.random.default_rng(4).integers(-9000, 9000, c).astype(np.int32)
    parameters = (None, None) if output is None else (scale(0.93), zero(124, output))
    return [a, scale(0.0517), zero(120, left), b, b_scale, b_zero_point, bias, *parameters]


def gemm_numbers(inputs, form):
    """The product in float64."""
    a, a_scale, a_zero_point, b, b_scale, b_zero_point, c = inputs[:7]
    a, b = (a.T if form.get("transA") else a), (b.T if form.get("transB") else b)
    sums = (a.astype(int) - int(a_zero_point)) @ (b.astype(int) - b_zero_point.astype(int))
    return (sums + (0 if c is None else c)) * (form.get("alpha", 1) * float(a_scale) * b_scale.astype(float))


@pytest.mark.parametrize("form", range(len(FORMS)))
@pytest.mark.parametrize("left", BYTES)
@pytest.mark.parametrize("right", BYTES)
@pytest.mark.parametrize("per_column", [False, True])
def test_qgemm(left, right, form, per_column) -> None:
    form = FORMS[form]
    inputs = gemm(left, right, form, per_column)
    given = ours("QGemm", inputs, **form)
    assert given.dtype == F32
    np.testing.assert_allclose(given, gemm_numbers(inputs, form), rtol=1e-6)
    quantized = gemm(left, right, form, per_column, output=left)
    assert_nearest(ours("QGemm", quantized, **form), gemm_numbers(inputs, form), *quantized[7:], left)


@pytest.mark.parametrize("shape", [(3, 5), (3, 1), (1, 5), (5,), (1,), ()])
def test_qgemm_with_a_bias(shape) -> None:
    inputs = gemm(np.uint8, np.int8, {}, c=shape, output=np.uint8)
    assert_nearest(ours("QGemm", inputs), gemm_numbers(inputs, {}), *inputs[7:], np.uint8)
    assert_one_apart("QGemm", inputs)


@pytest.mark.parametrize("form", range(len(FORMS)))
@pytest.mark.parametrize(("left", "right"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("per_column", [False, True])
def test_qgemm_as_onnxruntime(left, right, form, per_column) -> None:
    form = FORMS[form]
    assert_agree("QGemm", gemm(left, right, form, per_column, c=(5,)), **form)
    assert_one_apart("QGemm", gemm(left, right, form, per_column, output=left), **form)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, np.zeros((2, 3, 4), np.uint8), "expected matrices"),
        (0, np.zeros((3, 5), np.uint8), "do not multiply"),
        (4, np.ones(4, F32), "b_scale of shape"),
        (6, np.zeros((2, 5), np.int32), "C of shape"),
        (7, None, "without each other"),
        (8, None, "without each other"),
    ],
)
def test_qgemm_refuses(place, value, message) -> None:
    inputs = gemm(np.uint8, np.int8, {}, output=np.uint8)
    inputs[place] = value
    with pytest.raises(onnxeval.NodeError, match=message):
        ours("QGemm", inputs)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (2, 4, 1))])
def test_matmul_integer16(shapes) -> None:
    a, b = draw(shapes[0], np.int16), draw(shapes[1], np.int16, 1)
    given = ours("MatMulInteger16", [a, b])
    np.testing.assert_array_equal(given, (a.astype(int) @ b.astype(int)).astype(np.int32))
    assert_agree("MatMulInteger16", [a, b], rtol=0, atol=0)


def test_matmul_integer16_of_other_types() -> None:
    a, b = np.array([[65535, 1]], np.uint16), np.array([[3], [7]], np.uint16)
    assert ours("MatMulInteger16", [a, b]).dtype == np.uint32
    assert ours("MatMulInteger16", [a, b]).item() == 196612
    mixed = ours("MatMulInteger16", [a, b.astype(np.int16) * -1])
    assert mixed.dtype == np.int32
    assert mixed.item() == -196612


@pytest.mark.parametrize("dtype", BYTES)
def test_mul_integer(dtype) -> None:
    a, b = draw((3, 1), dtype), draw((2, 1, 4), dtype, 1)
    given = ours("MulInteger", [a, zero(120, dtype), b, None])
    assert given.dtype == np.int32
    np.testing.assert_array_equal(given, (a.astype(int) - int(zero(120, dtype))) * b.astype(int))
    np.testing.assert_array_equal(ours("MulInteger", [a, None, b]), a.astype(int) * b)
