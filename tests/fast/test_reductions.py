"""Reductions, searches and running sums: at one with the readable kernels, sums at least as exact as theirs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.alike import compare, drawn, shapes
from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.nn.max_pool import global_max_pool
from onnxeval.registry import STANDARD, OpKey

BOTH = [("ReduceSum", 11, 13), ("ReduceMean", 13, 18), ("ReduceSumSquare", 13, 18), ("ReduceL1", 13, 18)]
BOTH += [("ReduceL2", 13, 18), ("ReduceMax", 13, 20), ("ReduceMin", 13, 20)]
SUMS_OF = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceL2": lambda x, axis: np.sqrt((x * x).sum(axis))}


@settings(max_examples=90, deadline=None)
@given(data=st.data())
def test_reductions(tier, data):
    name, attribute_version, input_version = data.draw(st.sampled_from(BOTH))
    dtype = data.draw(st.sampled_from([np.float32, np.float32, np.int32, np.int64, np.float64]))
    shape = data.draw(shapes(5))
    x = drawn(data, dtype, shape)
    if dtype == np.float32 and x.size and x.flags.writeable and data.draw(st.booleans()):
        x.reshape(-1)[0] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    axes = data.draw(st.lists(st.integers(-len(shape), max(len(shape) - 1, 0)), max_size=4))
    keepdims = data.draw(st.integers(0, 1))
    exact = np.dtype(dtype).kind == "i" or name in ("ReduceMax", "ReduceMin")
    within = None if exact and dtype != np.float32 else {"rtol": 2e-5, "atol": 1e-3}
    given_axes = data.draw(st.sampled_from([None, tuple(axes)]))
    kernel = STANDARD.require(OpKey("", name, attribute_version), "reduction")
    compare(kernel, [x], {"axes": given_axes, "keepdims": keepdims}, within=within)
    by_input = STANDARD[OpKey("", name, input_version)]
    attributes = {"keepdims": keepdims, "noop_with_empty_axes": data.draw(st.integers(0, 1))}
    given_axes = None if given_axes is None else np.array(given_axes, np.int64)
    compare(by_input, [x, given_axes], attributes, within=within)


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("name", SUMS_OF)
def test_sums_are_as_exact_as_float32_can_be(tier, rng, name, axis):
    x = (rng.standard_normal((50, 41, 70)) + 100).astype(np.float32)
    kernel = STANDARD.require(OpKey("", name, 13 if name != "ReduceSum" else 11), "reduction")
    attributes = {"axes": axis if isinstance(axis, tuple) else (axis,), "keepdims": 0}
    got = replacement(kernel, [None], attributes)(x, **attributes)
    np.testing.assert_allclose(got, SUMS_OF[name](x.astype(np.float64), axis), rtol=6e-8)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_searches(tier, data):
    name = data.draw(st.sampled_from(["ArgMax", "ArgMin"]))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64, np.float16]))
    shape = data.draw(shapes(4, (0, 1, 2, 3, 17, 40, 300)))
    if np.prod(shape, dtype=int) > 50_000:
        return
    x = drawn(data, dtype, shape)
    if data.draw(st.booleans()):
        x = (x.astype(np.float64) / 30).astype(dtype)  # many equal ones
    if np.dtype(dtype).kind == "f" and x.size and data.draw(st.booleans()):
        x = x.copy()
        x.reshape(-1)[:: data.draw(st.sampled_from([1, 3, 50]))] = np.nan
    attributes = {
        "axis": data.draw(st.integers(-len(shape) - 1, len(shape))),
        "keepdims": data.draw(st.integers(0, 1)),
        "select_last_index": data.draw(st.integers(0, 1)),
    }
    compare(STANDARD.require(OpKey("", name, 13), "reduction"), [x], attributes)


@settings(max_examples=45, deadline=None)
@given(data=st.data())
def test_running_sums(tier, data):
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.int32, np.int64]))
    shape = data.draw(shapes(4, (0, 1, 2, 3, 17, 300)).filter(len))
    if np.prod(shape, dtype=int) > 50_000:
        return
    x = drawn(data, dtype, shape)
    axis = np.array(data.draw(st.integers(-len(shape), len(shape) - 1)), np.int64)
    attributes = {"exclusive": data.draw(st.integers(0, 1)), "reverse": data.draw(st.integers(0, 1))}
    within = None if np.dtype(dtype).kind == "i" else {"rtol": 1e-4, "atol": 1e-2}
    compare(STANDARD.require(OpKey("", "CumSum", 14), "math"), [x, axis], attributes, within=within)


@pytest.mark.parametrize("shape", [(2, 3, 7, 7), (1, 5, 33), (1, 2, 1, 200), (2, 2, 3, 3, 3), (1, 700, 40)])
def test_global_maxima(tier, rng, shape):
    x = guarded(rng.standard_normal(shape).astype(np.float32))
    x[0, 0, 0] = np.nan
    compare(global_max_pool, [x], {}, within={"rtol": 0})


def test_what_does_not_fit_is_refused(kernels):
    x = np.zeros((3, 4), np.float32)
    with pytest.raises(ValueError, match="out has 3 elements, expected 4"):
        kernels.reduce(0, 0, x, np.zeros(3, np.float32), 1)
    with pytest.raises(TypeError, match="no such kernel"):
        kernels.reduce(1, 5, np.zeros(3, np.int64), np.zeros((), np.int64), 1)
    with pytest.raises(ValueError, match="out has 4 elements"):
        kernels.search(0, x, np.zeros(4, np.int64), 1, 0, 0)
    with pytest.raises(ValueError, match="no axis 2"):
        kernels.add_up(0, x, x.copy(), 2, 0, 0)
