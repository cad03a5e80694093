"""Convolutions of 8-bit integers are those of the readable kernels, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.alike import integers
from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.contrib.qlinear_conv import qlinear_conv as any_layout_conv
from onnxeval.ops.nn.conv_integer import conv_integer, qlinear_conv

SIZES = st.sampled_from([1, 2, 3, 5, 7, 8, 13, 14, 15, 16, 17, 28, 33, 56])
TYPES = st.sampled_from([np.int8, np.uint8])


def drawn_case(data, rank):
    """Input, weights and attributes that fit together."""
    group = data.draw(st.sampled_from([1, 1, 1, 2, 3, 8, 20]))
    channels = data.draw(st.sampled_from([1, 1, 2, 3, 4, 16, 17, 24]))
    maps = data.draw(st.sampled_from([1, 1, 2, 3, 8, 9, 16, 40]))
    kernel = [data.draw(st.sampled_from([1, 1, 2, 3, 3, 4, 5, 7])) for _ in range(rank)]
    strides, dilations, sizes, pads = [], [], [], []
    for taps in kernel:
        strides.append(data.draw(st.sampled_from([1, 1, 1, 2, 2, 3])))
        dilations.append(data.draw(st.sampled_from([1, 1, 1, 2, 3])))
        begin, end = (data.draw(st.integers(0, 4) if data.draw(st.booleans()) else st.just(0)) for _ in range(2))
        sizes.append(max(data.draw(SIZES), (taps - 1) * dilations[-1] + 1 - begin - end, 1))
        pads.append((begin, end))
    attributes = {
        "auto_pad": "NOTSET",
        "dilations": tuple(dilations),
        "group": group,
        "kernel_shape": tuple(kernel),
        "pads": tuple(begin for begin, _ in pads) + tuple(end for _, end in pads),
        "strides": tuple(strides),
    }
    left, right = data.draw(TYPES), data.draw(TYPES)
    x = integers(data, (data.draw(st.integers(1, 3)), channels * group, *sizes), left)
    w = integers(data, (maps * group, channels, *kernel), right)
    x_zero = data.draw(st.sampled_from([None, integers(data, (), left)]))
    w_zeros = [np.zeros((), right), integers(data, (), right), integers(data, (maps * group,), right)]
    return x, x_zero, w, data.draw(st.sampled_from(w_zeros)), attributes


@settings(max_examples=100, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("rank", [1, 2])
def test_sums_are_exact(tier, rank, data):
    x, x_zero, w, w_zero, attributes = drawn_case(data, rank)
    inputs = (x, w, x_zero, w_zero)
    kernel = replacement(conv_integer, [None, w, None, w_zero], attributes)
    at_end = data.draw(st.booleans())
    got = kernel(guarded(x, at_end=at_end), *inputs[1:], **attributes, allocate=room(at_end))
    np.testing.assert_array_equal(got, conv_integer(*inputs, **attributes, allocate=np.empty))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("rank", [1, 2])
def test_integers_are_those_of_the_readable_kernel(tier, rank, data):
    x, x_zero, w, w_zero, attributes = drawn_case(data, rank)
    x_zero = np.zeros((), x.dtype) if x_zero is None else x_zero
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    maps, depth = w.shape[0], w[0].size
    # Powers of two make ties
    tied = data.draw(st.booleans())
    w_scale = 2.0 ** rng.integers(-9, -5, w_zero.shape) if tied else rng.random(w_zero.shape) * 0.02 + 0.001
    x_scale, y_scale = (0.5, 0.25 * depth) if tied else rng.random(2) * np.array([1, 40 * depth**0.5]) + 0.01
    bias = data.draw(st.sampled_from([None, rng.integers(-40000, 40000, maps).astype(np.int32)]))
    y_zero = integers(data, (), data.draw(TYPES))
    scales = [np.asarray(scale, np.float32) for scale in (x_scale, w_scale, y_scale)]
    inputs = (x, scales[0], x_zero, w, scales[1], w_zero, scales[2], y_zero, bias)
    at_end = data.draw(st.booleans())
    kernel = replacement(qlinear_conv, [None, *inputs[1:]], attributes)
    got = kernel(guarded(x, at_end=at_end), *inputs[1:], **attributes, allocate=room(at_end))
    wanted = qlinear_conv(*inputs, **attributes, allocate=np.empty)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("large", [127, -128])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8])
def test_large_weights_side_by_side(tier, large, count):
    """Among small ones, of which more products may be added up in 16 bits."""
    x = np.full((1, 70, 5, 9), 255, np.uint8)
    for first in range(9):
        w = np.ones((5, 70, 1, 1), np.int8)
        w[3, first : first + count] = large
        given = {**GEOMETRY, "pads": (0, 0, 0, 0)}
        got = replacement(conv_integer, [None, w, None, None], given)(x, w, None, None, **given, allocate=np.empty)
        wanted = 255 * w.sum((1, 2, 3), dtype=np.int64)
        np.testing.assert_array_equal(got, np.broadcast_to(wanted[:, None, None], got.shape))


def room(at_end):
    return lambda shape, dtype: guarded(np.zeros(shape, dtype), at_end=at_end)


GEOMETRY = {
    "auto_pad": "NOTSET",
    "dilations": None,
    "group": 1,
    "kernel_shape": None,
    "pads": (1, 1, 1, 1),
    "strides": None,
}


def a_case(rng, size=9):
    x, w = (
        rng.integers(0, 256, (1, 4, size, size)).astype(np.uint8),
        rng.integers(-128, 128, (6, 4, 3, 3)).astype(np.int8),
    )
    scale = np.float32(0.02)
    return [x, scale, np.uint8(7), w, scale, np.int8(0), np.float32(0.4), np.uint8(128), None]


def arrays(values):
    return [None if value is None else np.asarray(value) for value in values]


def test_the_operator_of_microsoft_with_defaults(kernels, rng):
    inputs = arrays(a_case(rng))
    kernel = replacement(any_layout_conv, [None, *inputs[1:]], {})
    np.testing.assert_array_equal(kernel(*inputs, allocate=np.empty), any_layout_conv(*inputs, allocate=np.empty))
    assert replacement(any_layout_conv, [None, *inputs[1:]], {"channels_last": 1}) is None


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (1, np.float32(np.inf)),
        (6, np.float32(0)),
        (6, np.float32(1e-45)),
        (8, np.full(6, 2**31 - 1, np.int32)),
        (5, np.zeros(5, np.int8)),
        (7, np.zeros(2, np.uint8)),
        (4, None),
    ],
)
def test_what_makes_no_sense_is_left_to_the_readable_kernel(kernels, rng, place, value):
    inputs = a_case(rng)
    inputs[place] = value
    assert replacement(qlinear_conv, [None, *arrays(inputs)[1:]], GEOMETRY) is None


def test_other_inputs_than_it_was_bound_with(kernels, rng):
    inputs = arrays(a_case(rng))
    kernel = replacement(qlinear_conv, [None, *inputs[1:]], GEOMETRY)
    for place, value in ((3, inputs[3].copy() // 2), (6, np.float32(0.1)), (0, inputs[0][..., ::-1])):
        changed = arrays([*inputs[:place], value, *inputs[place + 1 :]])
        wanted = qlinear_conv(*changed, **GEOMETRY, allocate=np.empty)
        np.testing.assert_array_equal(kernel(*changed, **GEOMETRY, allocate=np.empty), wanted)
    with pytest.raises(ValueError, match="channels"):
        kernel(inputs[0][:, :3], *inputs[1:], **GEOMETRY, allocate=np.empty)


def test_windows_that_reach_far_are_left_to_the_readable_kernel(kernels, rng):
    inputs = arrays(a_case(rng))
    far = {**GEOMETRY, "dilations": (1 << 15, 1), "pads": (1 << 15, 1, 1 << 15, 1)}
    kernel = replacement(qlinear_conv, [None, *inputs[1:]], far)
    wanted = qlinear_conv(*inputs, **far, allocate=np.empty)
    np.testing.assert_array_equal(kernel(*inputs, **far, allocate=np.empty), wanted)


def test_the_binding_checks_what_it_is_given(kernels, rng):
    _, _, x_zero, w, *_ = arrays(a_case(rng))
    zeros = np.zeros(6, np.int32)
    with pytest.raises(ValueError, match="groups"):
        kernels.IntegerFilters(w, 4, (1, 1, 1, 1), zeros, zeros, None, 1.0)
    with pytest.raises(ValueError, match="for each map"):
        kernels.IntegerFilters(w, 1, (1, 1, 1, 1), zeros[:5], zeros, None, 1.0)
    with pytest.raises(ValueError, match="for each map"):
        kernels.IntegerFilters(w, 1, (1, 1, 1, 1), zeros, zeros, np.ones(5), 1.0)
    filters = kernels.IntegerFilters(w, 1, (1, 1, 1, 1), zeros, zeros, np.ones(6), 1.0)
    x, out = np.zeros((1, 4, 9, 9), np.uint8), np.zeros((1, 6, 9, 9), np.uint8)
    numbers = (0, 0, 255, 1, 1, 1, 1, 1, 1)
    with pytest.raises(ValueError, match="do not fit together"):
        kernels.convolve_integers(x[:, :3].copy(), x_zero, filters, out, *numbers)
    with pytest.raises(ValueError, match="of the type of x"):
        kernels.convolve_integers(x, np.zeros(1, np.int8), filters, out, *numbers)
    with pytest.raises(ValueError, match="256 is none"):
        kernels.convolve_integers(x, x_zero, filters, out, 256, 0, 255, *numbers[3:])
    filters = kernels.IntegerFilters(w, 1, (2**31 - 1, 2**31 - 1, 1, 1), zeros, zeros, np.ones(6), 1.0)
    with pytest.raises(ValueError, match="reach too far"):
        kernels.convolve_integers(x, x_zero, filters, out, 0, 0, 255, 2**31 - 1, 2**31 - 1, 1, 1, 1, 1)
    with pytest.raises(ValueError, match="other strides"):
        kernels.convolve_integers(x, x_zero, filters, out, 0, 0, 255, 2, 2, 1, 1, 1, 1)
    with pytest.raises(ValueError, match="out of range"):
        kernels.IntegerFilters(w, 1, (0, 1, 1, 1), zeros, zeros, None, 1.0)
    with pytest.raises(TypeError, match="no IntegerFilters"):
        kernels.convolve_integers(x, x_zero, w, out, *numbers)
