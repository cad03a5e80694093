"""Rotary embeddings of com.microsoft against complex numbers, and against onnxruntime."""

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(17)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


COS, SIN = normal(10, 4), normal(10, 4)
POSITIONS = np.array([[0, 1, 2], [3, 4, 9]], np.int64)


def turned(x, angles, interleaved):
    """(B, T, N, D) whose first features are multiplied by complex (B, T, width / 2)."""
    width = 2 * angles.shape[-1]
    first, second = slice(width // 2), slice(width // 2, width)
    if interleaved:
        first, second = slice(0, width, 2), slice(1, width, 2)
    result = x.astype(np.float64)
    product = (result[..., first] + 1j * result[..., second]) * angles[:, :, None]
    result[..., first], result[..., second] = product.real, product.imag
    return result


def rank_4(x, heads):
    return x.reshape(*x.shape[:2], heads, -1)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("width", [8, 4])
@pytest.mark.parametrize("positions", [POSITIONS, np.array([4], np.int64)], ids=["each", "from"])
@pytest.mark.parametrize("rank", [3, 4])
def test_rotary_embedding(interleaved, width, positions, rank) -> None:
    x, cos, sin = normal(2, 3, 16), COS[:, : width // 2], SIN[:, : width // 2]
    rows = positions if positions.ndim == 2 else np.broadcast_to(4 + np.arange(3), (2, 3))
    expected = turned(rank_4(x, 2), (cos + 1j * sin)[rows], interleaved)
    how = {"interleaved": interleaved} | ({"rotary_embedding_dim": 4, "num_heads": 2} if width == 4 else {})
    given = x if rank == 3 else np.ascontiguousarray(rank_4(x, 2).transpose(0, 2, 1, 3))
    expected = expected.reshape(2, 3, 16) if rank == 3 else expected.transpose(0, 2, 1, 3)
    inputs = [given, positions, cos, sin]
    np.testing.assert_allclose(ours("RotaryEmbedding", inputs, **how), expected, rtol=1e-5, atol=1e-5)
    assert_agree("RotaryEmbedding", inputs, **how)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_rounds_once(dtype) -> None:
    x, cos, sin = (v.astype(dtype) for v in (normal(2, 3, 16), COS, SIN))
    y = ours("RotaryEmbedding", [x, POSITIONS, cos, sin])
    angles = (cos.astype(np.float64) + 1j * sin.astype(np.float64))[POSITIONS]
    exact = turned(rank_4(x.astype(np.float64), 2), angles, 0).reshape(2, 3, 16)
    eps = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(y.astype(np.float64), exact, rtol=eps, atol=1e-4)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("section", [[2, 1, 1], [1, 2, 1], [4, 0, 0], [0, 2, 2], [0, 0, 4]])
def test_three_positions_a_token(layout, section) -> None:
    x, positions = normal(2, 3, 16), RNG.integers(0, 10, (3, 2, 3))
    if layout == 0:
        streams = [0] * section[0] + [1] * section[1] + [2] * section[2]
    else:
        streams = [0] * 4
        for stream in (1, 2):
            for place in range(stream, min(4, section[stream] * 3), 3):
                streams[place] = stream
    angles = np.stack([(COS + 1j * SIN)[positions[s]][..., i] for i, s in enumerate(streams)], axis=-1)
    expected = turned(rank_4(x, 2), angles, 0).reshape(2, 3, 16)
    how = {"mrope_section": section, "mrope_layout": layout, "num_heads": 2}
    given = ours("MRotaryEmbedding", [x, positions, COS, SIN], **how)
    np.testing.assert_allclose(given, expected, rtol=1e-5, atol=1e-5)
    assert_agree("MRotaryEmbedding", [x, positions, COS, SIN], **how)


def test_gemma_rotary_embedding() -> None:
    emb = normal(2, 3, 8)
    states = [normal(2, 4, 3, 8).astype(np.float16) for _ in range(4)]
    cos, sin = (f(emb).astype(np.float16).astype(np.float64)[:, None] for f in (np.cos, np.sin))
    q, q_rot, k, k_rot = (x.astype(np.float64) for x in states)
    for given, exact in zip(
        ours("GemmaRotaryEmbedding", [emb, *states], outputs=2),
        (q * cos + q_rot * sin, k * cos + k_rot * sin),
        strict=True,
    ):
        assert given.dtype == np.float16
        np.testing.assert_allclose(given, exact, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ([normal(2, 3, 16), POSITIONS + 5, COS, SIN], {}, "position 14 is outside the 10 rows"),
        ([normal(2, 3, 16), POSITIONS - 1, COS, SIN], {}, "position -1 is outside the 10 rows"),
        ([normal(2, 3, 16), POSITIONS, COS, SIN], {"num_heads": 4}, "heads of size 4 would turn whole"),
        ([normal(2, 3, 16), POSITIONS, COS, SIN], {"rotary_embedding_dim": 4, "num_heads": 2}, "embedding_dim is 4"),
        ([normal(2, 3, 16), POSITIONS, COS, SIN], {"rotary_embedding_dim": 8}, "needs num_heads"),
        ([normal(2, 3, 16), POSITIONS, COS, SIN], {"scale": 2.0}, "scale 2.0 has no meaning"),
        ([normal(2, 16), POSITIONS, COS, SIN], {}, "the input has rank 2"),
    ],
)
def test_faults(inputs, attributes, message) -> None:
    with pytest.raises(NodeError, match=message):
        ours("RotaryEmbedding", inputs, **attributes)


def test_faults_of_three_positions() -> None:
    x, positions = normal(2, 3, 16), RNG.integers(0, 10, (3, 2, 3))
    for inputs, attributes, message in (
        ([x, positions[:2], COS, SIN], {"mrope_section": [2, 1, 1]}, r"position_ids have shape \[2, 2, 3\]"),
        ([x, positions + 5, COS, SIN], {"mrope_section": [2, 1, 1]}, "leave the 10 rows"),
        ([x, positions, COS, SIN], {"mrope_section": [2, 1, 2]}, "add up to 4 angles"),
        ([x, positions, COS, SIN], {"mrope_section": [2, 1, 1], "mrope_layout": 2}, "mrope_layout 2"),
    ):
        with pytest.raises(NodeError, match=message):
            ours("MRotaryEmbedding", inputs, **attributes)
