"""Chains on 16-bit floats of one type: made wide once, each result rounded where it lies, narrowed at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnxeval.dtypes import BFLOAT16, DType, Tensor
from onnxeval.fast._checks import FLOAT32
from onnxeval.fast.activations import Kind
from onnxeval.fast.chains import fused_head
from onnxeval.fast.elementwise import element_chain
from onnxeval.fast.halves import converted, for_halves, half_of
from onnxeval.fast.parts import Part
from onnxeval.ops._precision import as_float32
from onnxeval.registry import Kernel


class HalfChain:
    """The parts of a chain as far as they go, for constants of one 16-bit type."""

    def __init__(
        self, parts: Sequence[Part], constants: Sequence[Tensor | None], half: DType, *, fast_math: bool
    ) -> None:
        self.half = half
        self.constants = constants
        self.known = [as_float32(x) for x in constants]
        self.sources = parts[0].sources
        self.head = fused_head(parts[:1], self.known, fast_math=fast_math)
        rounding = Kind.ROUND_BFLOAT16 if half == BFLOAT16 else Kind.ROUND_FLOAT16
        self.tail = element_chain(parts, self.known, 0 if self.head is None else 1, rounding)

    def __call__(self, inputs: Sequence[Tensor | None], supplied: Mapping[str, Any]) -> tuple[int, Tensor] | None:
        """How many of the parts are done, and their result; None where all are for others."""
        if half_of(inputs) != self.half:
            return None
        values = [
            wide if x is constant and x is not None else converted(x, FLOAT32)
            for x, constant, wide in zip(inputs, self.constants, self.known, strict=True)
        ]
        result = None
        if self.head is not None:
            try:
                result = self.head(*values, **supplied)
            except Exception:  # the parts say which of them fails, and of what
                return None
            if result is None:
                return None
        further = None if self.tail is None else self.tail(values, result)
        if self.tail is not None and further is not None:
            return self.tail.stop, converted(further, self.half)
        return None if result is None else (1, converted(result, self.half))

    def first(self) -> Kernel | None:
        """The first part by itself, with the weights that are packed already; None where it is no product."""
        if self.head is None:
            return None
        constants, known = (
            [values[source] if source >= 0 else None for source in self.sources]
            for values in (self.constants, self.known)
        )
        return for_halves(self.head.alone, constants, known, 1)


def half_chain(parts: Sequence[Part], constants: Sequence[Tensor | None], *, fast_math: bool) -> HalfChain | None:
    """What runs parts on 16-bit floats; None where constants are not of one such type, or there is nothing to it."""
    half = half_of(constants)
    if half is None:
        return None
    chain = HalfChain(parts, constants, half, fast_math=fast_math)
    return None if chain.head is None and chain.tail is None else chain
