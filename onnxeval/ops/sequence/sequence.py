"""Sequences of tensors: made, read, grown, shrunk, joined into a tensor and cut from one."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor, dtype_of, name_of
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._parts import cut, joined
from onnxeval.registry import op
from onnxeval.values import Sequence, TensorType, Value


@op("SequenceEmpty", versions=(11,))
def sequence_empty(*, dtype: int | None) -> Sequence:
    """An empty sequence for tensors of ``dtype``, else float32. Source: SequenceEmpty-11."""
    return Sequence((), TensorType(np.dtype(np.float32) if dtype is None else dtype_of(dtype)))


@op("SequenceConstruct", versions=(11,))
def sequence_construct(*inputs: Tensor) -> Sequence:
    """The sequence of the inputs, which are of one type, else TypeError. Source: SequenceConstruct-11."""
    sequence = Sequence(inputs)
    for tensor in inputs:
        _require_type(sequence, tensor)
    return sequence


@op("SequenceLength", versions=(11,))
def sequence_length(sequence: Sequence) -> Tensor:
    """The number of tensors, int64 of rank 0. Source: SequenceLength-11."""
    return np.array(len(sequence), np.int64)


@op("SequenceAt", versions=(11,))
def sequence_at(sequence: Sequence, position: Tensor) -> Value:
    """The tensor at a position in [-n, n - 1], else ValueError. Source: SequenceAt-11."""
    return sequence[_position(position, len(sequence), last=len(sequence) - 1)]


@op("SequenceInsert", versions=(11,))
def sequence_insert(sequence: Sequence, tensor: Tensor, position: Tensor | None) -> Sequence:
    """The sequence with ``tensor`` before the one at a position in [-n, n], or at the end. Source: SequenceInsert-11.

    ValueError where the position is outside, TypeError where the tensor is of another type.
    """
    _require_type(sequence, tensor)
    length = len(sequence)
    at = length if position is None else _position(position, length, last=length)
    return Sequence([*sequence[:at], tensor, *sequence[at:]], sequence.element_type)


@op("SequenceErase", versions=(11,))
def sequence_erase(sequence: Sequence, position: Tensor | None) -> Sequence:
    """The sequence without the tensor at a position in [-n, n - 1], or without the last. Source: SequenceErase-11.

    ValueError where there is none.
    """
    length = len(sequence)
    at = _position(np.array(-1) if position is None else position, length, last=length - 1)
    return Sequence([*sequence[:at], *sequence[at + 1 :]], sequence.element_type)


@op("ConcatFromSequence", versions=(11,))
def concat_from_sequence(sequence: Sequence, *, axis: int, new_axis: int) -> Tensor:
    """The tensors joined along ``axis``, which is a new one if ``new_axis``. Source: ConcatFromSequence-11.

    ValueError where the sequence is empty or the shapes do not fit.
    """
    if not sequence:
        raise ValueError("the sequence is empty")
    if new_axis not in (0, 1):
        raise ValueError(f"new_axis {new_axis} is neither 0 nor 1")
    if not new_axis:
        return joined(sequence, axis)
    along = normalise_axis(axis, sequence[0].ndim + 1)
    return joined([np.expand_dims(tensor, min(along, tensor.ndim)) for tensor in sequence], along)


@op("SplitToSequence", versions=(11, 24))
def split_to_sequence(x: Tensor, split: Tensor | None, *, axis: int, keepdims: int) -> Sequence:
    """``x`` cut along ``axis``: into parts of the lengths in ``split``, or all of the one length that is a scalar.

    The last of equal parts may be smaller. Without ``split`` the parts are of length 1, and have no such axis unless
    ``keepdims``. The parts are views. ValueError where a length is negative, a scalar not positive, or where the
    lengths do not add up to the size. Source: SplitToSequence-24.
    """
    along = normalise_axis(axis, x.ndim)
    size = x.shape[along]
    if split is None:
        lengths = [1] * size
    elif split.ndim == 1:
        lengths = split.tolist()
    elif split.ndim == 0:
        part = split.item()
        if part < 1:
            raise ValueError(f"the length {part} is not positive")
        lengths = [part] * (size // part) + [size % part] * (size % part > 0)
    else:
        raise ValueError(f"split is a tensor of rank {split.ndim}, expected 0 or 1")
    parts = cut(x, lengths, along)
    if split is None and not keepdims:
        parts = [part.reshape(part.shape[:along] + part.shape[along + 1 :]) for part in parts]
    return Sequence(parts, TensorType(x.dtype))


def _position(position: Tensor, length: int, *, last: int) -> int:
    if position.size != 1:
        raise ValueError(f"the position is of shape {list(position.shape)}, expected a scalar")
    at = int(position.item())
    if not -length <= at <= last:
        raise ValueError(f"position {at} is outside [{-length}, {last}] for a sequence of {length}")
    return at + length if at < 0 else at


def _require_type(sequence: Sequence, tensor: Tensor) -> None:
    held = sequence.element_type
    if isinstance(held, TensorType) and held.dtype not in (None, tensor.dtype):
        raise TypeError(f"a tensor of {name_of(tensor.dtype)} does not belong in a sequence of {held}")
