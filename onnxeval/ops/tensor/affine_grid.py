"""AffineGrid: where an affine map takes the elements of a picture or a space."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("AffineGrid", versions=(20,))
@in_float32
def affine_grid(theta: Tensor, size: Tensor, *, align_corners: int, allocate: Allocate) -> Tensor:
    """(N, r, r + 1), size (N, C, D1, ..., Dr) -> (N, D1, ..., Dr, r) for r = 2 or 3.

    The elements of an axis lie evenly between -1 and 1, which are the centres of the first and the last one with
    ``align_corners`` (a single one lies at -1), else their outer edges. Coordinates go from the innermost axis
    outwards.

    Raises ValueError where the shapes do not fit together. Source: AffineGrid-20.
    """
    shape = tuple(size.ravel().tolist())
    rank = len(shape) - 2
    if size.ndim != 1 or rank not in (2, 3) or min(shape) < 0:
        raise ValueError(f"size {list(shape)} is not [N, C, H, W] or [N, C, D, H, W]")
    if theta.shape != (shape[0], rank, rank + 1):
        raise ValueError(f"theta has shape {shape_text(theta.shape)}, expected [{shape[0]}, {rank}, {rank + 1}]")
    grid = allocate((shape[0], *shape[2:], rank), theta.dtype)
    grid[...] = theta[:, :, rank].reshape(shape[0], *(1 for _ in range(rank)), rank)
    for axis, count in enumerate(shape[2:]):
        places = _places(count, bool(align_corners)).astype(theta.dtype)
        column = theta[:, :, rank - 1 - axis].reshape(shape[0], *(1 for _ in range(rank)), rank)
        grid += places.reshape(-1, *(1 for _ in range(rank - axis))) * column
    return grid


def _places(count: int, align_corners: bool) -> Tensor:
    """``count`` places from -1 to 1, in float64."""
    if align_corners:
        return np.arange(count) * (2 / max(count - 1, 1)) - 1
    return (2 * np.arange(count) + 1) / max(count, 1) - 1
