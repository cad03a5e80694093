"""Rotary embeddings: at one with the readable kernels."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.contrib.rotary_embedding import rotary_embedding as onnxruntimes
from onnxeval.ops.nn.rotary_embedding import rotary_embedding

TYPES = [np.float32, np.float32, np.float16, ml_dtypes.bfloat16]


def drawn(data):
    """(x, caches, positions, attributes that both operators have) of a drawn layout."""

    def chosen(*choices):
        return data.draw(st.sampled_from(choices))

    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype, at_end = chosen(*TYPES), chosen(False, True)
    batch, heads, time, pairs = chosen(1, 3), chosen(1, 2, 5), chosen(1, 7, 40), chosen(1, 2, 7, 16, 33)
    size = 2 * pairs + chosen(0, 0, 1, 6)
    width, rows = 2 * pairs, time + 3

    def normal(*shape):
        return guarded(rng.standard_normal(shape).astype(dtype), at_end=at_end)

    x = normal(batch, heads, time, size) if chosen(False, True) else normal(batch, time, heads * size)
    if chosen(*[False] * 7, True):
        x.flat[rng.integers(0, x.size, 2)] = chosen(np.nan, np.inf)
    caches = [normal(rows, pairs) for _ in range(2)]
    positions = guarded(rng.integers(0, rows, (batch, time)), at_end=at_end)
    is_whole = size == width
    attributes = {"interleaved": chosen(0, 1), "num_heads": heads}
    attributes["rotary_embedding_dim"] = chosen(0, width) if is_whole else width
    return x, caches, positions, attributes


def assert_alike(tier, readable, inputs, attributes):
    kernel = replacement(readable, [None] * 4, attributes)
    with tier.Recording() as recording:
        got = kernel(*inputs, **attributes)
    wanted = readable(*inputs, **attributes)
    assert got.dtype == wanted.dtype
    assert recording.is_whole
    assert inputs[0].dtype != np.float32 or len(recording.spans()) == 1
    spacing = float(ml_dtypes.finfo(wanted.dtype).eps)
    one, other = got.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_allclose(one, other, rtol=2 * spacing, atol=8 * spacing)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rotary_embedding(tier, data):
    x, caches, positions, attributes = drawn(data)
    if data.draw(st.booleans()):
        caches, positions = [guarded(cache[positions]) for cache in caches], None
    if x.ndim == 4:
        attributes["num_heads"] = data.draw(st.sampled_from([None, 0, x.shape[1]]))
    assert_alike(tier, rotary_embedding, [x, *caches, positions], attributes)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rotary_embedding_of_onnxruntime(tier, data):
    x, caches, positions, attributes = drawn(data)
    if data.draw(st.booleans()):
        positions = guarded(positions.min(keepdims=True)[0] * 0 + 3)
    if not attributes["rotary_embedding_dim"] and data.draw(st.booleans()):
        del attributes["num_heads"]
    assert_alike(tier, onnxruntimes, [x, positions, *caches], attributes)


def test_strides_of_any_kind(tier, rng):
    x = rng.standard_normal((2, 5, 3, 8)).astype(np.float32).transpose(0, 2, 1, 3)
    caches = [rng.standard_normal((8, 9)).astype(np.float32).T[:8, ::2] for _ in range(2)]
    positions = rng.integers(0, 8, (5, 2)).T
    attributes = {"interleaved": 0, "num_heads": None, "rotary_embedding_dim": 0}
    kernel = replacement(rotary_embedding, [None] * 4, attributes)
    wanted = rotary_embedding(x, *caches, positions, **attributes)
    np.testing.assert_allclose(kernel(x, *caches, positions, **attributes), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("position", [-1, 6, 2**63 - 1, -(2**63)])
def test_positions_outside_are_refused(kernels, position):
    x, cache = np.ones((1, 1, 8), np.float32), np.ones((6, 4), np.float32)
    attributes = {"interleaved": 0, "num_heads": 1, "rotary_embedding_dim": 0}
    kernel = replacement(rotary_embedding, [None] * 4, attributes)
    with pytest.raises(ValueError, match="outside the 6 rows"):
        kernel(x, cache, cache, np.array([[position]]), **attributes)
    kernel = replacement(onnxruntimes, [None] * 4, {})
    with pytest.raises(ValueError, match="outside the 6 rows"):
        kernel(x, np.array([position]), cache, cache)


def test_what_does_not_fit_is_refused_by_the_compiled_function_itself(kernels):
    x, angles, positions = np.ones((1, 2, 3, 8), np.float32), np.ones((6, 4), np.float32), np.zeros((1, 3), np.int64)
    out = np.empty_like(x)
    kernels.rotate(x, angles, angles, positions, out, False)
    for changed in (
        (x[:, :, :2], angles, angles, positions, out),
        (x[0], angles, angles, positions, out),
        (x, angles[:, :3].copy(), angles, positions, out),
        (x, *[np.ones((6, 5), np.float32)] * 2, positions, out),
        (x, angles, angles, positions[:, :2], out),
        (x, angles, angles, None, out),
        (x, angles, angles, np.zeros(3, np.int64), out),
    ):
        with pytest.raises(ValueError, match=r"do not fit|no four axes"):
            kernels.rotate(*changed, False)
