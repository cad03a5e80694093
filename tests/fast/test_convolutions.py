"""Convolutions of every geometry: against float64, at one with the readable kernel, without a step beyond the input."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.fast.activations import IDENTITY, RELU, Activation, Kind
from onnxeval.fast.convolutions import Convolution
from onnxeval.ops.nn.conv import conv

SIZES = [1, 2, 3, 5, 7, 8, 13, 14, 15, 16, 17, 28, 33, 56]


def drawn_case(data, rank):
    """Input, weights and attributes that fit together; smaller ones of many axes."""
    is_flat = rank < 3
    group = data.draw(st.sampled_from([1, 1, 1, 2, 3, 8, 20] if is_flat else [1, 1, 2, 3]))
    channels = data.draw(st.sampled_from([1, 1, 2, 3, 4, 16, 17, 24] if is_flat else [1, 1, 2, 5, 16]))
    maps = data.draw(st.sampled_from([1, 1, 2, 3, 8, 9, 16, 40] if is_flat else [1, 3, 9, 16]))
    kernel = [data.draw(st.sampled_from([1, 2, 3, 3, 4, 5, 7] if is_flat else [1, 1, 2, 3])) for _ in range(rank)]
    strides, dilations, sizes, pads = [], [], [], []
    for taps in kernel:
        strides.append(data.draw(st.sampled_from([1, 1, 1, 2, 2, 3])))
        dilations.append(data.draw(st.sampled_from([1, 1, 1, 2, 3])))
        begin, end = (data.draw(st.integers(0, 4)) if is_flat or taps > 1 else 0 for _ in range(2))
        size = data.draw(st.sampled_from(SIZES if is_flat else [1, 2, 3, 5, 9]))
        sizes.append(max(size, (taps - 1) * dilations[-1] + 1 - begin - end, 1))
        pads.append((begin, end))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    batch = data.draw(st.integers(1, 3))
    x = rng.standard_normal((batch, channels * group, *sizes)).astype(np.float32)
    w = rng.standard_normal((maps * group, channels, *kernel)).astype(np.float32)
    b = rng.standard_normal(maps * group).astype(np.float32) if data.draw(st.booleans()) else None
    attributes = {
        "auto_pad": "NOTSET",
        "dilations": tuple(dilations),
        "group": group,
        "kernel_shape": tuple(kernel),
        "pads": tuple(begin for begin, _ in pads) + tuple(end for _, end in pads),
        "strides": tuple(strides),
    }
    return x, w, b, attributes


def in_float64(x, w, b, attributes):
    """The convolution, and that of absolute values."""
    exact = [None if each is None else each.astype(float) for each in (x, w, b)]
    absolute = [None if each is None else abs(each) for each in exact]
    return [conv(*operands, **attributes, allocate=np.empty) for operands in (exact, absolute)]


def assert_convolved(x, w, b, attributes, got):
    wanted, scale = in_float64(x, w, b, attributes)
    assert got.dtype == np.float32
    assert got.shape == wanted.shape
    assert (np.abs(got - wanted) <= 2e-6 * scale + 1e-30).all()


@settings(max_examples=100, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_convolutions_of_every_geometry(tier, rank, data):
    x, w, b, attributes = drawn_case(data, rank)
    at_end = data.draw(st.booleans())
    constant = data.draw(st.booleans())
    operands = [None if each is None else guarded(each, at_end=at_end) for each in (x, w, b)]
    kernel = replacement(conv, [None, operands[1] if constant else None, None], attributes)

    def allocate(shape, dtype):
        return guarded(np.full(shape, np.nan, dtype), at_end=at_end)

    with patch("onnxeval.fast._planes._TOGETHER", data.draw(st.sampled_from([1, 1000, 1 << 20]))):
        for _ in range(2):
            assert_convolved(x, w, b, attributes, kernel(*operands, **attributes, allocate=allocate))


#: Shapes that each way of going about it is made for: input, weights, group.
SHAPES = {
    "1x1": ((2, 64, 28, 28), (96, 64, 1, 1), 1),
    "1x1, few maps": ((1, 40, 30, 30), (16, 40, 1, 1), 1),
    "few pixels": ((2, 200, 7, 7), (130, 200, 1, 1), 1),
    "few pixels, 3x3": ((1, 100, 7, 7), (130, 100, 3, 3), 1),
    "few pixels, groups": ((2, 96, 9, 9), (96, 48, 3, 3), 2),
    "pixels in one row": ((1, 200, 1, 300), (64, 200, 1, 1), 1),
    "wide": ((1, 24, 3, 400), (48, 24, 3, 5), 1),
    "one pixel": ((3, 100, 1, 1), (50, 100, 1, 1), 1),
    "3x3": ((1, 70, 30, 31), (50, 70, 3, 3), 1),
    "3x3, odd": ((2, 20, 15, 9), (33, 20, 3, 3), 1),
    "3x3, wide": ((1, 16, 5, 200), (16, 16, 3, 3), 1),
    "3x3, groups": ((1, 64, 20, 20), (64, 32, 3, 3), 2),
    "7x7": ((1, 3, 60, 60), (64, 3, 7, 7), 1),
    "depthwise": ((2, 33, 40, 41), (33, 1, 3, 3), 33),
    "depthwise, 5x5": ((1, 33, 14, 14), (33, 1, 5, 5), 33),
    "depthwise, 7x7": ((1, 20, 19, 40), (20, 1, 7, 7), 20),
    "depthwise, two maps": ((1, 20, 17, 37), (40, 1, 5, 5), 20),
    "one channel": ((1, 1, 50, 50), (32, 1, 5, 5), 1),
}


@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (2, 1)])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_of_real_networks(tier, rng, shape, strides):
    sizes, filters, group = SHAPES[shape]
    x, w = rng.standard_normal(sizes).astype(np.float32), rng.standard_normal(filters).astype(np.float32)
    b = rng.standard_normal(filters[0]).astype(np.float32)
    pads = tuple(size // 2 for size in filters[2:]) * 2
    attributes = {"auto_pad": "NOTSET", "dilations": None, "group": group, "kernel_shape": None}
    attributes.update(pads=pads, strides=strides)
    kernel = replacement(conv, [None, w, b], attributes)
    assert_convolved(x, w, b, attributes, kernel(x, w, b, **attributes, allocate=np.empty))


def drawn_large_tiles(data):
    """Input, weights, bias and attributes of a convolution that F(4x4, 3x3) is quicker for."""
    group = data.draw(st.sampled_from([1, 1, 2]))
    channels = data.draw(st.sampled_from([16, 17, 24, 40]))
    height, width = data.draw(st.sampled_from([(144, 1), (40, 4), (4, 36), (12, 12), (13, 15), (29, 17), (18, 66)]))
    maps = data.draw(st.sampled_from([33, 40, 49] if height * width < 1600 else [16, 33]))
    pads = [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in range(2)]
    sizes = [max(1, size + 2 - sum(pad)) for size, pad in zip((height, width), pads, strict=True)]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x = rng.standard_normal((data.draw(st.integers(1, 2)), channels * group, *sizes)).astype(np.float32)
    w = rng.standard_normal((maps * group, channels, 3, 3)).astype(np.float32)
    b = rng.standard_normal(maps * group).astype(np.float32) if data.draw(st.booleans()) else None
    attributes = {"auto_pad": "NOTSET", "dilations": None, "group": group, "kernel_shape": None, "strides": None}
    attributes["pads"] = tuple(begin for begin, _ in pads) + tuple(end for _, end in pads)
    return x, w, b, attributes


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_large_tiles_of_any_size(tier, data):
    """What is large beside an element counts for its error, too."""
    x, w, b, attributes = drawn_large_tiles(data)
    at_end = data.draw(st.booleans())
    operands = [None if each is None else guarded(each, at_end=at_end) for each in (x, w, b)]
    kernel = Convolution([None, operands[1], None], attributes, fast_math=True)

    def allocate(shape, dtype):
        return guarded(np.full(shape, np.nan, dtype), at_end=at_end)

    exact, scale = in_float64(x, w, b, attributes)
    residual = (
        np.random.default_rng(0).standard_normal(exact.shape).astype(np.float32) if data.draw(st.booleans()) else None
    )
    activation = data.draw(st.sampled_from([IDENTITY, RELU, Activation(Kind.LEAKY_RELU, 0.25)]))
    added = None if residual is None else guarded(residual, at_end=at_end)
    got = kernel(*operands, allocate=allocate, residual=added, activation=activation)
    wanted = exact if residual is None else exact + residual
    if activation is not IDENTITY:
        wanted = np.where(wanted < 0, activation.alpha * wanted, wanted)
    assert np.abs(got - wanted).max() <= 2e-6 * scale.max()


ACTIVATIONS = {
    Activation(Kind.CLIP, -0.5, 1.5): lambda x: np.clip(x, -0.5, 1.5),
    Activation(Kind.LEAKY_RELU, 0.25): lambda x: np.where(x < 0, 0.25 * x, x),
    Activation(Kind.HARD_SWISH, 0.25, 0.5): lambda x: x * np.clip(0.25 * x + 0.5, 0, 1),
    Activation(Kind.SILU, 1.0): lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda activation: activation.kind.name)
@pytest.mark.parametrize(
    ("x_shape", "w_shape"),
    [
        ((2, 24, 9, 13), (50, 24, 1, 1)),
        ((1, 40, 7, 7), (96, 40, 1, 1)),
        ((1, 33, 20, 31), (36, 33, 3, 3)),
        ((2, 16, 11, 23), (16, 1, 3, 3)),
    ],
)
def test_activations_of_sums(tier, rng, x_shape, w_shape, activation):
    """Whatever the method, and whether they take part in it or come afterwards."""
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in (x_shape, w_shape, w_shape[:1]))
    pads = (w_shape[2] // 2,) * 4
    attributes = {"auto_pad": "NOTSET", "dilations": None, "kernel_shape": None, "strides": None, "pads": pads}
    attributes["group"] = x_shape[1] // w_shape[1]
    exact, scale = in_float64(x, w, b, attributes)
    residual = rng.standard_normal(exact.shape).astype(np.float32)
    for added in (None, residual):
        kernel = Convolution([None, guarded(w), None], attributes)
        got = kernel(x, w, b, allocate=np.empty, residual=added, activation=activation)
        wanted = ACTIVATIONS[activation](exact if added is None else exact + added)
        assert np.abs(got - wanted).max() <= 2e-6 * scale.max()


@pytest.mark.parametrize("sizes", [(144, 1), (12, 12), (18, 66)])
def test_large_tiles_are_for_fast_math_alone(tier, rng, sizes):
    x, w = (
        rng.standard_normal((1, 32, *sizes)).astype(np.float32),
        rng.standard_normal((40, 32, 3, 3)).astype(np.float32),
    )
    attributes = {"auto_pad": "SAME_UPPER", "dilations": None, "group": 1, "kernel_shape": None}
    attributes.update(pads=None, strides=None)
    exact, _ = in_float64(x, w, None, attributes)
    kernels = [replacement(conv, [None, w, None], attributes, fast_math=fast_math) for fast_math in (False, True)]
    usual, fast = (np.abs(k(x, w, None, **attributes, allocate=np.empty) - exact).max() for k in kernels)
    assert usual <= 1e-6 * np.abs(exact).max()
    assert usual < fast <= 5e-6 * np.abs(exact).max()


@pytest.mark.parametrize("shape", ["1x1", "few pixels, 3x3", "3x3, wide", "7x7", "depthwise", "one channel"])
def test_fast_math_changes_nothing_else(tier, rng, shape):
    sizes, filters, group = SHAPES[shape]
    x, w = rng.standard_normal(sizes).astype(np.float32), rng.standard_normal(filters).astype(np.float32)
    attributes = {"auto_pad": "SAME_UPPER", "dilations": None, "group": group, "kernel_shape": None}
    attributes.update(pads=None, strides=None)
    kernels = [replacement(conv, [None, w, None], attributes, fast_math=fast_math) for fast_math in (False, True)]
    np.testing.assert_array_equal(*[k(x, w, None, **attributes, allocate=np.empty) for k in kernels])


@pytest.mark.parametrize("group", [1, 2, 6])
@pytest.mark.parametrize("pads", [(1, 0, 0, 1, 0, 0), (1, 0, 0, 1, 0, 2)])
@pytest.mark.parametrize("kernel_shape", [(3, 1, 1), (1, 1, 1)])
def test_elements_that_strides_leave_out_of_three_axes(tier, rng, kernel_shape, pads, group):
    w = rng.standard_normal((6, 6 // group, *kernel_shape)).astype(np.float32)
    attributes = {"auto_pad": "NOTSET", "dilations": None, "group": group, "kernel_shape": None}
    attributes.update(pads=pads, strides=(1, 2, 3))
    kernel = replacement(conv, [None, w, None], attributes)
    for sizes in [(4, 9, 11), (4, 8, 12), (1, 1, 1)]:
        x = rng.standard_normal((2, 6, *sizes)).astype(np.float32)
        assert_convolved(x, w, None, attributes, kernel(guarded(x), w, None, **attributes, allocate=np.empty))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("where", ["input", "weights"])
@pytest.mark.parametrize(
    ("sizes", "maps", "group", "fast_math"),
    [((12, 12), 20, 1, False), ((7, 7), 64, 1, False), ((12, 12), 16, 16, False), ((12, 12), 40, 1, True)],
)
def test_what_is_not_finite_spoils_nothing_beside_it(tier, rng, value, where, sizes, maps, group, fast_math):
    """Nor does it vanish where it meets padding: zero times it is NaN. What is large overflows where it belongs."""
    x = rng.standard_normal((1, 16, *sizes)).astype(np.float32)
    w = rng.standard_normal((maps, 16 // group, 3, 3)).astype(np.float32)
    if where == "input":
        x[0, 3, 5, 6] = value
    else:
        w[2, 0, 0, 1] = value
    attributes = {"auto_pad": "SAME_UPPER", "dilations": None, "group": group, "kernel_shape": (3, 3)}
    attributes.update(pads=None, strides=None)
    kernel = replacement(conv, [None, w, None], attributes, fast_math=fast_math)
    with np.errstate(invalid="ignore"):
        got, wanted = (k(x, w, None, **attributes, allocate=np.empty) for k in (kernel, conv))
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(wanted))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))


def test_what_is_not_contiguous_or_of_another_type(tier, rng):
    attributes = {"auto_pad": "SAME_UPPER", "dilations": None, "group": 1, "kernel_shape": (3, 3)}
    attributes.update(pads=None, strides=None)
    x = rng.standard_normal((2, 9, 9, 6)).astype(np.float32).transpose(0, 3, 1, 2)
    w = rng.standard_normal((3, 3, 6, 5)).astype(np.float32).transpose(3, 2, 0, 1)
    for constant in (None, w):
        kernel = replacement(conv, [None, constant, None], attributes)
        assert_convolved(x, w, None, attributes, kernel(x, w, None, **attributes, allocate=np.empty))
    kernel = replacement(conv, [None, None, None], attributes)
    for dtype in (np.float64, np.float16):
        got = kernel(x.astype(dtype), w.astype(dtype), None, **attributes, allocate=np.empty)
        assert got.dtype == dtype
        np.testing.assert_array_equal(
            got, conv(x.astype(dtype), w.astype(dtype), None, **attributes, allocate=np.empty)
        )


def test_wrong_shapes_are_left_to_the_readable_kernel(kernels, rng):
    attributes = {
        "auto_pad": "NOTSET",
        "dilations": None,
        "group": 1,
        "kernel_shape": None,
        "pads": None,
        "strides": None,
    }
    w = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    for constant in (None, w):
        kernel = replacement(conv, [None, constant, None], attributes)
        with pytest.raises(ValueError, match="the input has 2 channels, expected 3"):
            kernel(np.ones((1, 2, 5, 5), np.float32), w, None, **attributes, allocate=np.empty)
        with pytest.raises(ValueError, match="has no window"):
            kernel(np.ones((1, 3, 2, 5), np.float32), w, None, **attributes, allocate=np.empty)
        with pytest.raises(ValueError, match="the bias has shape"):
            kernel(np.ones((1, 3, 5, 5), np.float32), w, np.ones(3, np.float32), **attributes, allocate=np.empty)
