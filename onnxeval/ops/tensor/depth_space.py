"""DepthToSpace and SpaceToDepth: whole blocks of pixels between the channel axis and the picture's.

DepthToSpace gained ``mode`` in version 11, SpaceToDepth in 28; without it both are depth-column-row.
"""

from __future__ import annotations

from onnxeval.dtypes import Tensor
from onnxeval.registry import op
from onnxeval.values import check_countable


@op("DepthToSpace", versions=(1, 11, 13, 28))
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """(N, C, H, W) -> (N, C / blocksize², H * blocksize, W * blocksize). Source: DepthToSpace-28."""
    batch, channels, height, width = _four(x, blocksize)
    if channels % blocksize**2:
        raise ValueError(f"channels {channels} is not a multiple of blocksize² = {blocksize**2}")
    depth = channels // blocksize**2
    if _is_depth_first(mode):
        blocks = x.reshape(batch, blocksize, blocksize, depth, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = x.reshape(batch, depth, blocksize, blocksize, height, width).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(batch, depth, height * blocksize, width * blocksize)


@op("SpaceToDepth", versions=(1, 13, 28))
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """(N, C, H, W) -> (N, C * blocksize², H / blocksize, W / blocksize). Source: SpaceToDepth-28."""
    batch, channels, height, width = _four(x, blocksize)
    for side, size in (("height", height), ("width", width)):
        if size % blocksize:
            raise ValueError(f"{side} {size} is not a multiple of blocksize {blocksize}")
    rows, columns = height // blocksize, width // blocksize
    blocks = x.reshape(batch, channels, rows, blocksize, columns, blocksize)
    order = (0, 3, 5, 1, 2, 4) if _is_depth_first(mode) else (0, 1, 3, 5, 2, 4)
    return blocks.transpose(order).reshape(batch, channels * blocksize**2, rows, columns)


def _four(x: Tensor, blocksize: int) -> tuple[int, ...]:
    if x.ndim != 4:
        raise ValueError(f"the input has rank {x.ndim}, expected 4 (N, C, H, W)")
    if blocksize < 1:
        raise ValueError(f"blocksize {blocksize} is not positive")
    if not x.size:
        check_countable((*x.shape, blocksize, blocksize), x.dtype)
    return x.shape


def _is_depth_first(mode: str) -> bool:
    """DCR (depth-column-row): the block index leads the channel axis; CRD: the depth leads it."""
    if mode not in ("DCR", "CRD"):
        raise ValueError(f"mode {mode!r} is neither 'DCR' nor 'CRD'")
    return mode == "DCR"
