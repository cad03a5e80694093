"""Functions of elements that broadcast: at one with the readable kernels, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from fast.alike import MOVED, compare, drawn, shapes
from fast.guarded import guarded
from onnxeval.dtypes import ELEMENT_TYPES
from onnxeval.fast import replacement
from onnxeval.ops.logical.boolean import logical_not
from onnxeval.ops.tensor.cast import cast
from onnxeval.ops.tensor.choose import one_hot, where
from onnxeval.registry import STANDARD, OpKey

ARITHMETIC = [("Add", 14), ("Sub", 14), ("Mul", 14), ("Div", 14), ("Max", 13), ("Min", 13)]
COMPARISONS = [("Equal", 13), ("Less", 13), ("Greater", 13), ("LessOrEqual", 16), ("GreaterOrEqual", 16)]
BOOLEAN = [("And", 7), ("Or", 7), ("Xor", 7)]


def kernel_of(name, version):
    return STANDARD.require(OpKey("", name, version), "math" if (name, version) in ARITHMETIC else "logical")


def broadcasting(data, shape):
    """A shape that broadcasts to that one."""
    return tuple(size if data.draw(st.booleans()) else 1 for size in shape)[data.draw(st.integers(0, 2)) :]


def with_oddities(x):
    if x.dtype.kind == "f" and x.size > 4 and x.flags.writeable:
        x.reshape(-1)[:5] = [np.nan, np.inf, -np.inf, -0.0, 0.0]
    return x


@settings(max_examples=70, deadline=None)
@given(data=st.data())
def test_two_operands(tier, data):
    name, version = data.draw(st.sampled_from(ARITHMETIC + COMPARISONS + BOOLEAN))
    dtypes = [np.float32, np.float64, np.int32, np.int64, np.float16]
    if (name, version) in BOOLEAN:
        dtypes = [np.bool_]
    elif (name, version) in COMPARISONS:
        dtypes += [np.uint8, np.int8, np.bool_]
    dtype = data.draw(st.sampled_from(dtypes))
    shape = data.draw(shapes())
    a, b = (drawn(data, dtype, broadcasting(data, shape)) for _ in range(2))
    if data.draw(st.booleans()):
        a = with_oddities(a)
    if name in ("Max", "Min"):  # which zero and which NaN stays is nobody's business
        compare(kernel_of(name, version), [a, b], {}, within={"rtol": 0})
        return
    compare(kernel_of(name, version), [a, b], {})


@pytest.mark.parametrize(("name", "version"), COMPARISONS)
@pytest.mark.parametrize("half", [np.float16, bfloat16], ids=lambda dtype: dtype.__name__)
def test_comparisons_of_16_bit_floats(tier, rng, half, name, version):
    every = rng.integers(0, 1 << 16, 5000).astype(np.uint16).view(half)  # subnormal ones, infinities, NaNs
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1, -1], np.float32).astype(half)
    compare(
        kernel_of(name, version), [guarded(every), guarded(np.where(rng.random(5000) < 0.5, every, every[::-1]))], {}
    )
    compare(kernel_of(name, version), [odd[:, np.newaxis], odd], {})


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_one_hot(tier, data):
    shape, depth = data.draw(shapes()), data.draw(st.integers(1, 9))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    indices = guarded(rng.integers(-12, 12, shape))
    values = drawn(data, data.draw(st.sampled_from([np.float32, np.int64, np.bool_, bfloat16, np.uint8])), (2,))
    depth = np.array(depth, data.draw(st.sampled_from([np.int64, np.int32, np.float32])))
    attributes = {"axis": data.draw(st.integers(-len(shape) - 1, len(shape)))}
    inputs = [indices, depth.reshape(data.draw(st.sampled_from([(), (1,)]))), values]
    wanted = one_hot(*inputs, **attributes, allocate=np.empty)
    kernel = replacement(one_hot, [None] * 3, attributes)
    got = kernel(*inputs, **attributes, allocate=lambda shape, dtype: guarded(np.zeros(shape, dtype)))
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


def test_one_hot_of_what_does_not_fit(kernels):
    kernel = replacement(one_hot, [None] * 3, {"axis": -1})
    one, two = np.zeros((2, 2), np.int64), np.ones(2, np.float32)
    for inputs, axis in (
        ([one, np.array(-1), two], -1),
        ([one, np.array(3), two[:1]], -1),
        ([one, np.array(3), two], 3),
    ):
        with pytest.raises(ValueError, match=r"depth|expected \[2\]|axis"):
            kernel(*inputs, axis=axis, allocate=np.empty)


def test_long_rows_and_many_short_ones(tier, rng):
    add = kernel_of("Add", 14)
    for one, other in [((40, 3000), (40, 1)), ((30_000, 3), (3,)), ((2, 60_000), (60_000,)), ((70, 1, 50), (60, 1))]:
        a, b = (guarded(rng.standard_normal(shape).astype(np.float32)) for shape in (one, other))
        compare(add, [a, b], {})
        compare(add, [np.ascontiguousarray(a.T).T, b], {})


def test_integers_wrap_around(tier):
    ends = np.array([2**63 - 1, -(2**63), 7], np.int64)
    for name in ("Add", "Sub", "Mul"):
        compare(kernel_of(name, 14), [ends, ends[::-1]], {})
        compare(kernel_of(name, 14), [ends.astype(np.int32), ends[::-1].astype(np.int32)], {})


@settings(max_examples=35, deadline=None)
@given(data=st.data(), dtype=st.sampled_from(MOVED))
def test_where(tier, data, dtype):
    shape = data.draw(shapes())
    condition = drawn(data, np.bool_, broadcasting(data, shape))
    compare(where, [condition, *(drawn(data, dtype, broadcasting(data, shape)) for _ in range(2))], {})


@pytest.mark.parametrize("size", [0, 1, 7, 64, 1000])
def test_not(tier, rng, size):
    compare(logical_not, [guarded(rng.random(size) < 0.5)], {})


CAST = [np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64, np.bool_]
ODD = [0, -0.0, 0.5, -0.5, 1.5, 127, 127.5, 128, -128.5, -129, 255.9, 256, 2**31 - 1, 2**31, -(2**31) - 1, 2.0**63]
ODD += [-(2.0**63), 2.0**64, 1e300, -1e300, np.inf, -np.inf, np.nan, 16777217, 2**53 + 1, 9007199791611905]


@pytest.mark.parametrize("target", CAST, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("source", CAST, ids=lambda dtype: dtype.__name__)
def test_cast(tier, rng, source, target):
    if np.dtype(source).kind == "f":
        with np.errstate(all="ignore"):
            x = np.array(ODD * 3).astype(source)
    elif np.dtype(source).kind == "b":
        x = rng.random(100) < 0.5
    else:
        limits = np.iinfo(source)
        x = np.array([limits.min, limits.max, 0, 1, *rng.integers(limits.min, limits.max, 60)], source)
    if source is np.int64:
        x[5:8] = 2**53 + 1, 9007199791611905, 16777217
    compare(cast, [guarded(x)], {"to": ELEMENT_TYPES[np.dtype(target)], "saturate": 1, "round_mode": "up"})


@pytest.mark.parametrize("half", [np.float16, bfloat16], ids=lambda dtype: dtype.__name__)
def test_every_16_bit_float_there_and_back(tier, half):
    every = np.arange(1 << 16).astype(np.uint16).view(half)
    kernel = replacement(cast, [None], {"to": 1})
    wide = kernel(every, to=1)
    np.testing.assert_array_equal(wide, every.astype(np.float32))
    to = ELEMENT_TYPES[np.dtype(half)]
    back = replacement(cast, [None], {"to": to})(wide, to=to)
    assert back.dtype == half
    np.testing.assert_array_equal(back.astype(np.float32), wide)


@pytest.mark.parametrize("half", [np.float16, bfloat16], ids=lambda dtype: dtype.__name__)
def test_16_bit_floats_are_rounded_to_the_nearest_even(tier, rng, half):
    bits = rng.integers(0, 1 << 32, 200_000, np.uint32)
    every = np.arange(1 << 16).astype(np.uint16).view(half).astype(np.float32)
    middle = 1 << (12 if half == np.float16 else 15)
    between = every.view(np.uint32)[:, None] + np.array([middle - 1, middle, middle + 1], np.uint32)
    x = np.concatenate([bits, between.reshape(-1)]).view(np.float32)
    to = ELEMENT_TYPES[np.dtype(half)]
    with np.errstate(all="ignore"):
        got = replacement(cast, [None], {"to": to})(x, to=to)
        wanted = x.astype(half)
    same = (got.view(np.uint16) == wanted.view(np.uint16)) | np.isnan(x)
    assert same.all()
    assert np.isnan(got[np.isnan(x)].astype(np.float32)).all()


def test_what_there_is_no_kernel_for_is_refused(kernels):
    x = np.zeros(3, np.float32)
    for arguments, fault in [
        ((3, 5, 5, np.zeros(3, np.int64), (np.zeros(3, np.int64),) * 2), "no such kernel"),
        ((0, 0, 0, x, (x,)), "tuple of 2"),
        ((0, 0, 0, x, (x, np.zeros(3))), "expected f"),
        ((6, 0, 0, x, (x, x)), "expected ?"),
    ]:
        with pytest.raises(TypeError, match=fault.replace("?", r"\?")):
            kernels.apply(*arguments)
    with pytest.raises(ValueError, match="broadcast"):
        kernels.apply(0, 0, 0, x, (x, np.zeros(4, np.float32)))
    with pytest.raises(ValueError, match="no function 99"):
        kernels.apply(99, 0, 0, x, (x, x))
