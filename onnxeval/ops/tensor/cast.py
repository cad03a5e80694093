"""Cast, CastLike and BitCast: another element type for the same numbers, or for the same bits.

``to`` was the name of a type before version 6. ``saturate`` arrived in 19, ``round_mode`` in 24. The tables of 19 to 23
make NaN of an infinity that saturates to E4M3FNUZ or E5M2FNUZ; 24 corrected them to the greatest value, as for the
other types, and that is what every version does here.
"""

from __future__ import annotations

from onnxeval.dtypes import BY_NAME, SUB_BYTE_BITS, DType, Tensor, dtype_of, name_of
from onnxeval.ops._cast import convert
from onnxeval.registry import op

_NAMED = {name.upper(): dtype for name, dtype in BY_NAME.items()}


@op("Cast", versions=(6, 9, 13, 19, 21, 23, 24, 25, 28))
def cast(x: Tensor, *, to: int, saturate: int = 1, round_mode: str = "up") -> Tensor:
    """``x`` with elements of type ``to``, of the same shape; what is rounded is rounded once.

    ``saturate`` matters for float 8, ``round_mode`` for float8e8m0. ValueError for a string that is no number.
    Source: Cast-28; where it says undefined, see `convert`.
    """
    return convert(x, dtype_of(to), saturate=bool(saturate), round_mode=round_mode)


@op("Cast", versions=(1,))
def cast_to_named(x: Tensor, *, to: str) -> Tensor:
    """As `cast`, with ``to`` the name of a type: "FLOAT16". Source: Cast-1."""
    if to not in _NAMED:
        raise ValueError(f"to={to!r} is none of the element types {', '.join(_NAMED)}")
    return convert(x, _NAMED[to])


@op("CastLike", versions=(15, 19, 21, 23, 24, 25))
def cast_like(x: Tensor, target: Tensor, *, saturate: int = 1, round_mode: str = "up") -> Tensor:
    """``x`` with elements of the type of ``target``, as Cast makes them. Source: CastLike-25."""
    return convert(x, target.dtype, saturate=bool(saturate), round_mode=round_mode)


@op("BitCast", versions=(26,))
def bit_cast(x: Tensor, *, to: int) -> Tensor:
    """The bits of ``x`` read as type ``to``, of the same shape, as a view; a bool is a byte.

    ValueError where the types differ in width, TypeError for strings. Source: BitCast-26.
    """
    target = dtype_of(to)
    if _bits(x.dtype) != _bits(target):
        raise ValueError(
            f"{name_of(x.dtype)} has {_bits(x.dtype)} bits an element, {name_of(target)} has {_bits(target)}"
        )
    return x.view(target)


def _bits(dtype: DType) -> int:
    if dtype.hasobject:
        raise TypeError("strings have no bits to be read as another type")
    return SUB_BYTE_BITS.get(dtype, 8 * dtype.itemsize)
