"""Attention in blocks: near the exact result for every layout, mask and window, as the readable kernels are."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops._attention import attend
from onnxeval.ops.nn.attention import attention, attention_without_padding

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 33, 64, 65, 130, 150, 300]
SIZES = [1, 2, 3, 8, 16, 17, 32, 50, 64]
LAYOUTS = ["plain", "time first", "turned", "sliced"]


def laid(x, layout):
    """An array (batch, heads, time, size) that lies otherwise in its memory."""
    if layout == "time first":
        return guarded(np.ascontiguousarray(x.transpose(0, 2, 1, 3))).transpose(0, 2, 1, 3)
    if layout == "turned":
        return guarded(np.ascontiguousarray(x.swapaxes(2, 3))).swapaxes(2, 3)
    if layout == "sliced":
        return np.concatenate([x, x], -1)[..., : x.shape[3]]
    return guarded(x)


def mask_for(data, rng, shape, dtype):
    own = tuple(size if data.draw(st.booleans()) else 1 for size in shape)[data.draw(st.integers(0, 3)) :]
    hidden = rng.random(own) < data.draw(st.sampled_from([0.0, 0.3, 0.95]))
    if dtype == np.bool_:
        return ~hidden
    low = data.draw(st.sampled_from([-np.inf, -1e4, -3.4e38]))
    return np.where(hidden, low, rng.standard_normal(own)).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_spelled_out_attention(tier, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from([3, 4, 4]))
    batch, heads = data.draw(st.sampled_from([(1, 1), (2, 3), (3, 1)]))
    queries, keys = (data.draw(st.sampled_from(LENGTHS)) for _ in range(2))
    size, value_size = (data.draw(st.sampled_from(SIZES)) for _ in range(2))
    q = laid(rng.standard_normal((batch, heads, queries, size)).astype(np.float32), data.draw(st.sampled_from(LAYOUTS)))
    k, v = (
        laid(rng.standard_normal((batch, heads, keys, n)).astype(np.float32), data.draw(st.sampled_from(LAYOUTS)))
        for n in (size, value_size)
    )
    mask = mask_for(data, rng, (batch, heads, queries, keys), np.float32) if data.draw(st.booleans()) else None
    if rank == 3:
        q, k, v = (x.reshape(-1, *x.shape[2:]) for x in (q, k, v))
        mask = None if mask is None or mask.ndim > 2 else mask
    attributes = {"scale": data.draw(st.sampled_from([1.0, 0.3])), "nan_to_zero": data.draw(st.booleans())}
    inputs = [q, k.swapaxes(-1, -2), v, mask]
    unguarded = [None if x is None else x.copy("K") for x in inputs]  # OpenBLAS on arm64 reads beside a turned matrix
    with np.errstate(all="ignore"):
        got = replacement(attend, [None] * 4, attributes)(*inputs, **attributes)
        wanted = attend(*unguarded, **attributes)
        exact = attend(*(None if x is None else x.astype(np.float64) for x in inputs), **attributes)
    assert got.shape == wanted.shape
    assert got.dtype == np.float32
    # What rounding the sums of products does to scores, it does to the weights of v
    rounded = np.finfo(np.float32).eps * attributes["scale"] * np.max(abs(q) @ abs(k).swapaxes(-1, -2), initial=0)
    least = max(2e-6, rounded * np.max(abs(v), initial=0))
    np.testing.assert_allclose(got, exact, rtol=1e-4, atol=max(2 * np.nanmax(abs(wanted - exact), initial=0), least))


@settings(max_examples=80, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("version", [23, 25])
def test_attention_of_grouped_heads(tier, version, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    batch, groups, group = (data.draw(st.sampled_from(sizes)) for sizes in ([1, 2, 3], [1, 2], [1, 2, 4]))
    heads = groups * group
    queries = data.draw(st.sampled_from(LENGTHS))
    keys = data.draw(st.sampled_from([queries, *LENGTHS]))
    size, value_size = (data.draw(st.sampled_from(SIZES)) for _ in range(2))
    q, k, v = (
        laid(rng.standard_normal((batch, *shape)).astype(np.float32), data.draw(st.sampled_from(LAYOUTS[:2])))
        for shape in ((heads, queries, size), (groups, keys, size), (groups, keys, value_size))
    )
    past, total, lengths = [None, None], keys, None
    match data.draw(st.sampled_from(["alone", "past", "lengths"])):
        case "past":
            before = data.draw(st.sampled_from([1, 7, 140]))
            past = [rng.standard_normal((batch, groups, before, n)).astype(np.float32) for n in (size, value_size)]
            total += before
        case "lengths" if version == 25:
            lengths = rng.integers(0, keys + 1 + data.draw(st.integers(0, 1)), batch)
    mask = None
    if data.draw(st.booleans()):
        mask = mask_for(data, rng, (batch, heads, queries, total), data.draw(st.sampled_from([np.float32, np.bool_])))
    n_outputs = data.draw(st.sampled_from([1, 3, 3]))
    attributes = {
        "is_causal": data.draw(st.integers(0, 1)),
        "kv_num_heads": None,
        "q_num_heads": None,
        "qk_matmul_output_mode": 0,
        "scale": data.draw(st.sampled_from([None, 0.5, -0.2])),
        "softcap": data.draw(st.sampled_from([0.0, 0.0, 2.5])),
        "softmax_precision": data.draw(st.sampled_from([None, 1])),
        "n_outputs": n_outputs,
    }
    if data.draw(st.booleans()):
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(batch, x.shape[2], -1) for x in (q, k, v))
        attributes |= {"kv_num_heads": groups, "q_num_heads": heads}
    readable, inputs = attention_without_padding, [q, k, v, mask, *past]
    if version == 25:
        readable, inputs = attention, [*inputs, lengths]
        window = [data.draw(st.sampled_from([-1, -1, 0, 3, 150])) for _ in range(2)]
        attributes |= {"left_window_size": window[0], "right_window_size": window[1]}
    kernel = replacement(readable, [None] * len(inputs), attributes)
    with np.errstate(all="ignore"):
        try:
            wanted = readable(*inputs, **attributes)
        except ValueError as error:
            with pytest.raises(ValueError, match=re.escape(str(error))):
                kernel(*inputs, **attributes)
            return
        got = kernel(*inputs, **attributes)
    assert len(got) == len(wanted) == n_outputs
    # Scores beside what a mask adds are rounded to its places: what that does to them, it does to the weights of v
    sizes = np.abs(0.0 if mask is None else mask).astype(float)
    added = sizes[sizes < 1e5].max(initial=0)
    least = max(5e-6, np.finfo(np.float32).eps * added * np.max(abs(v), initial=0))
    for one, other in zip(got, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=least)


def spoilt(data, rng, x):
    """Some elements of an array made infinite or no number, in its place."""
    if data.draw(st.booleans()):
        places = rng.integers(0, x.size, data.draw(st.sampled_from([1, 1, 3, x.size])))
        x.flat[places] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))


def assert_as_finite(got, wanted):
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_spelled_out_attention_of_what_is_not_finite(tier, data):
    """As by the operators: weights that are no numbers may become zeros, but zero times infinity is none."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    queries, keys = data.draw(st.sampled_from([1, 5, 17])), data.draw(st.sampled_from([1, 6, 140]))
    q, k, v = (rng.integers(-2, 3, (2, n, 8)).astype(np.float32) for n in (queries, keys, keys))
    mask = mask_for(data, rng, (queries, keys), np.float32) if data.draw(st.booleans()) else None
    if mask is not None and data.draw(st.booleans()):
        mask = np.broadcast_to(mask, (queries, keys)).copy()
        mask[0] = -np.inf
    for x in (q, k, v):
        spoilt(data, rng, x)
    guards = data.draw(st.booleans())
    with np.errstate(all="ignore"):
        scores = q @ k.swapaxes(-1, -2) * np.float32(0.5) + (0 if mask is None else mask)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        wanted = (np.where(np.isnan(weights), 0, weights) if guards else weights) @ v
        inputs, attributes = [q, k.swapaxes(-1, -2), v, mask], {"scale": 0.5, "nan_to_zero": guards}
        assert_as_finite(replacement(attend, [None] * 4, attributes)(*inputs, **attributes), wanted)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_attention_of_what_is_not_finite(tier, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    batch, group, queries, keys = (data.draw(st.sampled_from(n)) for n in ([1, 2], [1, 3], [1, 5, 17], [1, 6, 140]))
    q, k, v = (
        rng.integers(-2, 3, (batch, *shape)).astype(np.float32)
        for shape in ((2 * group, queries, 8), (2, keys, 8), (2, keys, 8))
    )
    for x in (q, k, v):
        spoilt(data, rng, x)
    mask, lengths = None, None
    if data.draw(st.booleans()):
        kind = data.draw(st.sampled_from([np.float32, np.bool_]))
        mask = np.atleast_1d(mask_for(data, rng, (batch, 2 * group, queries, keys), kind))
    if data.draw(st.booleans()) and (mask is None or mask.shape[-1] == keys):
        lengths = rng.integers(0, keys + 1, batch)
    attributes = {"is_causal": data.draw(st.integers(0, 1)), "kv_num_heads": None, "q_num_heads": None}
    attributes |= {"qk_matmul_output_mode": 0, "scale": 0.25, "softcap": 0.0, "softmax_precision": None, "n_outputs": 1}
    attributes |= {f"{side}_window_size": data.draw(st.sampled_from([-1, -1, 0, 3])) for side in ("left", "right")}
    inputs = [q, k, v, mask, None, None, lengths]
    with np.errstate(all="ignore"):
        wanted = attention(*inputs, **attributes)[0]
        assert_as_finite(replacement(attention, [None] * 7, attributes)(*inputs, **attributes)[0], wanted)


def test_scores_and_their_rounding_are_for_the_readable_kernel(kernels):
    usual = {"softmax_precision": None, "n_outputs": 1}
    assert replacement(attention, [None] * 7, usual) is not None
    assert replacement(attention, [None] * 7, usual | {"n_outputs": 4}) is None
    assert replacement(attention, [None] * 7, usual | {"softmax_precision": 10}) is None


def test_large_scores_and_weights_of_one_block_after_the_other(tier, rng):
    q, k, v = (rng.standard_normal((1, 2, n, 16)).astype(np.float32) * 30 for n in (50, 700, 700))
    for order in (slice(None), slice(None, None, -1)):
        by_score = np.argsort((q[0, 0, 0] * k[0, 0]).sum(-1))[order]  # each block has higher ones, or lower ones
        inputs = [q, k[:, :, by_score].swapaxes(2, 3), v[:, :, by_score]]
        exact = attend(*(x.astype(np.float64) for x in inputs), scale=1.0, nan_to_zero=False)
        got = replacement(attend, [None] * 3, {})(*inputs, scale=1.0, nan_to_zero=False)
        readable = attend(*inputs, scale=1.0, nan_to_zero=False)
        assert abs(got - exact).max() <= 2 * abs(readable - exact).max()


def test_what_does_not_fit_is_refused(kernels):
    q, k = np.zeros((1, 4, 3, 8), np.float32), np.zeros((1, 3, 5, 8), np.float32)
    rest = (1.0, 0.0, 0, -1, -1, 0)
    with pytest.raises(ValueError, match="do not fit"):
        kernels.attend(q, k, k, None, None, np.zeros_like(q), *rest)
    with pytest.raises(ValueError, match="broadcast"):
        kernels.attend(q, q, q, np.zeros((4, 2), np.float32), None, np.zeros_like(q), *rest)
    with pytest.raises(TypeError, match="the mask"):
        kernels.attend(q, q, q, np.zeros((3, 3)), None, np.zeros_like(q), *rest)
    with pytest.raises(IndexError):
        kernels.attend(q, q, q, None, np.array([4]), np.zeros_like(q), *rest)
    with pytest.raises(ValueError, match="window"):
        kernels.attend(q, q, q, None, None, np.zeros_like(q), 1.0, 0.0, 0, 1 << 60, -1, 0)
