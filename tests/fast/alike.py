"""A compiled kernel beside the readable one: the same results, bit for bit where asked, and the same refusals."""

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement

#: Types of 1, 2, 4, 8 and 16 bytes, NumPy's own and others.
MOVED = [np.uint8, np.bool_, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.float16, ml_dtypes.bfloat16, np.int16]
MOVED += [np.float32, np.int32, np.float64, np.int64, np.complex64, np.complex128]


def integers(data, shape, dtype):
    """Any of the type, nothing but its extremes, or a few of them: sums that saturate in between show there."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    extreme = rng.choice([info.min, info.max], shape).astype(dtype)
    kind = data.draw(st.sampled_from(["any", "extreme", "few"]))
    if kind == "any":
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    near_middle = rng.integers(-20, 21, shape) + (info.min + info.max + 1) // 2
    few = rng.random(shape) < rng.choice([0.002, 0.05])
    return extreme if kind == "extreme" else np.where(few, extreme, near_middle).astype(dtype)


def drawn(data, dtype, shape):
    """An array of that type and shape, sometimes with axes turned or reversed, between guarded pages otherwise."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = rng.integers(-100, 100, shape) if np.dtype(dtype).kind in "iu" else rng.standard_normal(shape) * 50
    values = np.asarray(values, np.float64).astype(np.float32).astype(dtype)
    match data.draw(st.sampled_from(["plain", "plain", "turned", "reversed", "cut", "shifted"])):
        case "turned":
            return np.ascontiguousarray(values.T).T.reshape(shape)
        case "reversed":
            return values[::-1].copy()[::-1] if values.ndim else values
        case "shifted":  # which is not aligned
            memory = np.zeros(values.nbytes + 1, np.uint8)[1:]
            memory[:] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
            return memory.view(dtype).reshape(shape)
        case "cut":
            return np.repeat(values, 2, -1)[..., ::2] if values.ndim else values
        case _:
            return guarded(values, at_end=data.draw(st.booleans()))


def shapes(most_axes=4, sizes=(0, 1, 2, 3, 5, 16, 33)):
    return st.lists(st.sampled_from(sizes), max_size=most_axes).map(tuple)


def compare(readable, inputs, attributes, *, within=None, **injected):
    """Run both. ``within`` are the tolerances of `assert_allclose`, none for the same bits."""
    kernel = replacement(readable, inputs, attributes)
    assert kernel is not None
    with np.errstate(all="ignore"):
        try:
            wanted = readable(*inputs, **attributes, **injected)
        except (ValueError, TypeError) as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                kernel(*inputs, **attributes, **injected)
            return
        got = kernel(*inputs, **attributes, **injected)
    wanted = np.asarray(wanted)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if within is None:
        assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(wanted).tobytes()
    else:
        np.testing.assert_allclose(got, wanted, **within)
