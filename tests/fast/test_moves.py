"""What only moves elements: at one with the readable kernels for elements of every size, however they lie."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.alike import MOVED, compare, drawn, shapes
from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.math.expand import expand
from onnxeval.ops.tensor import concat_split, gather, pad, scatter

DTYPES = st.sampled_from(MOVED)


@settings(max_examples=45, deadline=None)
@given(data=st.data())
def test_copies_of_every_layout(tier, data):
    shape = data.draw(shapes(5, (1, 2, 3, 4, 8, 16, 17, 40)))
    if np.prod(shape, dtype=int) > 100_000:
        return
    dtype = data.draw(st.sampled_from([np.uint8, np.uint16, np.float32, np.float64, np.complex128]))
    order = data.draw(st.permutations(range(len(shape))))
    steps = tuple(slice(None, None, data.draw(st.sampled_from([1, 1, 2, -1]))) for _ in shape)
    x = guarded(np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)).transpose(order)[steps]
    out = guarded(np.zeros(x.shape, dtype))
    tier.copy(x, out)
    np.testing.assert_array_equal(out, x)
    strided = np.zeros(tuple(2 * size for size in x.shape), dtype)
    every_other = strided[(*(slice(None, None, 2) for _ in x.shape), ...)]
    tier.copy(x, every_other)
    np.testing.assert_array_equal(every_other, x)
    assert np.count_nonzero(strided) == np.count_nonzero(x)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.int64, np.complex128])
def test_large_arrays_are_turned_by_several_threads(tier, dtype, order):
    x = np.arange(37 * 53 * 66).reshape(37, 53, 66).astype(dtype)
    out = np.empty(tuple(x.shape[axis] for axis in order), dtype)
    tier.copy(x.transpose(order), out)
    np.testing.assert_array_equal(out, x.transpose(order))


def test_copies_refuse_what_does_not_fit(kernels):
    with pytest.raises(ValueError, match="broadcast"):
        kernels.copy(np.zeros(3), np.zeros(4))
    with pytest.raises(ValueError, match="broadcast"):
        kernels.copy(np.zeros((1, 3)), np.zeros(3))
    with pytest.raises(TypeError, match="format"):
        kernels.copy(np.zeros(3), np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="format"):
        kernels.copy(np.zeros(3, object), np.zeros(3, object))
    with pytest.raises((BufferError, ValueError)):
        kernels.copy(np.zeros(3), np.broadcast_to(np.zeros(3), (2, 3)))
    for xs in ((np.zeros(3),), (np.zeros(5),), (np.zeros((4, 1)),), tuple([np.zeros(1)] * 12)):
        with pytest.raises(ValueError, match=r"fill|fit|no such"):
            kernels.concat(xs, np.zeros(4), 0)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), dtype=DTYPES)
def test_concat(tier, data, dtype):
    shape = data.draw(shapes().filter(len))
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    parts = []
    for _ in range(data.draw(st.integers(1, 30))):
        own = list(shape)
        own[axis % len(shape)] = data.draw(st.integers(0, 3))
        if data.draw(st.integers(0, 60)) == 7:
            own[0] += 1
        parts.append(drawn(data, dtype, tuple(own)))
    compare(concat_split.concat, parts, {"axis": axis})
    compare(concat_split.concat_default_axis, parts, {"axis": data.draw(st.sampled_from([None, axis]))})


@settings(max_examples=30, deadline=None)
@given(data=st.data(), dtype=DTYPES)
def test_expand_and_tile(tier, data, dtype):
    shape = data.draw(shapes(3))
    x = drawn(data, dtype, shape)
    wanted = [data.draw(st.sampled_from([1, size, size, 4])) for size in (*[1] * data.draw(st.integers(0, 2)), *shape)]
    compare(expand, [x, np.array(wanted, np.int64)], {}, allocate=np.empty)
    repeats = [data.draw(st.integers(0 if data.draw(st.booleans()) else -1, 4)) for _ in shape]
    compare(concat_split.tile, [x, np.array(repeats, np.int64)], {}, allocate=np.empty)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), dtype=DTYPES, mode=st.sampled_from(["constant", "edge", "reflect", "wrap"]))
def test_pad(tier, data, dtype, mode):
    shape = data.draw(shapes(4))
    x = drawn(data, dtype, shape)
    axes = data.draw(st.sampled_from([None, list(data.draw(st.permutations(range(len(shape)))))[:2]]))
    count = len(shape) if axes is None else len(axes)
    pads = np.array([data.draw(st.integers(-2, 5)) for _ in range(2 * count)], np.int64)
    fill = data.draw(st.sampled_from([None, np.array(3).astype(dtype), np.array([2]).astype(dtype)]))
    given_axes = None if axes is None else np.array(axes, np.int64)
    for readable in (pad.pad, pad.pad_without_wrap):
        compare(readable, [x, pads, fill, given_axes], {"mode": mode}, allocate=np.empty)


def indices_of(data, size, shape, dtype=None):
    """Indices into an axis of that size, one of them outside now and then."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    low, high = (-size, size) if size else (0, 1)
    found = rng.integers(low, high, shape)
    if found.size and data.draw(st.integers(0, 5)) == 3:
        found.reshape(-1)[rng.integers(found.size)] = data.draw(st.sampled_from([size, -size - 1, 2**31 - 1, -(2**31)]))
    return guarded(found.astype(dtype or data.draw(st.sampled_from([np.int32, np.int64]))))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), dtype=DTYPES)
def test_gather(tier, data, dtype):
    shape = data.draw(shapes())
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    x = drawn(data, dtype, shape)
    size = shape[axis % len(shape)] if shape else 1
    indices = indices_of(data, size, data.draw(shapes(3, (0, 1, 3, 7))))
    if data.draw(st.booleans()) and indices.ndim:
        indices = indices[..., ::-1]
    compare(gather.gather, [x, indices], {"axis": axis})


def test_indices_that_wrap_around_are_outside(tier):
    kernel = replacement(gather.gather, [None, None], {"axis": 0})
    for index in (2**63 - 1, -(2**63), 2**32, 3, -4):
        with pytest.raises(ValueError, match=f"index {index} is outside"):
            kernel(np.zeros(3), np.array([0, index]), axis=0)


def test_many_slices_are_gathered_by_several_threads(tier, rng):
    table = rng.standard_normal((500, 3, 60)).astype(np.float32)
    indices = rng.integers(-500, 500, (40, 70))
    out = np.empty((40, 70, 3, 60), np.float32)
    tier.move_slices(table, indices, out, 0, True, False)
    np.testing.assert_array_equal(out, table[indices])


@settings(max_examples=60, deadline=None)
@given(data=st.data(), dtype=DTYPES)
def test_gather_nd_and_scatter_nd(tier, data, dtype):
    shape = data.draw(shapes(4, (1, 2, 3, 5)))
    x = drawn(data, dtype, shape)
    batch = data.draw(st.integers(0, 2))
    depth = data.draw(st.integers(0, 3))
    others = data.draw(shapes(2, (0, 1, 3)))
    columns = [indices_of(data, size, (*shape[:batch], *others), np.int64) for size in shape[batch : batch + depth]]
    indices = np.stack(columns, -1) if columns else np.zeros((*shape[:batch], *others, 0), np.int64)
    compare(gather.gather_nd, [x, indices], {"batch_dims": batch})
    if not batch:
        updates = drawn(data, dtype, (*others, *shape[indices.shape[-1] :]))
        compare(scatter.scatter_nd, [x, indices, updates], {"reduction": "none"})
    if np.dtype(dtype) == np.float32 and not batch and depth:
        compare(scatter.scatter_nd, [x, indices, updates], {"reduction": "add"}, within={})


@settings(max_examples=60, deadline=None)
@given(data=st.data(), dtype=DTYPES)
def test_gather_elements_and_scatter_elements(tier, data, dtype):
    shape = data.draw(shapes())
    x = drawn(data, dtype, shape)
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    own = tuple(data.draw(st.integers(0, size + (data.draw(st.integers(0, 9)) == 5))) for size in shape)
    indices = indices_of(data, shape[axis % len(shape)] if shape else 1, own)
    compare(gather.gather_elements, [x, indices], {"axis": axis})
    updates = drawn(data, dtype, own)
    compare(scatter.scatter_elements, [x, indices, updates], {"axis": axis, "reduction": "none"})


def test_slices_and_elements_refuse_what_does_not_fit(kernels):
    data, indices = np.zeros((3, 4)), np.zeros(2, np.int64)
    for slices, batch in ((np.zeros((2, 5)), 0), (np.zeros((2, 4)), 2)):
        with pytest.raises(ValueError, match="do not fit"):
            kernels.move_slices(data, indices, slices, batch, True, False)
    with pytest.raises(ValueError, match="do not fit"):
        kernels.move_slices(data, np.zeros((2, 3), np.int64), np.zeros(2), 0, False, False)
    with pytest.raises(ValueError, match="do not fit"):
        kernels.move_elements(data, np.zeros((4, 4), np.int64), np.zeros((4, 4)), 1, False)
    with pytest.raises(TypeError, match="the indices"):
        kernels.move_slices(data, np.zeros(2), np.zeros((2, 4)), 0, True, False)
    with pytest.raises(IndexError, match="outside"):
        kernels.move_slices(data, np.array([3]), np.zeros((1, 4)), 0, True, False)
