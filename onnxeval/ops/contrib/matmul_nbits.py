"""MatMulNBits: a matrix product with weights of few bits, which blocks of them scale."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib._packing import require_bits, require_block_size, unpacked
from onnxeval.ops.contrib._typed import FLOATS, INT32, UINT8, microsoft_op
from onnxeval.values import shape_text

#: Weights that are made into numbers at a time.
_PART = 1 << 24


@microsoft_op("MatMulNBits", "TBTZGT", T=FLOATS, B=(UINT8,), Z=(UINT8, *FLOATS), G=(INT32,))
@in_float32
def matmul_nbits(
    a: Tensor,
    b: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    g_idx: Tensor | None,
    bias: Tensor | None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,  # noqa: ARG001  allows less precision than there is
    bits: int = 4,
    block_size: int,
    weight_prepacked: int = 0,
) -> Tensor:
    """(..., K) -> (..., N): ``a`` times the transpose of (code - zero point) * scale, plus ``bias`` (N,).

    ``b`` (N, blocks, block_size * bits / 8) packs the codes along K. Scale and zero point (N, blocks) hold for a block,
    or ``g_idx`` (K,) says for each column which of them; flat ones are taken too. Zero points are packed like the codes
    where they are uint8, and 2^(bits - 1) where there are none. Without any weights the product is zero.

    Raises ValueError where shapes do not fit together, for other widths, blocks and layouts than the text knows, and
    for groups that do not exist. Source: com.microsoft.MatMulNBits-1.
    """
    require_bits(bits)
    require_block_size(block_size)
    if weight_prepacked:
        raise ValueError(f"weight_prepacked {weight_prepacked} is a layout of a device, only 0 can be read")
    if N < 1 or K < 1 or not a.ndim or a.shape[-1] != K:
        raise ValueError(f"the input has shape {shape_text(a.shape)}, expected [..., {K}], N is {N}")
    if bias is not None and bias.shape != (N,):
        raise ValueError(f"the bias has shape {shape_text(bias.shape)}, expected [{N}]")
    blocks = -(-K // block_size)
    expected = (N, blocks, block_size * bits // 8)
    if b.ndim != 3 or any(size not in (0, wanted) for size, wanted in zip(b.shape, expected, strict=True)):
        raise ValueError(f"B has shape {shape_text(b.shape)}, expected {shape_text(expected)}")
    if not b.size:
        product = np.zeros((*a.shape[:-1], N), a.dtype)
    else:
        rows = a.reshape(-1, K)
        product = np.empty((len(rows), N), a.dtype)
        scales = _matrix(scales, "scales", (N, blocks))
        zeros = _zero_points(zero_points, (N, blocks), bits)
        groups = _groups(g_idx, K, blocks, block_size)
        step = max(1, _PART // K)
        for part in (slice(start, start + step) for start in range(0, N, step)):
            codes = unpacked(b[part], bits).reshape(-1, blocks * block_size)[:, :K]
            weights = (codes - zeros[part][:, groups]) * scales[part][:, groups]
            product[:, part] = rows @ weights.T
        product = product.reshape(*a.shape[:-1], N)
    return product if bias is None else product + bias


def _matrix(x: Tensor, name: str, shape: tuple[int, int]) -> Tensor:
    if x.shape not in (shape, (shape[0] * shape[1],)):
        raise ValueError(f"{name} has shape {shape_text(x.shape)}, expected {shape_text(shape)}")
    return x.reshape(shape)


def _zero_points(x: Tensor | None, shape: tuple[int, int], bits: int) -> Tensor:
    """One for each block, in float32."""
    if x is None:
        return np.full(shape, 2 ** (bits - 1), np.float32)
    if x.dtype != np.uint8:
        return _matrix(x, "zero_points", shape)
    packed = _matrix(x, "zero_points", (shape[0], -(-shape[1] * bits // 8)))
    return unpacked(packed, bits)[:, : shape[1]].astype(np.float32)


def _groups(g_idx: Tensor | None, columns: int, blocks: int, block_size: int) -> Tensor:
    """Which block's scale and zero point each column has."""
    if g_idx is None:
        return np.arange(columns) // block_size
    if g_idx.shape not in ((columns,), (blocks * block_size,)):
        raise ValueError(f"g_idx has shape {shape_text(g_idx.shape)}, expected [{columns}]")
    groups = g_idx[:columns]
    if groups.min() < 0 or groups.max() >= blocks:
        raise ValueError(f"g_idx holds {groups.min()} to {groups.max()}, there are {blocks} groups")
    return groups
