"""Rotary embeddings of onnxruntime: with positions from one on, with three positions a token, and Gemma's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, FLOATS, INT64, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("RotaryEmbedding", "TPTT", T=FLOATS, P=(INT64,))
def rotary_embedding(
    x: Tensor,
    position_ids: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,  # noqa: ARG001  the positions tell already where a sequence begins
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Tensor:
    """(batch, heads, time, head size) or (batch, time, heads * head size), rotated as by RotaryEmbedding-23.

    ``position_ids`` are (batch, time), or (1,): then the positions count from there. Twice the width of the caches
    turns in each head, and is its size unless ``num_heads`` tells another one for rank 3.

    Raises ValueError for shapes that do not fit, for positions outside the caches and for a ``scale`` other than 1,
    which the text does not explain and onnxruntime does not use. Source: com.microsoft.RotaryEmbedding-1.
    """
    _require_no_scale(scale)
    width = _width(cos_cache, rotary_embedding_dim)
    if x.ndim == 3 and not num_heads:
        if rotary_embedding_dim:
            raise ValueError(f"rotary_embedding_dim {rotary_embedding_dim} needs num_heads for an input of rank 3")
        num_heads = x.shape[2] // width
    _require_head_size(x, num_heads, width, rotary_embedding_dim)
    if position_ids.shape == (1,):
        time = x.shape[-2] if x.ndim == 4 else x.shape[1]
        position_ids = np.broadcast_to(position_ids[0] + np.arange(time), (x.shape[0], time))
    return _rotated(x, cos_cache, sin_cache, position_ids, interleaved, num_heads, width)


@microsoft_op("MRotaryEmbedding", "TPTT", T=FLOATS, P=(INT64,))
def multimodal_rotary_embedding(
    x: Tensor,
    position_ids: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,  # noqa: ARG001  as above
    mrope_layout: int = 0,
    mrope_section: Sequence[int],
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Tensor:
    """`rotary_embedding` where each angle goes by one of three positions (3, batch, time) of a token.

    ``mrope_section`` says how many angles go by each. With layout 0 they lie one section after the other; with layout 1
    they take turns, from the first angle on, and what is left over goes by the first position.

    Raises ValueError where the sections do not add up to the angles. Source: com.microsoft.MRotaryEmbedding-1.
    """
    _require_no_scale(scale)
    width = _width(cos_cache, rotary_embedding_dim)
    if x.ndim == 3 and not num_heads:
        num_heads = x.shape[2] // width
    _require_head_size(x, num_heads, width, rotary_embedding_dim)
    batch, time = (x.shape[0], x.shape[-2]) if x.ndim == 4 else x.shape[:2]
    if position_ids.shape != (3, batch, time):
        raise ValueError(f"position_ids have shape {shape_text(position_ids.shape)}, expected [3, {batch}, {time}]")
    if position_ids.size and not (position_ids.min() >= 0 and position_ids.max() < len(cos_cache)):
        raise ValueError(
            f"positions {position_ids.min()} to {position_ids.max()} leave the {len(cos_cache)} rows of the caches"
        )
    stream = _streams(mrope_section, mrope_layout, width // 2)
    rows = position_ids[stream].transpose(1, 2, 0)  # (batch, time, angles)
    cos, sin = (cache[rows, np.arange(width // 2)] for cache in (cos_cache, sin_cache))
    return _rotated(x, cos, sin, None, interleaved, num_heads, width)


@microsoft_op("GemmaRotaryEmbedding", "ETTTT", E=(FLOAT32,), T=(FLOAT16,))
def gemma_rotary_embedding(emb: Tensor, q: Tensor, q_rot: Tensor, k: Tensor, k_rot: Tensor) -> tuple[Tensor, Tensor]:
    """(q cos + q_rot sin, k cos + k_rot sin) of tensors (B, N, S, D) and angles (B, S, D).

    Sines and cosines are rounded to float16, the sums are computed in float32. Source:
    com.microsoft.GemmaRotaryEmbedding-1.
    """
    if emb.ndim != 3 or any(x.ndim != 4 or x.shape[::2] != (emb.shape[0], emb.shape[1]) for x in (q, q_rot, k, k_rot)):
        raise ValueError(f"angles {shape_text(emb.shape)} do not fit to states {shape_text(q.shape)}")
    cos, sin = (function(emb).astype(np.float16).astype(np.float32)[:, np.newaxis] for function in (np.cos, np.sin))
    return tuple((x * cos + x_rot * sin).astype(np.float16) for x, x_rot in ((q, q_rot), (k, k_rot)))  # type: ignore[return-value]


def _rotated(
    x: Tensor, cos: Tensor, sin: Tensor, position_ids: Tensor | None, interleaved: int, num_heads: int, width: int
) -> Tensor:
    result: Tensor = standard("nn", "RotaryEmbedding", 23)(
        x, cos, sin, position_ids, interleaved=interleaved, num_heads=num_heads or None, rotary_embedding_dim=width
    )
    return result


def _require_no_scale(scale: float) -> None:
    if scale not in (0.0, 1.0):
        raise ValueError(f"scale {scale} has no meaning that is written down, only 1 can be computed")


def _width(cos_cache: Tensor, rotary_embedding_dim: int) -> int:
    """How many features of a head turn."""
    width = 2 * cos_cache.shape[-1] if cos_cache.ndim == 2 else 0
    if not width or rotary_embedding_dim not in (0, width):
        raise ValueError(
            f"cos_cache has shape {shape_text(cos_cache.shape)}, expected [positions, angles]; "
            f"rotary_embedding_dim is {rotary_embedding_dim}"
        )
    return width


def _require_head_size(x: Tensor, num_heads: int, width: int, rotary_embedding_dim: int) -> None:
    if x.ndim not in (3, 4):
        raise ValueError(f"the input has rank {x.ndim}, expected 3 or 4")
    size = x.shape[3] if x.ndim == 4 else x.shape[2] / num_heads if num_heads > 0 else 0
    if size != width and not rotary_embedding_dim:
        raise ValueError(f"heads of size {size:g} would turn whole, the caches have angles for {width} features")


def _streams(section: Sequence[int], layout: int, angles: int) -> Tensor:
    """Which of the three positions each angle goes by."""
    if len(section) != 3 or min(section) < 0 or sum(section) != angles:
        raise ValueError(f"mrope_section {list(section)} is not three numbers that add up to {angles} angles")
    if layout == 0:
        return np.repeat(np.arange(3), section)
    if layout != 1:
        raise ValueError(f"mrope_layout {layout} is neither 0 nor 1")
    place = np.arange(angles)
    turn = place % 3
    return np.where(place < 3 * np.asarray(section)[turn], turn, 0)
