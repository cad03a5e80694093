"""Arithmetic, comparisons and logic of elements that broadcast, one operator at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import DType, Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import HALVES, MOST_AXES, TYPES, bits, common_shape, is_movable, is_plain
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.logical.boolean import logical_not
from onnxeval.ops.tensor.choose import one_hot
from onnxeval.registry import STANDARD, Kernel, OpKey

_BOOL, _INT64 = np.dtype(bool), np.dtype(np.int64)
_FLOATS = frozenset(map(np.dtype, ("f4", "f8")))
_NUMBERS = _FLOATS | frozenset(map(np.dtype, ("i4", "i8")))
_ALL = _NUMBERS | HALVES | frozenset(map(np.dtype, ("i1", "u1", "?")))

#: Bytes of an element that there is a choice of.
_WIDEST = 8

#: Operator -> (file of its kernel, a version that it serves, its number in arrays.h, whether operands are exchanged,
#: the types that there are)
_BINARY: dict[str, tuple[str, int, int, bool, frozenset[DType]]] = {
    "Add": ("math.arithmetic", 14, 0, False, _NUMBERS | HALVES),
    "Sub": ("math.arithmetic", 14, 1, False, _NUMBERS | HALVES),
    "Mul": ("math.arithmetic", 14, 2, False, _NUMBERS | HALVES),
    "Div": ("math.arithmetic", 14, 3, False, _FLOATS | HALVES),
    "Max": ("math.variadic", 13, 4, False, _NUMBERS | HALVES),
    "Min": ("math.variadic", 13, 5, False, _NUMBERS | HALVES),
    "Equal": ("logical.comparison", 13, 6, False, _ALL),
    "Less": ("logical.comparison", 13, 7, False, _ALL),
    "Greater": ("logical.comparison", 13, 7, True, _ALL),
    "LessOrEqual": ("logical.comparison", 16, 8, False, _ALL),
    "GreaterOrEqual": ("logical.comparison", 16, 8, True, _ALL),
    "And": ("logical.boolean", 7, 9, False, frozenset({_BOOL})),
    "Or": ("logical.boolean", 7, 10, False, frozenset({_BOOL})),
    "Xor": ("logical.boolean", 7, 11, False, frozenset({_BOOL})),
}
_EQUAL, _OR, _NOT, _WHERE = 6, 10, 12, 13


def _binary(readable: Kernel, what: int, *, swapped: bool, served: frozenset[DType], result: DType | None) -> Any:
    def bind(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
        kernels = native()
        assert kernels is not None
        apply = kernels.apply

        @replayable
        def of_two(a: Tensor, *rest: Tensor) -> Tensor:
            if len(rest) == 1 and type(a) is np.ndarray and a.dtype in served:
                b, dtype = rest[0], a.dtype
                shape = a.shape if a.shape == b.shape else common_shape(a.shape, b.shape)
                if shape is not None and is_plain(b, dtype) and is_plain(a, dtype):
                    out = empty(shape, result or dtype)
                    code = TYPES[dtype]
                    apply(what, code, code, bits(out), (bits(b), bits(a)) if swapped else (bits(a), bits(b)))
                    return out
            return readable(a, *rest)  # type: ignore[no-any-return]

        return of_two

    return bind


for _name, (_file, _version, _what, _swapped, _served) in _BINARY.items():
    import_module(f"onnxeval.ops.{_file}")
    _kernel = STANDARD[OpKey("", _name, _version)]
    _result = _BOOL if _file.startswith("logical") else None
    replaces(_kernel)(_binary(_kernel, _what, swapped=_swapped, served=_served, result=_result))


@replaces(one_hot)
def bind_one_hot(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """OneHot of a known depth: on where an index is that of a place, counted from either end."""
    kernels = native()
    assert kernels is not None
    apply, codes = kernels.apply, (TYPES[_INT64], TYPES[_INT64])

    @replayable
    def chosen(indices: Tensor, depth: Tensor, values: Tensor, *, axis: int, allocate: Allocate) -> Tensor:
        fits = (
            is_plain(indices, _INT64)
            and is_movable(values)
            and values.flags.aligned
            and values.shape == (2,)
            and values.itemsize <= _WIDEST
        )
        size = int(depth.item()) if fits and depth.size == 1 and depth.dtype.kind == "i" else 0
        if size < 1 or not -indices.ndim - 1 <= axis <= indices.ndim or indices.ndim >= MOST_AXES:
            return one_hot(indices, depth, values, axis=axis, allocate=allocate)
        along = axis % (indices.ndim + 1)
        result = allocate((*indices.shape[:along], size, *indices.shape[along:]), values.dtype)
        spread = indices.reshape(*indices.shape[:along], 1, *indices.shape[along:])
        shape = (size, *(1,) * (indices.ndim - along))
        front, back, either = (empty(result.shape, np.bool_) for _ in range(3))
        for out, places in zip((front, back), _places(size), strict=True):
            apply(_EQUAL, *codes, out, (spread, places.reshape(shape)))
        code = TYPES[_BOOL]
        apply(_OR, code, code, either, (front, back))
        apply(_WHERE, code, code, bits(result), (either, bits(values)[1:], bits(values)[:1]))
        return result

    return chosen


@lru_cache(64)
def _places(size: int) -> tuple[Tensor, Tensor]:
    """The places of an axis, from its start and from its end."""
    return np.arange(size), np.arange(-size, 0)


@replaces(logical_not)
def bind_not(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """Not."""
    kernels = native()
    assert kernels is not None

    @replayable
    def inverse(x: Tensor) -> Tensor:
        if not is_plain(x, _BOOL):
            return logical_not(x)
        result = empty(x.shape, np.bool_)
        kernels.apply(_NOT, TYPES[_BOOL], TYPES[_BOOL], result, (x,))
        return result

    return inverse
