"""Accepted differences of operators that work on each element, and of casts."""

from __future__ import annotations

import numpy as np
from differential.accepted import accept
from differential.cases import Node

from onnxeval.dtypes import (
    BY_ELEMENT_TYPE,
    FLOAT8E5M2,
    FLOAT8E8M0,
    STRING,
    SUB_BYTE_BITS,
    DType,
    integer_range,
    is_float,
    is_integer,
)


def has_nan(node: Node, *places: int) -> bool:
    """Whether one of these inputs (all where none is named) holds a NaN."""
    chosen = [node.input(place) for place in places] if places else node.inputs
    return any(x is not None and is_float(x.dtype) and bool(np.isnan(x.astype(float)).any()) for x in chosen)


def is_infinite(node: Node, place: int = 0) -> bool:
    x = node.input(place)
    return is_float(x.dtype) and bool(np.isinf(x.astype(float)).any())


def target_of(node: Node) -> DType:
    return BY_ELEMENT_TYPE[node.attribute("to")] if node.op_type == "Cast" else node.inputs[1].dtype


@accept("Casting to integers", "Cast", "CastLike")
def casts_out_of_range(node: Node) -> bool:
    x, target = node.inputs[0], target_of(node)
    if not (is_float(x.dtype) and is_integer(target)):
        return False
    least, greatest = integer_range(target)
    whole = np.trunc(x.astype(np.float64))
    return not bool(np.all((whole >= least) & (whole <= greatest)))


@accept("Casting to integers", "Cast", "CastLike")
def casts_fractions_to_narrow_integers(node: Node) -> bool:
    x, target = node.inputs[0], target_of(node)
    ties = is_float(x.dtype) and bool(np.any(np.abs(x.astype(float) % 1) == 0.5))
    return ties and is_integer(target) and target in SUB_BYTE_BITS


@accept("Casting to float8e8m0", "Cast", "CastLike")
def casts_below_zero_to_powers(node: Node) -> bool:
    x = node.inputs[0]
    return target_of(node) == FLOAT8E8M0 and (x.dtype == STRING or bool(np.signbit(x.astype(float)).any()))


@accept("CastLike and round_mode", "CastLike")
def rounds_like(node: Node) -> bool:
    return target_of(node) == FLOAT8E8M0 and node.attribute("round_mode") not in (None, "up")


@accept("Casting strings to integers and booleans", "Cast", "CastLike")
def casts_strings(node: Node) -> bool:
    target = target_of(node)
    return node.inputs[0].dtype == STRING and (is_integer(target) or target == np.bool_)


@accept("Sign of NaN", "Sign")
def sign_of_nan(node: Node) -> bool:
    return has_nan(node)


@accept("Pow of integers", "Pow")
def power_of_integers(node: Node) -> bool:
    base, exponent = node.inputs
    results = np.power(base.astype(float), exponent.astype(float))
    limit = min(np.iinfo(base.dtype).max, 2**53) if is_integer(base.dtype) else np.inf
    return is_integer(base.dtype) and not bool(np.all(np.abs(results) < limit))


@accept("Pow and large exponents", "Pow")
def power_of_large_integers(node: Node) -> bool:
    exponent = node.inputs[1]
    return is_integer(exponent.dtype) and bool(np.any(np.abs(exponent.astype(float)) > 2**24))


@accept("Casting to float8 without saturation", "Cast", "CastLike")
def overflows_float8(node: Node) -> bool:
    return target_of(node) == FLOAT8E5M2 and node.attribute("saturate") == 0


@accept("Shrink of integers", "Shrink")
def shrinks_integers(node: Node) -> bool:
    x, bias = node.inputs[0], node.attribute("bias")
    return is_integer(x.dtype) and (bias % 1 != 0 or bias < 0 or bool(np.any(np.abs(x.astype(float)) > 2**24)))


@accept("Shrink in double precision", "Shrink")
def shrinks_doubles(node: Node) -> bool:
    return node.inputs[0].dtype == np.float64


@accept("Clip and its bounds", "Clip")
def clips_by_attribute(node: Node) -> bool:
    least, greatest = node.attribute("min"), node.attribute("max")
    return node.version == 6 and (least > greatest or has_nan(node) or is_infinite(node))


@accept("Clip and its bounds", "Clip")
def clips_without_a_bound(node: Node) -> bool:
    return node.version > 6 and is_infinite(node)


@accept("Where and negative zero", "Where")
def chooses_negative_zero(node: Node) -> bool:
    return any(is_float(x.dtype) and bool(np.any((x == 0) & np.signbit(x))) for x in node.inputs[1:])


@accept("Casting to strings", "Cast", "CastLike")
def casts_floats_to_strings(node: Node) -> bool:
    return target_of(node) == STRING and is_float(node.inputs[0].dtype)


@accept("Casting float8 negative zero to bool", "Cast", "CastLike")
def casts_narrow_zeros(node: Node) -> bool:
    x = node.inputs[0]
    zeros = is_float(x.dtype) and bool(np.any((x == 0) & np.signbit(x.astype(float))))
    return zeros and "float8" in x.dtype.name and target_of(node) == np.bool_


@accept("Integer division by zero", "Div", "Mod")
def divides_nothing_by_zero(node: Node) -> bool:
    a, b = node.inputs
    return is_integer(a.dtype) and 0 in (*a.shape, *b.shape) and bool(np.any(b == 0))


@accept("Integer division that overflows", "Div", avoid=True)
def divides_the_least_by_minus_one(node: Node) -> bool:
    a, b = node.inputs
    return a.dtype.kind == "i" and bool(np.any(a == np.iinfo(a.dtype).min) and np.any(b == -1))
