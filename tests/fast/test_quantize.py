"""Integers of 8 bits from floats and back, and what is computed of them element by element: as the readable kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.contrib import qlinear_elementwise, qlinear_pool
from onnxeval.ops.contrib._typed import MICROSOFT
from onnxeval.ops.nn.max_pool import max_pool
from onnxeval.ops.quantization.dynamic import dynamic_quantize_linear
from onnxeval.ops.quantization.linear import dequantize_linear, quantize_linear
from onnxeval.registry import STANDARD, OpKey

SIZES = st.sampled_from([1, 2, 3, 5, 8, 16, 17, 63, 64, 65, 130])
TYPES = st.sampled_from([np.int8, np.uint8])
JOINS = [STANDARD.require(OpKey(MICROSOFT, name, 1), "contrib") for name in ("QLinearAdd", "QLinearMul")]


def drawn(data):
    return np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))


def integers(rng, shape, dtype):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def scale_and_zero(data, rng, dtype, shape=()):
    """Powers of two make ties."""
    scale = 2.0 ** rng.integers(-6, 2, shape) if data.draw(st.booleans()) else rng.random(shape) + 0.01
    return np.asarray(scale, np.float32), np.asarray(integers(rng, shape, dtype))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_quantize_and_back(tier, data):
    rng, dtype = drawn(data), data.draw(TYPES)
    shape = tuple(data.draw(st.lists(SIZES, min_size=1, max_size=3)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    scale, zero = scale_and_zero(data, rng, dtype, data.draw(st.sampled_from([(), (1,), (shape[axis],)])))
    x = (rng.standard_normal(shape) * 100).astype(np.float32)
    x.flat[:: data.draw(st.integers(1, 9))] = data.draw(st.sampled_from([0.5, 2.5, np.nan, np.inf, -np.inf, 1e30]))
    at_end = data.draw(st.booleans())
    if data.draw(st.booleans()):
        zero, options = None, {"output_dtype": 3 if dtype is np.int8 else 2}
    else:
        options = {"output_dtype": 0}
    given_ = {"axis": axis, **options}
    with np.errstate(all="ignore"):
        wanted = quantize_linear(x, scale, zero, **given_)
    got = replacement(quantize_linear, [None, scale, zero], given_)(guarded(x, at_end=at_end), scale, zero, **given_)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)
    given_ = {"axis": axis}
    back = replacement(dequantize_linear, [None, scale, zero], given_)(
        guarded(wanted, at_end=at_end), scale, zero, **given_
    )
    np.testing.assert_array_equal(back, dequantize_linear(wanted, scale, zero, **given_))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_dynamic_quantization(tier, data):
    rng = drawn(data)
    x = (rng.standard_normal(data.draw(st.sampled_from([1, 7, 64, 200, 70000]))) * 10).astype(np.float32)
    x += np.float32(data.draw(st.sampled_from([0, 50, -50])))
    odd = data.draw(st.sampled_from([None, None, 0, np.nan, np.inf, -np.inf, 1e-44, -1e-44]))
    if odd is not None:
        x[: data.draw(st.sampled_from([1, x.size]))] = odd
    with np.errstate(all="ignore"):
        wanted = dynamic_quantize_linear(x)
    for result, expected in zip(replacement(dynamic_quantize_linear, [None], {})(guarded(x)), wanted, strict=True):
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result, expected)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("readable", JOINS, ids=["add", "multiply"])
def test_two_tensors_become_one(tier, readable, data):
    rng, dtype = drawn(data), data.draw(TYPES)
    shape = tuple(data.draw(st.lists(SIZES, min_size=2, max_size=3)))
    others = [shape, (), (1,), shape[-1:], (shape[-2], 1), shape[-2:]]
    a, b = integers(rng, shape, dtype), integers(rng, data.draw(st.sampled_from(others)), dtype)
    if data.draw(st.booleans()):
        a, b = b, a
    pairs = [scale_and_zero(data, rng, dtype) for _ in range(3)]
    pairs[data.draw(st.integers(0, 2))] = (pairs[0][0], None)
    inputs = (np.asarray(a), *pairs[0], np.asarray(b), *pairs[1], *pairs[2])
    kernel = replacement(readable, [None, *pairs[0], None, *pairs[1], *pairs[2]], {})
    got = kernel(guarded(inputs[0]), *inputs[1:3], guarded(inputs[3]), *inputs[4:])
    wanted = readable(*inputs)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


def test_tensors_that_do_not_join_are_left_to_the_readable_kernel(kernels):
    one = (np.array(1, np.float32), np.array(0, np.uint8))
    kernel = replacement(JOINS[0], [None, *one, None, *one, *one], {})
    a, b = np.ones((3, 2, 4), np.uint8), np.ones((3, 1, 4), np.uint8)
    np.testing.assert_array_equal(kernel(a, *one, b, *one, *one), 2)
    with pytest.raises(ValueError, match="broadcast"):
        kernel(a, *one, np.ones(3, np.uint8), *one, *one)
    assert replacement(JOINS[0], [None, None, None, None, *one, *one], {}) is None


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_curves_and_means(tier, data):
    rng, dtype = drawn(data), data.draw(TYPES)
    x = integers(rng, (2, 3, data.draw(SIZES), 5), dtype)
    rest = (*scale_and_zero(data, rng, dtype), *scale_and_zero(data, rng, dtype))
    for readable, options in (
        (qlinear_elementwise.qlinear_sigmoid, {}),
        (qlinear_elementwise.qlinear_leaky_relu, {"alpha": 0.3}),
        (qlinear_pool.qlinear_global_average_pool, {}),
    ):
        kernel = replacement(readable, [None, *rest], options)
        np.testing.assert_array_equal(kernel(guarded(x), *rest, **options), readable(x, *rest, **options))


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_concatenations(tier, data):
    rng, dtype = drawn(data), data.draw(TYPES)
    axis, inputs, constants = data.draw(st.integers(-3, 2)), [], []
    target = scale_and_zero(data, rng, dtype)
    for _ in range(data.draw(st.integers(1, 3))):
        shape = [4, 5, 6]
        shape[axis] = data.draw(st.integers(0, 70))
        pair = scale_and_zero(data, rng, dtype)
        inputs += [guarded(integers(rng, shape, dtype)), *pair]
        constants += [None, *pair]
    kernel = replacement(qlinear_elementwise.qlinear_concat, [*target, *constants], {"axis": axis})
    wanted = qlinear_elementwise.qlinear_concat(*target, *inputs, axis=axis)
    np.testing.assert_array_equal(kernel(*target, *inputs, axis=axis), wanted)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_largest_of_windows(tier, data):
    rng, dtype = drawn(data), data.draw(TYPES)
    rank = data.draw(st.integers(1, 2))
    pads = tuple(data.draw(st.integers(0, 1)) for _ in range(2 * rank))
    attributes = {
        "auto_pad": "NOTSET",
        "kernel_shape": tuple(data.draw(st.integers(2, 4)) for _ in range(rank)),
        "pads": pads,
        "strides": tuple(data.draw(st.integers(1, 3)) for _ in range(rank)),
        "dilations": tuple(data.draw(st.integers(1, 2)) for _ in range(rank)),
        "ceil_mode": data.draw(st.integers(0, 1)),
        "storage_order": 0,
        "n_outputs": 1,
    }
    x = integers(rng, (2, 3, *(data.draw(st.integers(8, 40)) for _ in range(rank))), dtype)
    (wanted,) = max_pool(x, **attributes, allocate=np.empty)
    got = replacement(max_pool, [None], attributes)(guarded(x), **attributes, allocate=np.empty)
    np.testing.assert_array_equal(got[0] if isinstance(got, tuple) else got, wanted)


def test_the_bindings_check_what_they_are_given(kernels):
    x, bytes_, scale, zero = np.ones(6, np.float32), np.ones(6, np.uint8), np.ones(2, np.float32), np.ones(2, np.uint8)
    with pytest.raises(ValueError, match="no such number of rows"):
        kernels.quantize_rows(x, bytes_, scale, zero, 4, 2, False)
    with pytest.raises(ValueError, match="does not fit the rows"):
        kernels.quantize_rows(x, bytes_, scale, zero, 3, 2, False)
    with pytest.raises(ValueError, match="not as the scale"):
        kernels.dequantize_rows(bytes_, x, scale, zero[:1], 2, 3, False)
    with pytest.raises(ValueError, match="as many floats"):
        kernels.dequantize_rows(bytes_[:4], x, scale, zero, 2, 3, False)
    operand = (bytes_, 0, 0, 1.0, 0)
    with pytest.raises(ValueError, match="no join"):
        kernels.join_bytes(65, bytes_.copy(), 1, 6, 1.0, 0, *operand, *operand)
    with pytest.raises(ValueError, match="does not fit the result"):
        kernels.join_bytes(64, bytes_.copy(), 1, 6, 1.0, 0, *operand, bytes_, 1, 1, 1.0, 0)
    with pytest.raises(ValueError, match="-1 is none"):
        kernels.join_bytes(64, bytes_.copy(), 1, 6, 1.0, -1, *operand, *operand)
    with pytest.raises(ValueError, match="no 256"):
        kernels.look_up_bytes(bytes_.reshape(1, 6), bytes_, bytes_.reshape(1, 6).copy())
    planes = bytes_.reshape(1, 1, 2, 3)
    with pytest.raises(ValueError, match="do not fit together"):
        kernels.pool_bytes(planes, planes.view(np.int8).copy(), 1, 1, 1, 1, 1, 1, 0, 0)
    with pytest.raises(ValueError, match="reach too far"):
        kernels.pool_bytes(planes, planes.copy(), 1, 1, 2**31 - 1, 2**31 - 1, 1, 1, 0, 0)
    with pytest.raises(ValueError, match="do not fit"):
        kernels.mean_of_bytes(bytes_.reshape(2, 3), bytes_[:2].copy(), 1.0, 0, 0.0, 0)
