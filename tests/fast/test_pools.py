"""Pools of every geometry: at one with the readable kernels, without a step beyond the input."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.nn.average_pool import average_pool, global_average_pool
from onnxeval.ops.nn.max_pool import global_max_pool, max_pool


@settings(max_examples=120, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("readable", [max_pool, average_pool])
def test_pools_of_every_geometry(tier, readable, rank, data):
    kernel = tuple(data.draw(st.integers(1, 5)) for _ in range(rank))
    strides = tuple(data.draw(st.integers(1, 4)) for _ in range(rank))
    dilations = tuple(data.draw(st.sampled_from([1, 1, 2, 3])) for _ in range(rank))
    sizes = tuple(data.draw(st.sampled_from([1, 2, 5, 7, 14, 16, 17, 33, 70])) for _ in range(rank))
    pads = tuple(data.draw(st.integers(0, 3)) for _ in range(2 * rank))
    attributes = {
        "auto_pad": data.draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_LOWER", "VALID"])),
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "ceil_mode": data.draw(st.integers(0, 1)),
    }
    attributes["pads"] = pads if attributes["auto_pad"] == "NOTSET" else None
    if readable is average_pool:
        attributes["count_include_pad"] = data.draw(st.integers(0, 1))
    else:
        attributes.update(storage_order=0, n_outputs=1)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.standard_normal((2, 3, *sizes)).astype(np.float32)
    if data.draw(st.booleans()):
        x[0, 0, ..., 0] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    pool = replacement(readable, [None], attributes)
    x = guarded(x, at_end=data.draw(st.booleans()))
    with np.errstate(all="ignore"):
        try:
            wanted = readable(x, **attributes, allocate=np.empty)
        except ValueError as error:
            with pytest.raises(ValueError, match=re.escape(str(error))):
                pool(x, **attributes, allocate=np.empty)
            return
        got = pool(x, **attributes, allocate=lambda shape, dtype: guarded(np.full(shape, 7, dtype)))
    got, wanted = (each[0] if isinstance(each, tuple) else each for each in (got, wanted))
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_places_of_the_maxima(threads, rank, data):
    kernel = tuple(data.draw(st.integers(1, 5)) for _ in range(rank))
    sizes = tuple(data.draw(st.sampled_from([1, 2, 5, 7, 14, 33])) for _ in range(rank))
    attributes = {
        "auto_pad": data.draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_LOWER", "VALID"])),
        "kernel_shape": kernel,
        "strides": tuple(data.draw(st.integers(1, 4)) for _ in range(rank)),
        "dilations": tuple(data.draw(st.sampled_from([1, 1, 2, 3])) for _ in range(rank)),
        "ceil_mode": data.draw(st.integers(0, 1)),
        "storage_order": data.draw(st.integers(0, 1)),
        "n_outputs": 2,
    }
    pads = tuple(data.draw(st.integers(0, 3)) for _ in range(2 * rank))
    attributes["pads"] = pads if attributes["auto_pad"] == "NOTSET" else None
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.integers(-3, 4, (2, 3, *sizes)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, 0]))
    x = guarded(x.astype(data.draw(st.sampled_from([np.float32, np.float16]))), at_end=data.draw(st.booleans()))
    pool = replacement(max_pool, [None], attributes)
    try:
        wanted = max_pool(x, **attributes, allocate=np.empty)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            pool(x, **attributes, allocate=np.empty)
        return
    got = pool(x, **attributes, allocate=lambda shape, dtype: guarded(np.full(shape, 7, dtype)))
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_maxima_that_do_not_fit_are_refused(kernels):
    x, out, places = (
        np.ones((2, 3, 4, 5), np.float32),
        np.ones((2, 3, 4, 5), np.float32),
        np.ones((2, 3, 4, 5), np.int64),
    )
    one = (1, 1, 1, 0)
    kernels.search_maxima(x, out, places, one, one, one, False)
    for changed in (
        (x[:1], out, places, one),
        (x, out[:, :2].copy(), places, one),
        (x[0], out, places, one),
        (x, out, places, (0, 1, 1, 0)),
        (x, out, places, (1, 1, 1, -1)),
        (x, out, places, (1, 1 << 40, 1, 0)),
    ):
        with pytest.raises(ValueError, match="do not fit"):
            kernels.search_maxima(*changed, one, one, False)


@pytest.mark.parametrize("readable", [global_average_pool, global_max_pool])
@pytest.mark.parametrize("shape", [(2, 3, 7, 7), (1, 5, 33), (1, 2, 1, 200), (1, 1, 40, 1), (2, 2, 3, 3, 3)])
def test_whole_planes(tier, rng, readable, shape):
    x = rng.standard_normal(shape).astype(np.float32)
    for value in (1, np.nan, -np.inf):
        x[0, 0, ..., 0] = value
        got = replacement(readable, [None], {})(guarded(x))
        assert got.shape == (*shape[:2], *(1 for _ in shape[2:]))
        np.testing.assert_allclose(got, readable(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("readable", [global_average_pool, global_max_pool])
def test_planes_of_nothing(kernels, readable):
    with pytest.raises(ValueError, match="empty"):
        replacement(readable, [None], {})(np.zeros((2, 3, 0, 7), np.float32))
