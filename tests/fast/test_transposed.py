"""ConvTranspose of every geometry: at one with the readable kernel, without a step beyond the input."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.nn.conv_transpose import conv_transpose


def laid(x, w, b, attributes):
    """The readable result, of float64."""
    exact = [None if each is None else each.astype(float) for each in (x, w, b)]
    return conv_transpose(*exact, **attributes, allocate=np.empty)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_geometries(tier, rank, data):
    def each(*choices):
        return tuple(data.draw(st.sampled_from(choices)) for _ in range(rank))

    group = data.draw(st.sampled_from([1, 1, 2, 5]))
    channels, maps = data.draw(st.sampled_from([1, 3, 16, 20])), data.draw(st.sampled_from([1, 2, 9]))
    kernel, strides = each(1, 2, 3, 4, 5), each(1, 2, 2, 3)
    attributes = {
        "auto_pad": data.draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])),
        "dilations": each(1, 1, 1, 2),
        "group": group,
        "kernel_shape": data.draw(st.sampled_from([None, kernel])),
        "output_padding": data.draw(st.sampled_from([None, each(0, 1, 2)])),
        "output_shape": None,
        "strides": strides,
    }
    attributes["pads"] = each(0, 1, 2) + each(0, 1, 2) if attributes["auto_pad"] == "NOTSET" else None
    if data.draw(st.integers(0, 4)) == 0:
        attributes["output_shape"] = each(3, 8, 11)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sizes = each(1, 2, 5, 9, 17)
    x = guarded(rng.standard_normal((2, channels * group, *sizes)).astype(np.float32))
    w = guarded(rng.standard_normal((channels * group, maps, *kernel)).astype(np.float32))
    b = rng.standard_normal(maps * group).astype(np.float32) if data.draw(st.booleans()) else None
    kernel = replacement(conv_transpose, [None, w, None], attributes) or conv_transpose

    def allocate(shape, dtype):
        return guarded(np.full(shape, np.nan, dtype))

    try:
        wanted = laid(x, w, b, attributes)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            kernel(x, w, b, **attributes, allocate=allocate)
        return
    scale = laid(abs(x), abs(w), None if b is None else abs(b), attributes)
    for _ in range(2):
        got = kernel(x, w, b, **attributes, allocate=allocate)
        assert got.dtype == np.float32
        assert got.shape == wanted.shape
        assert (np.abs(got - wanted) <= 2e-6 * scale + 1e-30).all()


PLAIN = {"auto_pad": "NOTSET", "dilations": None, "group": 1, "kernel_shape": None}
PLAIN |= {"output_padding": None, "output_shape": None, "pads": None, "strides": (2, 2)}


def test_the_worked_example(kernels):
    """Each element of the input is laid onto a square of its own where kernel and strides are the same."""
    x, w = np.array([[[[1, 2], [3, 4]]]], np.float32), np.array([[[[1, 10], [100, 1000]]]], np.float32)
    got = replacement(conv_transpose, [None, w, None], PLAIN)(x, w, None, **PLAIN, allocate=np.empty)
    np.testing.assert_array_equal(got[0, 0], np.kron(x[0, 0], w[0, 0]))


def test_what_it_is_not_made_for(kernels, rng):
    w = rng.standard_normal((3, 2, 2, 2)).astype(np.float32)
    assert replacement(conv_transpose, [None, None, None], PLAIN) is None
    assert replacement(conv_transpose, [None, w.astype(float), None], PLAIN) is None
    kernel = replacement(conv_transpose, [None, w, None], PLAIN)
    x = rng.standard_normal((1, 3, 4, 4))
    for dtype in (np.float64, np.float16):
        got = kernel(x.astype(dtype), w.astype(dtype), None, **PLAIN, allocate=np.empty)
        assert got.dtype == dtype
    with pytest.raises(ValueError, match="the weights are for 3 channels, the input has 4"):
        kernel(np.ones((1, 4, 5, 5), np.float32), w, None, **PLAIN, allocate=np.empty)
    with pytest.raises(ValueError, match="the bias has shape"):
        kernel(x.astype(np.float32), w, np.ones(3, np.float32), **PLAIN, allocate=np.empty)


@pytest.mark.parametrize("where", ["x", "w"])
def test_what_is_not_finite_stays_where_it_is_laid(kernels, where):
    """Zeros around the input, and taps that a plane has and the kernel has not, do not meet infinity."""
    attributes = dict.fromkeys(("kernel_shape", "output_padding", "output_shape", "pads"))
    attributes |= {"auto_pad": "NOTSET", "dilations": None, "group": 1, "strides": (2, 2)}
    arrays = {"x": np.ones((1, 1, 3, 3), np.float32), "w": np.ones((1, 1, 3, 3), np.float32)}
    arrays[where][0, 0, 0, 0] = np.inf
    kernel = replacement(conv_transpose, [None, arrays["w"], None], attributes) or conv_transpose
    result = kernel(arrays["x"], arrays["w"], None, **attributes, allocate=np.empty)
    wanted = np.zeros((1, 1, 7, 7))
    for i, j, k, m in np.ndindex(3, 3, 3, 3):
        wanted[0, 0, 2 * i + k, 2 * j + m] += arrays["x"][0, 0, i, j] * arrays["w"][0, 0, k, m]
    np.testing.assert_array_equal(result, wanted)
