"""MatMulNBits of float32 with weights of 4 or 8 bits, which stay as they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32
from onnxeval.fast.engine import native
from onnxeval.ops.contrib.matmul_nbits import matmul_nbits
from onnxeval.registry import Kernel

_UINT8 = np.dtype(np.uint8)


@replaces(matmul_nbits)
def bind_matmul_nbits(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """MatMulNBits whose groups are blocks and whose zero points, if any, are packed as the weights."""
    kernels = native()
    assert kernels is not None
    columns, width, block = attributes["K"], attributes["N"], attributes["block_size"]
    bits = attributes.get("bits", 4)
    if bits not in (4, 8) or block < 16 or block & (block - 1) or attributes.get("weight_prepacked", 0):
        return None
    if columns < 1 or width < 1:
        return None
    blocks = -(-columns // block)
    codes = (width, blocks, block * bits // 8)
    packed = width * -(-blocks * bits // 8)

    @replayable
    def multiplied(*inputs: Tensor | None, **given: Any) -> Tensor:
        given_inputs: list[Tensor | None] = [*inputs, *[None] * (6 - len(inputs))]
        a, b, scales, zeros, groups, bias = given_inputs
        fits = is_float32(a) and is_float32(scales) and groups is None and b is not None and b.dtype == _UINT8
        fits = fits and (zeros is None or (zeros.dtype == _UINT8 and zeros.size == packed and zeros.ndim < 3))
        fits = fits and (bias is None or (is_float32(bias) and bias.shape == (width,)))
        if not fits or a is None or b is None or scales is None:
            return matmul_nbits(*inputs, **given)  # type: ignore[arg-type]
        if b.shape != codes or scales.shape not in ((width, blocks), (width * blocks,)):
            return matmul_nbits(*inputs, **given)  # type: ignore[arg-type]
        if not a.size or a.shape[-1] != columns:
            return matmul_nbits(*inputs, **given)  # type: ignore[arg-type]
        result = empty((*a.shape[:-1], width), np.float32)
        kernels.multiply_bits(
            contiguous(a).reshape(-1, columns),
            contiguous(b),
            contiguous(scales),
            None if zeros is None else contiguous(zeros),
            result.reshape(-1, width),
            bias,
            bits,
            block,
        )
        return result

    return multiplied
