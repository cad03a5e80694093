from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.nn.rotary_embedding import rotary_embedding

RNG = np.random.default_rng(9)


def by_hand(x, cos, sin, interleaved, turning):
    """Each pair (a, b) of a token (batch, head, time) is turned: (a cos - b sin, a sin + b cos)."""
    result = x.astype(np.float64).copy()
    for b, h, t in np.ndindex(x.shape[:3]):
        for p in range(turning // 2):
            first, second = (2 * p, 2 * p + 1) if interleaved else (p, p + turning // 2)
            one, other = float(x[b, h, t, first]), float(x[b, h, t, second])
            c, s = float(cos[b, t, p]), float(sin[b, t, p])
            result[b, h, t, first] = one * c - other * s
            result[b, h, t, second] = one * s + other * c
    return result


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("dim", [0, 2, 4, 6])
@pytest.mark.parametrize("with_positions", [False, True])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_pairs_turn(interleaved, dim, with_positions, flat, dtype):
    x = RNG.normal(size=(2, 3, 4, 6)).astype(dtype)
    pairs = (dim or 6) // 2
    caches = RNG.normal(size=(2, 9, pairs)).astype(dtype)
    positions = RNG.integers(0, 9, (2, 4))
    tokens = [cache[positions] for cache in caches]
    given = x.transpose(0, 2, 1, 3).reshape(2, 4, 18) if flat else x
    got = rotary_embedding(
        given,
        *(caches if with_positions else tokens),
        positions if with_positions else None,
        interleaved=interleaved,
        num_heads=3 if flat else None,
        rotary_embedding_dim=dim,
    )
    assert (got.dtype, got.shape) == (given.dtype, given.shape)
    if flat:
        got = got.reshape(2, 4, 3, 6).transpose(0, 2, 1, 3)
    tolerance = ml_dtypes.finfo(dtype).eps
    np.testing.assert_allclose(
        got.astype(np.float64), by_hand(x, *tokens, interleaved, 2 * pairs), rtol=tolerance, atol=2e-6
    )


@pytest.mark.parametrize(
    ("x", "cache", "positions", "attributes", "message"),
    [
        ((2, 3), (2, 4, 3), None, {}, "rank 2"),
        ((2, 4, 18), (2, 4, 3), None, {}, "num_heads None does not divide"),
        ((2, 4, 18), (2, 4, 3), None, {"num_heads": 4}, "num_heads 4 does not divide the hidden size 18"),
        ((2, 3, 4, 5), (2, 4, 2), None, {}, "5 of 5 features cannot turn"),
        ((2, 3, 4, 6), (2, 4, 4), None, {"rotary_embedding_dim": 8}, "8 of 6 features"),
        ((2, 3, 4, 6), (2, 4, 2), None, {}, r"cos_cache has shape \[2, 4, 2\], expected \[2, 4, 3\] without"),
        ((2, 3, 4, 6), (9, 2), [[0] * 4] * 2, {}, r"cos_cache has shape \[9, 2\], expected \[9, 3\] with"),
        ((2, 3, 4, 6), (9, 3), [[0] * 3] * 2, {}, r"position_ids have shape \[2, 3\], expected \[2, 4\]"),
        ((2, 3, 4, 6), (9, 3), [[0, 1, 2, 9]] * 2, {}, "position 9 is outside the 9 rows"),
        ((2, 3, 4, 6), (9, 3), [[0, 1, 2, -1]] * 2, {}, "position -1 is outside"),
    ],
)
def test_refusals(x, cache, positions, attributes, message):
    given = {"interleaved": 0, "num_heads": None, "rotary_embedding_dim": 0} | attributes
    caches = np.ones(cache, np.float32), np.ones(cache, np.float32)
    with pytest.raises(ValueError, match=message):
        rotary_embedding(np.ones(x, np.float32), *caches, None if positions is None else np.array(positions), **given)
