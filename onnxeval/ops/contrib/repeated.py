"""Operators of com.microsoft that the standard has, too: expressed through its kernels."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import BFLOAT16, Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import (
    ANY,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FLOATS_AND_DOUBLE,
    INT32,
    INT64,
    NUMBERS,
    microsoft_op,
)
from onnxeval.values import shape_text


@microsoft_op("Trilu", "TK", T=(*NUMBERS, BOOL), K=(INT64,))
def trilu(x: Tensor, k: Tensor | None, *, upper: int = 1) -> Tensor:
    """Trilu-14. Source: com.microsoft.Trilu-1."""
    result: Tensor = standard("tensor", "Trilu", 14)(x, k, upper=upper)
    return result


@microsoft_op("GridSample", "TT", T=(FLOAT16, FLOAT32, FLOAT64))
def grid_sample(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros"
) -> Tensor:
    """GridSample-16. Source: com.microsoft.GridSample-1."""
    result: Tensor = standard("tensor", "GridSample", 16)(
        x, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode
    )
    return result


@microsoft_op("ExpandDims", "TI", T=ANY, I=(INT32,))
def expand_dims(x: Tensor, axis: Tensor) -> Tensor:
    """``x`` with a new axis of size 1 at ``axis``, one number. Source: com.microsoft.ExpandDims-1."""
    if axis.size != 1:
        raise ValueError(f"axis has shape {shape_text(axis.shape)}, expected a single number")
    return np.expand_dims(x, normalise_axis(axis.item(), x.ndim + 1))


@microsoft_op("GatherND", "TI", T=ANY, I=(INT32, INT64))
def gather_nd(data: Tensor, indices: Tensor) -> Tensor:
    """GatherND-11. Source: com.microsoft.GatherND-1."""
    result: Tensor = standard("tensor", "GatherND", 13)(data, indices, batch_dims=0)
    return result


@microsoft_op("Range", "TTT", T=(FLOAT32, FLOAT64, np.dtype(np.int16), INT32, INT64))
def range_(start: Tensor, limit: Tensor, delta: Tensor | None, *, allocate: Allocate) -> Tensor:
    """Range-11 of numbers of rank 0, or 1 with one element; ``delta`` is 1 where it is absent.

    Source: com.microsoft.Range-1.
    """
    numbers = [start, limit, np.ones_like(start) if delta is None else delta]
    if any(number.shape not in ((), (1,)) for number in numbers):
        shapes = ", ".join(shape_text(number.shape) for number in numbers)
        raise ValueError(f"start, limit and delta have shapes {shapes}, expected single numbers")
    result: Tensor = standard("generator", "Range", 11)(*(number.reshape(()) for number in numbers), allocate=allocate)
    return result


@microsoft_op("Unique", "T", T=ANY)
def unique(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(the elements in the order in which they come first, where each of ``x`` is among them, how often each comes).

    Source: com.microsoft.Unique-1.
    """
    if x.ndim != 1:
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected [n]")
    elements, _, places, counts = standard("tensor", "Unique", 11)(x, axis=None, sorted=0, n_outputs=4)
    return elements, places, counts


@microsoft_op("Pad", "TPT", T=(FLOAT16, FLOAT32, FLOAT64), P=(INT64,))
def pad(data: Tensor, pads: Tensor, value: Tensor | None, *, mode: str = "constant", allocate: Allocate) -> Tensor:
    """Pad-13 with pads (2 * rank,) or (1, 2 * rank). Source: com.microsoft.Pad-1."""
    if pads.shape not in ((2 * data.ndim,), (1, 2 * data.ndim)):
        raise ValueError(f"pads have shape {shape_text(pads.shape)}, expected [{2 * data.ndim}]")
    fill = None if value is None else value.reshape(()) if value.size == 1 else value
    result: Tensor = standard("tensor", "Pad", 13)(data, pads.reshape(-1), fill, None, mode=mode, allocate=allocate)
    return result


@microsoft_op("TorchEmbedding", "TIIB", T=NUMBERS, I=(INT64,), B=(BOOL,))
def torch_embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: Tensor | None,  # noqa: ARG001  matters to training alone
    scale_grad_by_freq: Tensor | None,  # noqa: ARG001  as above
) -> Tensor:
    """The rows (M,) of ``weight`` (N, M) at ``indices``. Source: com.microsoft.TorchEmbedding-1."""
    if weight.ndim != 2:
        raise ValueError(f"the weight has shape {shape_text(weight.shape)}, expected [N, M]")
    if indices.size and (indices.min() < 0 or indices.max() >= len(weight)):
        raise ValueError(f"indices {indices.min()} to {indices.max()} leave the {len(weight)} rows")
    result: Tensor = weight[indices]
    return result


@microsoft_op("IsAllFinite", "T", T=FLOATS_AND_DOUBLE)
def is_all_finite(*xs: Tensor, isinf_only: int = 0, isnan_only: int = 0) -> Tensor:
    """Whether no element is infinite or no number; with a flag only the one or the other counts.

    Raises ValueError for both flags. Source: com.microsoft.IsAllFinite.
    """
    if isinf_only and isnan_only:
        raise ValueError("isinf_only and isnan_only exclude each other")
    bad = np.isinf if isinf_only else np.isnan if isnan_only else lambda x: ~np.isfinite(x)
    return np.asarray(not any(bad(x.astype(np.float32) if x.dtype == BFLOAT16 else x).any() for x in xs))


@microsoft_op("SampleOp", "T", T=(FLOAT16, FLOAT32, FLOAT64, INT32, INT64, np.dtype(np.uint32), np.dtype(np.uint64)))
def sample_op(x: Tensor) -> Tensor:
    """``x`` itself. Source: com.microsoft.SampleOp-1."""
    return x
