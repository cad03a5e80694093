"""Multiplications with an addition (MACs) that an operator needs, by its sizes.

    operator                             MACs
    Conv and its like                    elements of the output · C / group · elements of a kernel
    ConvTranspose                        elements of the input · M / group · elements of a kernel
    CausalConvWithState                  elements of the output · elements of a kernel
    Gemm                                 M · N · K
    MatMul and its like                  elements of the output · K
    Einsum                               the product of all its letters' sizes, once for each operand after the first
    RNN, GRU, LSTM                       T · B · D · gates · H · (I + H), with 1, 3 and 4 gates
    Attention, MultiHeadAttention        B · heads · queries · keys · (size of a key + size of a value)
    LinearAttention                      B · T · heads · size of a key · size of a value, for the update and the reading

What is not in the table (activations, sums, normalisations, moves) counts none. M and N are rows and columns of the
result, K is what is summed over; C and M of a convolution are input and output channels; T steps, B batch, D
directions, H hidden and I input sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from onnxeval.checks.recording import Record
from onnxeval.values import Dimension

Shape: TypeAlias = tuple[int, ...]


class UnknownSize(Exception):  # noqa: N818  # what is in the way
    """A size that a formula needs is not known."""


def fixed(shape: Sequence[Dimension] | None) -> Shape:
    """A shape whose sizes are all known. Raises UnknownSize for others."""
    sizes = tuple(size for size in shape or () if isinstance(size, int))
    if shape is None or len(sizes) < len(shape):
        raise UnknownSize
    return sizes


def _input(record: Record, place: int) -> Shape:
    if place >= len(record.inputs):
        raise UnknownSize
    return fixed(record.inputs[place].shape)


def _output(record: Record, place: int = 0) -> Shape:
    if place >= len(record.outputs):
        raise UnknownSize
    return fixed(record.outputs[place].shape)


def _number(record: Record, name: str) -> int:
    value = record.attributes.get(name)
    if not isinstance(value, int):
        raise UnknownSize
    return value


def _convolution(weight: int) -> Callable[[Record], int]:
    """Each element of the output sums over C / group channels and a kernel: what a filter of the weight holds."""
    return lambda record: math.prod(_output(record)) * math.prod(_input(record, weight)[1:])


def _channels_last(record: Record) -> int:
    return math.prod(_output(record)) * math.prod(_input(record, 1)[1:])


def _transposed(record: Record) -> int:
    """Each element of the input is multiplied with its channel's filters: M / group of them."""
    return math.prod(_input(record, 0)) * math.prod(_input(record, 1)[1:])


def _gemm(record: Record) -> int:
    left = _input(record, 0)
    return math.prod(_output(record)) * left[0 if record.attributes.get("transA") else -1]


def _product(record: Record) -> int:
    """K is the last size of the first factor."""
    left = _input(record, 0)
    if not left:
        raise UnknownSize
    return math.prod(_output(record)) * left[-1]


def _turnable_product(record: Record) -> int:
    left = _input(record, 0)
    if not left:
        raise UnknownSize
    return math.prod(_output(record)) * left[-2 if record.attributes.get("transA") and len(left) > 1 else -1]


def _einsum(record: Record) -> int:
    equation = record.attributes.get("equation")
    if not isinstance(equation, str):
        raise UnknownSize
    sizes: dict[str, int] = {}
    terms = equation.replace(" ", "").split("->")[0].split(",")
    for place, term in enumerate(terms):
        shape = _input(record, place)
        front, dots, back = term.partition("...")
        letters = [*front, *(f".{i}" for i in range(len(front) + len(back) - len(shape), 0) if dots), *back]
        for letter, size in zip(letters, shape, strict=False):
            sizes[letter] = max(size, sizes.get(letter, 1))
    return math.prod(sizes.values()) * max(len(terms) - 1, 0)


def _recurrent(gates: int) -> Callable[[Record], int]:
    def count(record: Record) -> int:
        x, weight, recurrence = (_input(record, place) for place in range(3))
        directions, hidden = weight[0], recurrence[-1]
        return x[0] * x[1] * directions * gates * hidden * (x[2] + hidden)

    return count


def _attention(record: Record) -> int:
    q, k, v = (_input(record, place) for place in range(3))
    past = _input(record, 4) if len(record.inputs) > 4 and record.inputs[4].type is not None else (0, 0, 0, 0)
    if len(q) == 4:
        batch, heads, queries, size = q
        keys, value_size = k[2] + past[2], v[3]
    else:
        heads, shared = _number(record, "q_num_heads"), _number(record, "kv_num_heads")
        batch, queries, keys = q[0], q[1], k[1] + past[2]
        size, value_size = q[2] // heads, v[2] // shared
    return batch * heads * queries * keys * (size + value_size)


def _multi_head_attention(record: Record) -> int:
    q, k, v = (_input(record, place) for place in range(3))
    if not len(q) == len(k) == len(v) == 3:
        raise UnknownSize
    return q[0] * q[1] * k[1] * (q[2] + v[2])


def _linear_attention(record: Record) -> int:
    q, v = _input(record, 0), _input(record, 2)
    heads, shared = _number(record, "q_num_heads"), _number(record, "kv_num_heads")
    size, value_size = q[-1] // heads, v[-1] // shared
    return q[0] * q[1] * size * value_size * (heads + shared)


#: (domain, operator) -> how its MACs are counted.
FORMULAS: dict[tuple[str, str], Callable[[Record], int]] = {
    ("", "Conv"): _convolution(1),
    ("", "ConvInteger"): _convolution(1),
    ("", "DeformConv"): _convolution(1),
    ("", "CausalConvWithState"): _convolution(1),
    ("", "QLinearConv"): _convolution(3),
    ("", "ConvTranspose"): _transposed,
    ("", "Gemm"): _gemm,
    ("", "MatMul"): _product,
    ("", "MatMulInteger"): _product,
    ("", "QLinearMatMul"): _product,
    ("", "Einsum"): _einsum,
    ("", "RNN"): _recurrent(1),
    ("", "GRU"): _recurrent(3),
    ("", "LSTM"): _recurrent(4),
    ("", "Attention"): _attention,
    ("", "LinearAttention"): _linear_attention,
    ("com.microsoft", "FusedConv"): _convolution(1),
    ("com.microsoft", "FusedGemm"): _gemm,
    ("com.microsoft", "FusedMatMul"): _turnable_product,
    ("com.microsoft", "TransposeMatMul"): _turnable_product,
    ("com.microsoft", "MatMulNBits"): _product,
    ("com.microsoft", "MatMulBnb4"): _product,
    ("com.microsoft", "MatMulInteger16"): _product,
    ("com.microsoft", "MatMulIntegerToFloat"): _product,
    ("com.microsoft", "DynamicQuantizeMatMul"): _product,
    ("com.microsoft", "QLinearConv"): _channels_last,
    ("com.microsoft", "QGemm"): _gemm,
    ("com.microsoft", "MultiHeadAttention"): _multi_head_attention,
    ("com.microsoft", "DynamicQuantizeLSTM"): _recurrent(4),
}
