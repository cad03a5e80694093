"""RotaryEmbedding: rotate pairs of a head's features by the angles of a token's position."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op


@op("RotaryEmbedding", versions=(23,))
@in_float32
def rotary_embedding(
    x: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    position_ids: Tensor | None,
    *,
    interleaved: int,
    num_heads: int | None,
    rotary_embedding_dim: int,
) -> Tensor:
    """(batch, heads, time, head size) or (batch, time, heads * head size), its leading features rotated.

    ``rotary_embedding_dim`` features turn, all of them where it is 0: pairs of neighbours where ``interleaved``, else
    one of each half. The caches are (positions, dim / 2) where ``position_ids`` (batch, time) look them up, else
    (batch, time, dim / 2). Raises ValueError for shapes that do not fit and for positions outside the caches.
    Source: RotaryEmbedding-23.
    """
    heads = _heads_last_but_one(x, num_heads)
    batch, time, _, size = heads.shape
    turning = rotary_embedding_dim or size
    if turning % 2 or not 0 <= turning <= size:
        raise ValueError(f"{turning} of {size} features cannot turn in pairs")
    cos, sin = (
        _angles(cache, name, position_ids, (batch, time, turning // 2))[:, :, None]
        for name, cache in (("cos_cache", cos_cache), ("sin_cache", sin_cache))
    )
    first, second = (slice(0, turning, 2), slice(1, turning, 2)) if interleaved else _halves(turning)
    one, other = heads[..., first], heads[..., second]
    result = heads.copy()
    result[..., first] = cos * one - sin * other
    result[..., second] = sin * one + cos * other
    return result.transpose(0, 2, 1, 3) if x.ndim == 4 else result.reshape(x.shape)


def _heads_last_but_one(x: Tensor, num_heads: int | None) -> Tensor:
    """(batch, time, heads, head size)."""
    if x.ndim == 4:
        if num_heads not in (None, 0, x.shape[1]):
            raise ValueError(f"num_heads is {num_heads}, an input of rank 4 has {x.shape[1]} heads")
        return x.transpose(0, 2, 1, 3)
    if x.ndim != 3:
        raise ValueError(f"the input has rank {x.ndim}, expected 3 or 4")
    batch, time, hidden = x.shape
    if not num_heads or num_heads < 0 or hidden % num_heads:
        raise ValueError(f"num_heads {num_heads} does not divide the hidden size {hidden} of an input of rank 3")
    return x.reshape(batch, time, num_heads, hidden // num_heads)


def _angles(cache: Tensor, name: str, position_ids: Tensor | None, shape: tuple[int, int, int]) -> Tensor:
    """The sines or cosines of each token, of ``shape`` (batch, time, pairs)."""
    if position_ids is None:
        expected: tuple[int, ...] = shape
    else:
        expected = (*cache.shape[:1], shape[2])
    if cache.shape != expected or (position_ids is not None and cache.ndim != 2):
        kind = "without position_ids" if position_ids is None else "with position_ids"
        raise ValueError(f"{name} has shape {list(cache.shape)}, expected {list(expected)} {kind}")
    if position_ids is None:
        return cache
    if position_ids.shape != shape[:2]:
        raise ValueError(f"position_ids have shape {list(position_ids.shape)}, expected {list(shape[:2])}")
    outside = (position_ids < 0) | (position_ids >= len(cache))
    if np.any(outside):
        raise ValueError(f"position {position_ids[outside][0]} is outside the {len(cache)} rows of {name}")
    looked_up: Tensor = cache[position_ids]
    return looked_up


def _halves(size: int) -> tuple[slice, slice]:
    return slice(0, size // 2), slice(size // 2, size)
