"""The operators on sequences, against Python's own lists."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from onnxeval.registry import OpKey, Registry
from onnxeval.values import Sequence, TensorType

A, B, C, D = (np.full((2, n), n, np.float32) for n in range(1, 5))
ABC = Sequence([A, B, C])
EMPTY = Sequence((), TensorType(np.dtype(np.float32)))


def kernel(op_type, version=11):
    return Registry.standard()[OpKey("", op_type, version)]


def at(position, dtype=np.int64):
    return np.array(position, dtype)


def same(sequence, *tensors):
    assert isinstance(sequence, Sequence)
    return len(sequence) == len(tensors) and all(a is b for a, b in zip(sequence, tensors, strict=True))


def test_construct_and_empty():
    got = kernel("SequenceConstruct")(A, B)
    assert same(got, A, B)
    assert got.element_type == TensorType(np.dtype(np.float32))
    assert kernel("SequenceEmpty")(dtype=None).element_type == TensorType(np.dtype(np.float32))
    assert kernel("SequenceEmpty")(dtype=TensorProto.STRING).element_type == TensorType(np.dtype(object))
    with pytest.raises(TypeError, match="a tensor of int64 does not belong in a sequence of float32"):
        kernel("SequenceConstruct")(A, np.arange(2))


def test_length():
    for sequence in (ABC, EMPTY):
        got = kernel("SequenceLength")(sequence)
        assert (got.dtype, got.shape, got.item()) == (np.int64, (), len(sequence))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_at(dtype):
    for position in range(-3, 3):
        assert kernel("SequenceAt")(ABC, at(position, dtype)) is ABC[position]
        assert kernel("SequenceAt")(ABC, at([position], dtype)) is ABC[position]
    for position in (-4, 3):
        with pytest.raises(ValueError, match=rf"position {position} is outside \[-3, 2\]"):
            kernel("SequenceAt")(ABC, at(position, dtype))
    with pytest.raises(ValueError, match="expected a scalar"):
        kernel("SequenceAt")(ABC, at([0, 1]))


def test_insert():
    for position in range(-3, 4):
        wanted = [A, B, C]
        wanted.insert(position, D)
        assert same(kernel("SequenceInsert")(ABC, D, at(position)), *wanted)
    assert same(kernel("SequenceInsert")(ABC, D, None), A, B, C, D)
    assert same(kernel("SequenceInsert")(EMPTY, A, at(0)), A)
    assert same(ABC, A, B, C)
    for position in (-4, 4):
        with pytest.raises(ValueError, match=rf"position {position} is outside \[-3, 3\]"):
            kernel("SequenceInsert")(ABC, D, at(position))
    with pytest.raises(TypeError, match="int8"):
        kernel("SequenceInsert")(EMPTY, np.zeros(1, np.int8), None)


def test_erase():
    for position in range(-3, 3):
        wanted = [A, B, C]
        del wanted[position]
        assert same(kernel("SequenceErase")(ABC, at(position)), *wanted)
    assert same(kernel("SequenceErase")(ABC, None), A, B)
    emptied = kernel("SequenceErase")(Sequence([A]), None)
    assert emptied.element_type == TensorType(np.dtype(np.float32))
    for sequence, position in ((ABC, 3), (ABC, -4), (EMPTY, 0), (EMPTY, -1)):
        with pytest.raises(ValueError, match=f"position {position} is outside"):
            kernel("SequenceErase")(sequence, at(position))
    with pytest.raises(ValueError, match="position -1"):
        kernel("SequenceErase")(EMPTY, None)


@pytest.mark.parametrize("dtype", [np.float32, object, ml_dtypes.bfloat16])
def test_concat(dtype):
    parts = [part.astype(dtype) for part in ABC]
    for axis in (1, -1):
        got = kernel("ConcatFromSequence")(Sequence(parts), axis=axis, new_axis=0)
        assert got.dtype == dtype
        assert got.tolist() == [[1, 2, 2, 3, 3, 3]] * 2
    for axis in range(-3, 3):
        got = kernel("ConcatFromSequence")(Sequence([parts[1], parts[1]]), axis=axis, new_axis=1)
        assert got.tolist() == np.stack([parts[1], parts[1]], axis).tolist()
    scalars = Sequence([np.array(1), np.array(2)])
    assert kernel("ConcatFromSequence")(scalars, axis=0, new_axis=1).tolist() == [1, 2]
    assert kernel("ConcatFromSequence")(scalars, axis=-1, new_axis=1).tolist() == [1, 2]


def test_concat_refuses():
    for axis, new_axis in ((0, 0), (0, 1), (2, 1)):
        with pytest.raises(ValueError, match="tensor 1 is"):
            kernel("ConcatFromSequence")(ABC, axis=axis, new_axis=new_axis)
    for ranks in itertools.permutations([np.zeros(2), np.zeros((2, 2))]):
        with pytest.raises(ValueError, match="tensor 1 is"):
            kernel("ConcatFromSequence")(Sequence(ranks), axis=1 if ranks[0].ndim == 1 else 2, new_axis=1)
    with pytest.raises(ValueError, match="empty"):
        kernel("ConcatFromSequence")(EMPTY, axis=0, new_axis=0)
    with pytest.raises(ValueError, match="axis 3"):
        kernel("ConcatFromSequence")(ABC, axis=3, new_axis=1)
    with pytest.raises(ValueError, match="new_axis 2"):
        kernel("ConcatFromSequence")(ABC, axis=0, new_axis=2)


X = np.arange(30).reshape(2, 5, 3)


@pytest.mark.parametrize("version", [11, 24])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_split_without_lengths(version, axis):
    for keepdims in (0, 1):
        got = kernel("SplitToSequence", version)(X, None, axis=axis, keepdims=keepdims)
        assert len(got) == X.shape[axis]
        for i, part in enumerate(got):
            assert part.tolist() == X.take([i] if keepdims else i, axis).tolist()
            assert np.shares_memory(part, X)


@pytest.mark.parametrize(("part", "lengths"), [(1, [1] * 5), (2, [2, 2, 1]), (3, [3, 2]), (5, [5]), (2**62, [5])])
def test_split_by_one_length(part, lengths):
    for keepdims in (0, 1):  # which is ignored
        got = kernel("SplitToSequence")(X, at(part), axis=1, keepdims=keepdims)
        assert [p.shape for p in got] == [(2, length, 3) for length in lengths]
        assert np.concatenate(got, 1).tolist() == X.tolist()


@pytest.mark.parametrize("lengths", [[5], [2, 3], [0, 4, 1, 0]])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_split_by_lengths(lengths, dtype):
    got = kernel("SplitToSequence")(X, at(lengths, dtype), axis=-2, keepdims=0)
    assert [p.shape for p in got] == [(2, length, 3) for length in lengths]
    assert np.concatenate(got, 1).tolist() == X.tolist()


def test_split_nothing_knows_its_type():
    for split in (None, at(2)):
        got = kernel("SplitToSequence")(np.zeros((0, 3), np.int8), split, axis=0, keepdims=0)
        assert len(got) == 0
        assert got.element_type == TensorType(np.dtype(np.int8))


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (0, "length 0 is not positive"),
        (-2, "length -2"),
        ([2, 2], "add up to the 5"),
        ([6, -1], r"\[6, -1\]"),
        ([[5]], "rank 2"),
    ],
)
def test_split_refuses(split, message):
    with pytest.raises(ValueError, match=message):
        kernel("SplitToSequence")(X, at(split), axis=1, keepdims=1)
    with pytest.raises(ValueError, match="axis 3"):
        kernel("SplitToSequence")(X, None, axis=3, keepdims=1)
