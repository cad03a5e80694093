"""Values made on the spot: `rand:`, `randn:`, `zeros:`, `ones:`, `range:` and `full:`.

Behind the colon stand a type, as far as the model does not declare it, and numbers: `rand:[2,3]:-1:1` is uniform
between -1 and 1, `randn:0.5:2` has that mean and deviation, `range:10:2` starts at 10 and steps by 2, `full:7` is 7
everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from zlib import crc32

import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor, integer_range, is_integer, name_of
from onnxeval.ops._cast import convert
from onnxeval.values import OptionalType, TensorType, Value, ValueType, check_countable

from .literals import narrowed, parse_json, tensor_of
from .source import Reading, Source
from .typetext import parse_tensor_type


class Generated(Source):
    """A tensor of the declared type, or of the one that was typed."""

    def __init__(self, text: str, reading: Reading) -> None:
        super().__init__(text.removesuffix(":"), reading)
        self._kind, _, rest = text.partition(":")
        self._typed = TensorType(None)
        self._numbers: list[str] = []
        for part in rest.split(":") if rest else ():
            try:
                self._typed = parse_tensor_type(part)
            except ValueError:
                self._numbers.append(part)
        if len(self._numbers) > _MOST_NUMBERS[self._kind]:
            raise self.error(f"{self._kind} takes {_MOST_NUMBERS[self._kind]} numbers, not {len(self._numbers)}", _HINT)
        if self._kind == "full" and not self._numbers:
            raise self.error("full of which number?", "full:0.5")
        if self._kind != "full":
            with self.failures():
                self._floats = [float(_element(text, np.dtype(np.float64))) for text in self._numbers]

    def _read(self, name: str, wanted: ValueType | None) -> Value:
        declared = wanted.element if isinstance(wanted, OptionalType) else wanted
        if not isinstance(declared, TensorType | None):
            raise ValueError(f"makes tensors, the model declares {wanted}")
        known = declared or TensorType(None)
        dtype = self._typed.dtype or known.dtype or np.dtype(np.float32)
        shape = self._shape(self._typed if self._typed.shape is not None else known)
        check_countable(shape, dtype)
        if self._kind == "full":
            return np.full(shape, _element(self._numbers[0], dtype), dtype)
        rng = np.random.default_rng([self.reading.seed, crc32(name.encode())])
        if dtype == STRING:
            raise ValueError("makes numbers, the model declares string: full:TEXT makes strings")
        return _MAKERS[self._kind](shape, dtype, self._floats, rng)

    def _shape(self, known: TensorType) -> tuple[int, ...]:
        if known.shape is None:
            raise ValueError(f"of which shape? The model declares none: {self._kind}:[2,3]")
        sizes = [self.reading.sizes.get(size, size) if isinstance(size, str) else size for size in known.shape]
        if unknown := [str(size or "?") for size in sizes if not isinstance(size, int)]:
            example = ",".join(str(size) if isinstance(size, int) else "1" for size in sizes)
            sized = f", or --dim {unknown[0]}=1" if "?" not in unknown else ""
            raise ValueError(
                f"of which size is {' and '.join(unknown)} in {known}? Say it, as in {self._kind}:[{example}]{sized}"
            )
        return tuple(size for size in sizes if isinstance(size, int))


def _element(text: str, dtype: DType) -> Value:
    if dtype == STRING:
        return text
    try:
        content = parse_json(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a number nor a type") from None
    return tensor_of(content, dtype)[()]


def _uniform(shape: tuple[int, ...], dtype: DType, numbers: list[float], rng: np.random.Generator) -> Tensor:
    low, high = (*numbers, *(0.0, 1.0)[len(numbers) :])
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if is_integer(dtype):
        least, most = integer_range(dtype)
        if not numbers:
            low, high = (least, most) if dtype.itemsize == 1 else (0, 10)
        if not least <= low <= high <= most:
            raise ValueError(f"from {low:g} to {high:g} is no range of {name_of(dtype)}")
        return rng.integers(int(low), int(high), shape, endpoint=True, dtype=_wide(dtype)).astype(dtype)
    return _floats(low + (high - low) * _drawn(rng.random, shape, dtype), dtype)


def _normal(shape: tuple[int, ...], dtype: DType, numbers: list[float], rng: np.random.Generator) -> Tensor:
    mean, deviation = (*numbers, *(0.0, 1.0)[len(numbers) :])
    drawn = mean + deviation * _drawn(rng.standard_normal, shape, dtype)
    if is_integer(dtype) or dtype.kind == "b":
        raise ValueError(f"is no way to make {name_of(dtype)}: rand: is")
    return _floats(drawn, dtype)


def _ramp(shape: tuple[int, ...], dtype: DType, numbers: list[float], _rng: np.random.Generator) -> Tensor:
    start, step = (*numbers, *(0.0, 1.0)[len(numbers) :])
    count = math.prod(shape)
    if is_integer(dtype) and start.is_integer() and step.is_integer():
        last = int(start) + int(step) * max(count - 1, 0)
        least, most = integer_range(dtype)
        if not (least <= start <= most and least <= last <= most):
            raise ValueError(f"from {start:g} to {last} is no range of {name_of(dtype)}")
        ramp = (int(start) + int(step) * np.arange(count, dtype=np.int64)).astype(_wide(dtype))
        return ramp.astype(dtype).reshape(shape)
    if is_integer(dtype) or dtype.kind == "b":
        raise ValueError(f"the steps are no {name_of(dtype)}")
    ramp = start + step * np.arange(count, dtype=np.float64)
    return (ramp.astype(dtype) if dtype.kind == "c" else narrowed(ramp, dtype)).reshape(shape)


def _constant(number: int) -> Callable[[tuple[int, ...], DType, list[float], np.random.Generator], Tensor]:
    def fill(shape: tuple[int, ...], dtype: DType, _numbers: list[float], _rng: np.random.Generator) -> Tensor:
        return np.full(shape, bool(number) if dtype.kind == "b" else _element(str(number), dtype), dtype)

    return fill


def _drawn(draw: Callable[[tuple[int, ...]], Tensor], shape: tuple[int, ...], dtype: DType) -> Tensor:
    return draw(shape) + 1j * draw(shape) if dtype.kind == "c" else draw(shape)


def _floats(wide: Tensor, dtype: DType) -> Tensor:
    with np.errstate(all="ignore"):
        return wide.astype(dtype) if dtype.kind == "c" else convert(wide, dtype)


def _wide(dtype: DType) -> DType:
    return dtype if dtype.isbuiltin != 2 else np.dtype(np.int16)


_MAKERS = {"rand": _uniform, "randn": _normal, "range": _ramp, "zeros": _constant(0), "ones": _constant(1)}
_MOST_NUMBERS = {"rand": 2, "randn": 2, "range": 2, "zeros": 0, "ones": 0, "full": 1}
_HINT = "as in rand:[2,3], rand:[2,3]:-1:1, randn:float16[8], range:0:2, full:7"
