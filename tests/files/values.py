"""Arrays of every element type and shape, and other values, for the round trips."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onnxeval.dtypes import BY_ELEMENT_TYPE, STRING, SUB_BYTE_BITS, is_integer, is_signed

DTYPES = sorted(BY_ELEMENT_TYPE.values(), key=str)
SHAPES = st.one_of(
    st.just(()),
    st.sampled_from([(0,), (2, 0), (0, 3, 1)]),
    st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def arrays_of(dtype):
    """Arrays of every shape, their elements of every bit pattern that the type has."""
    if dtype == STRING:
        return SHAPES.flatmap(lambda shape: arrays.arrays(object, shape, elements=TEXT))
    if dtype.kind == "b":
        return SHAPES.flatmap(lambda shape: arrays.arrays(bool, shape))
    width = dtype.itemsize
    codes = SHAPES.flatmap(lambda shape: arrays.arrays(np.uint8, (*shape, width)))
    return codes.map(lambda bytes_of: _from_codes(bytes_of, dtype))


def examples_of(dtype):
    """Rank 0, nothing, and every bit pattern or a thousand of them, those at the ends of the range included."""
    if dtype == STRING:
        yield from (np.array(text, object) for text in ("", "日本\n", 'a "b", c', "1", "nul\0"))
        yield np.array([["name", "1"], ["true", "NaN"]], object)
        yield np.zeros((2, 0), object)
        return
    width = dtype.itemsize
    if dtype.kind == "b":
        every = np.array([False, True])
    elif width == 1:
        every = _from_codes(np.arange(256, dtype=np.uint8)[:, None], dtype)
    else:
        bits = np.random.default_rng(0).integers(0, 256, (1000, width)).astype(np.uint8)
        bits[:8] = np.array([[0], [255], [128], [127], [1], [254], [64], [63]])
        every = _from_codes(bits, dtype)
    yield every
    yield every.reshape(-1, 2)
    yield from (every[:1].reshape(()), every[:0], every[:0].reshape(2, 0, 3))


def _from_codes(bytes_of, dtype):
    if dtype in SUB_BYTE_BITS:
        bits = SUB_BYTE_BITS[dtype]
        bytes_of = bytes_of & np.uint8(2**bits - 1)
        if is_signed(dtype):
            sign = np.uint8(1 << (bits - 1))
            bytes_of = (bytes_of ^ sign) - sign
    return np.ascontiguousarray(bytes_of).view(dtype).reshape(bytes_of.shape[:-1])


def same(one, other):
    """Whether two arrays are the same in type, shape and bits; a NaN is as good as another."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype == STRING:
        return one.tolist() == other.tolist()
    if is_integer(one.dtype) and one.dtype.isbuiltin != 1:  # the bits above their own mean nothing
        return one.tolist() == other.tolist()
    bits, other_bits = one.tobytes(), other.tobytes()
    if bits == other_bits:
        return True
    if one.dtype.kind == "c":
        return all(same(a(one), a(other)) for a in (np.real, np.imag))
    number, other_number = one.ravel(), other.ravel()
    with np.errstate(invalid="ignore"):  # NaNs that signal
        nan = np.isnan(number) & np.isnan(other_number)
    return number[~nan].tobytes() == other_number[~nan].tobytes()
