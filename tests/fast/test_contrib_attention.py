"""onnxruntime's attention operators: at one with the readable kernels, in every form of their inputs."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.contrib.attention import attention
from onnxeval.ops.contrib.group_query_attention import group_query_attention
from onnxeval.ops.contrib.multi_head_attention import multi_head_attention
from onnxeval.replay import _is_all

TYPES = [np.float32, np.float32, np.float16, ml_dtypes.bfloat16]


def chooser(data):
    return lambda *choices: data.draw(st.sampled_from(choices))


def normals(rng, dtype):
    return lambda *shape: rng.standard_normal(shape).astype(dtype)


def assert_alike(readable, inputs, attributes, fixed=()):
    kernel = replacement(readable, [x if place in fixed else None for place, x in enumerate(inputs)], attributes)
    assert kernel is not None
    for _ in range(3):  # constant weights are packed when they are met again
        wanted, got = (each(*inputs, **attributes) for each in (readable, kernel))
    assert len(got) == len(wanted)
    spacing = float(ml_dtypes.finfo(wanted[0].dtype).eps)
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == other.dtype
        one, other = (x.astype(np.float64) for x in (one, other))
        np.testing.assert_allclose(one, other, rtol=max(1e-4, 2 * spacing), atol=max(5e-6, spacing / 8))


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_multi_head_attention(tier, data):
    chosen = chooser(data)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = chosen(*TYPES)
    batch, heads, size, value_size = chosen(1, 2), chosen(1, 3), chosen(4, 16, 17), chosen(4, 16)
    queries, keys, n_past = chosen(1, 5, 40), chosen(1, 9, 150), chosen(0, 0, 6)
    form = chosen("separate", "separate", "whole heads", "keys packed", "all packed")
    if form in ("keys packed", "all packed"):
        value_size = size
    keys = queries if form == "all packed" else keys
    normal = normals(rng, dtype)
    q, k, v = {
        "separate": lambda: (
            normal(batch, queries, heads * size),
            normal(batch, keys, heads * size),
            normal(batch, keys, heads * value_size),
        ),
        "whole heads": lambda: (
            normal(batch, queries, heads * size),
            normal(batch, heads, keys, size),
            normal(batch, heads, keys, value_size),
        ),
        "keys packed": lambda: (normal(batch, queries, heads * size), normal(batch, keys, heads, 2, size), None),
        "all packed": lambda: (normal(batch, queries, heads, 3, size), None, None),
    }[form]()
    bias = normal(heads * (2 * size + value_size)) if chosen(False, True) else None
    past = [normal(batch, heads, n_past, n) for n in (size, value_size)] if n_past else [None, None]
    total = n_past + keys
    mask = {
        "none": lambda: None,
        "lengths": lambda: rng.integers(1, total + 1, batch).astype(np.int32),
        "keys": lambda: (rng.random((batch, total)) < 0.7).astype(np.int32),
        "queries and keys": lambda: (rng.random((batch, queries, total)) < 0.7).astype(np.int32),
    }[chosen("none", "none", "lengths", "keys", "queries and keys")]()
    added = normal(chosen(1, batch), chosen(1, heads), queries, total) if chosen(False, True) else None
    attributes = {"num_heads": heads, "unidirectional": chosen(0, 1), "scale": chosen(0.0, 0.3)}
    attributes["n_outputs"] = 3 if n_past else chosen(1, 3)
    assert_alike(multi_head_attention, [q, k, v, bias, mask, added, *past, None, None], attributes)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_group_query_attention(tier, data):
    chosen = chooser(data)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = chosen(*TYPES)
    groups, group, size = chosen(1, 2), chosen(1, 3), chosen(8, 16)
    batch, n_past = chosen((1, 0), (3, 0), (3, 6), (1, 6), (1, 130))
    queries = 1 if batch > 1 and n_past else chosen(1, 5, 40)
    heads, total = groups * group, n_past + queries
    normal = normals(rng, dtype)
    q, k, v = (normal(batch, queries, n * size) for n in (heads, groups, groups))
    rows = n_past + chosen(0, queries, queries + 4)  # from the second on a buffer that there is room in
    past = [normal(batch, groups, rows, size) for _ in range(2)] if n_past else [None, None]
    ends = rng.integers(1, total + 1, batch) if batch > 1 else np.array([total])
    lengths = [(ends - 1).astype(np.int32), np.array(total, np.int32)]
    rotations = [normal(total, size // 2) for _ in range(2)] if chosen(False, True) else [None, None]
    added = normal(1, chosen(1, heads), queries, total) if chosen(False, True) else None
    attributes = {"num_heads": heads, "kv_num_heads": groups, "do_rotary": int(rotations[0] is not None)}
    attributes |= {"scale": chosen(0.0, 0.3), "softcap": chosen(0.0, 2.5), "local_window_size": chosen(-1, -1, 3)}
    inputs = [q, k, v, *past, *lengths, *rotations, None, added, *[None] * 6]
    assert_alike(group_query_attention, inputs, attributes | {"allocate": np.empty})


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_attention_over_a_plain_cache_is_one_call(tier, data):
    """Between pages that cannot be read; with what is no number, too."""
    chosen = chooser(data)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    groups, group, size = chosen(1, 2), chosen(1, 3), chosen(1, 6, 17, 64)
    batch, n_past = chosen((1, 0), (3, 0), (3, 6), (1, 6), (1, 130), (2, 129))
    queries = 1 if batch > 1 and n_past else chosen(1, 2, 5, 40)
    heads, total = groups * group, n_past + queries
    at_end = chosen(False, True)

    def normal(*shape):
        values = rng.standard_normal(shape).astype(np.float32)
        return guarded(values, at_end=at_end)

    q, k, v = (normal(batch, queries, n * size) for n in (heads, groups, groups))
    if chosen(False, True):
        q, k, v = normal(batch, queries, (heads + 2 * groups) * size), None, None
    rows = n_past + chosen(0, queries, queries + 4)
    past = [normal(batch, groups, rows, size) for _ in range(2)] if n_past else [None, None]
    for x in (q, k, v, *past):
        if x is not None and chosen(False, False, False, True):
            x.flat[rng.integers(0, x.size, 2)] = chosen(np.nan, np.inf, -np.inf)
    ends = rng.integers(1, total + 1, batch) if batch > 1 else np.array([chosen(total, max(1, total - 1))])
    last = guarded((ends - 1).astype(np.int32).reshape(chosen((batch,), (batch, 1))))
    pairs = chosen(0, size // 2, max(size // 2 - 1, 1)) if size > 1 else 0
    angles = [normal(total + 3, pairs) for _ in range(2)] if pairs else [None, None]
    positions = rng.integers(0, 4, (batch, queries)) if chosen(False, True) else None
    bias = normal(chosen(1, batch), chosen(1, heads), queries, total) if chosen(False, False, True) else None
    window = chosen(-1, -1, 1, 3)
    attributes = {"num_heads": heads, "kv_num_heads": groups, "do_rotary": int(pairs > 0), "local_window_size": window}
    attributes |= {"causal": 1 if window > 0 else chosen(1, 1, 0), "rotary_interleaved": chosen(0, 1)}
    attributes |= {"scale": chosen(0.0, 0.3), "softcap": chosen(0.0, 0.0, 2.5)}
    inputs = [q, k, v, *past, last, np.array(chosen(total, [total]), np.int32), *angles, positions, bias, *[None] * 6]
    attributes["allocate"] = lambda shape, dtype: guarded(np.zeros(shape, dtype), at_end=at_end)
    assert_alike(group_query_attention, inputs, attributes)
    kernel = replacement(group_query_attention, [None] * 17, attributes)
    with tier.Recording() as recording:
        kernel(*inputs, **attributes)
    assert recording.is_whole
    assert len(recording.spans()) == 1


def test_lengths_and_positions_outside_are_refused(kernels, rng):
    q, k, v = (rng.standard_normal((1, 1, 8)).astype(np.float32) for _ in range(3))
    past, angles = np.ones((1, 1, 4, 8), np.float32), np.ones((5, 4), np.float32)
    attributes = {"num_heads": 1, "kv_num_heads": 1, "do_rotary": 1, "allocate": np.empty}
    kernel = replacement(group_query_attention, [None] * 17, attributes)

    def run(last, positions):
        lengths = np.array([last], np.int32), np.array(5, np.int32)
        return kernel(q, k, v, past, past, *lengths, angles, angles, np.array([[positions]]), *[None] * 7, **attributes)

    assert np.isfinite(run(4, 4)[0]).all()
    for last in (-1, 5, 2**31 - 1, -(2**31)):
        with pytest.raises(ValueError, match="seqlens_k"):
            run(last, 0)
    for position in (-1, 5, 2**63 - 1, -(2**63)):
        with pytest.raises(ValueError, match="outside the 5 rows"):
            run(4, position)


def test_values_that_are_no_numbers_reach_queries_before_them(tier, rng):
    """As in the readable kernel: no weight at all, times NaN."""
    q, k, v = (rng.standard_normal((1, 5, 8)).astype(np.float32) for _ in range(3))
    v[0, 4, 1] = np.nan
    inputs = [q, k, v, None, None, np.array([4], np.int32), np.array(5, np.int32), *[None] * 10]
    attributes = {"num_heads": 2, "kv_num_heads": 2, "allocate": np.empty}
    for dtype in (np.float32, np.float16):
        typed = [x.astype(dtype) if x is not None and x.dtype == np.float32 else x for x in inputs]
        assert_alike(group_query_attention, typed, attributes)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_attention_of_one_input(tier, data):
    chosen = chooser(data)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = chosen(*TYPES)
    batch, heads, size, time = chosen(1, 2), chosen(1, 3), chosen(4, 16), chosen(1, 5, 40)
    n_past = chosen(0, 0, 6, 130)
    value_size = size if n_past else chosen(size, 12)
    width = heads * (2 * size + value_size)
    normal = normals(rng, dtype)
    x, weights = normal(batch, time, 20), (normal(20, width).astype(np.float32) / 4).astype(dtype)
    bias = normal(width) if chosen(False, True) else None
    total, attributes = n_past + time, {}
    room, filled = (time + 3, np.array([n_past], np.int32)) if n_past and chosen(False, True) else (0, None)
    past = normal(2, batch, heads, n_past + room, size) if n_past else None
    mask = {
        "none": lambda: None,
        "lengths": lambda: rng.integers(1, total + 1, batch).astype(np.int32),
        "ends and starts": lambda: np.repeat([total, 1], batch).astype(np.int32),
        "keys": lambda: (rng.random((batch, total)) < 0.7).astype(np.int32),
        "queries and keys": lambda: (rng.random((batch, time, total)) < 0.7).astype(np.int32),
        "longest": lambda: (rng.random((batch, 1, total + 2, total + 2)) < 0.7).astype(np.int32),
    }[chosen("none", "lengths", "ends and starts", "keys", "queries and keys", "longest")]()
    added = normal(chosen(1, batch), chosen(1, heads), time, total) if chosen(False, True) else None
    attributes |= {"num_heads": heads, "unidirectional": chosen(0, 1), "scale": chosen(0.0, 0.3)}
    attributes |= {"qkv_hidden_sizes": (heads * size, heads * size, heads * value_size), "do_rotary": chosen(0, 1)}
    attributes |= {"past_present_share_buffer": int(bool(room)), "n_outputs": 2 if value_size == size else 1}
    inputs = [x, weights, bias, mask, past, added, filled]
    assert_alike(attention, inputs, attributes, fixed=chosen((), (1,), (1, 2)))


PLAIN = [(form, past, mask) for form in ("separate", "with bias") for past in (0, 5) for mask in (False, True)]


@pytest.mark.parametrize(("form", "past", "mask"), PLAIN)
def test_plain_forms_are_compiled_alone(tier, rng, form, past, mask):
    """So that their calls can be performed again."""
    normal = normals(rng, np.float32)
    q, k, v = (guarded(normal(2, 3, 24)) for _ in range(3))
    bias = normal(72) if form == "with bias" else None
    hidden = (rng.random((2, 3 + past)) < 0.6).astype(np.int32) if mask else None
    before = [normal(2, 3, past, 8) for _ in range(2)] if past else [None, None]
    attributes = {"num_heads": 3, "n_outputs": 3}
    inputs = [q, k, v, bias, hidden, normal(1, 3, 3, 3 + past), *before, None, None]
    weights = normal(24, 72)
    ones = [q, weights, bias, hidden, normal(2, 2, 3, past, 8) if past else None, inputs[5], None]
    for readable, operands, fixed, how in (
        (multi_head_attention, inputs, (), attributes),
        (attention, ones, (1, 2), attributes | {"n_outputs": 2}),
    ):
        kernel = replacement(readable, [x if place in fixed else None for place, x in enumerate(operands)], how)
        for _ in range(3):  # weights are packed
            with tier.Recording() as first:
                one = kernel(*operands, **how)
        with tier.Recording() as second:
            two = kernel(*operands, **how)
        assert first.is_whole
        assert second.is_whole
        assert _is_all(first.spans(), second.spans(), one, two, operands)
        assert_alike(readable, operands, how, fixed)


def test_scores_and_sinks_are_for_the_readable_kernel(kernels):
    assert replacement(multi_head_attention, [None] * 10, {"num_heads": 2, "n_outputs": 4}) is None
    heads = {"num_heads": 2, "kv_num_heads": 1}
    assert replacement(group_query_attention, [None] * 17, heads | {"qk_output": 1}) is None
    assert replacement(group_query_attention, [None] * 17, heads | {"smooth_softmax": 1}) is None


def test_inputs_that_do_not_fit_are_refused_alike(kernels):
    q, mask = np.ones((1, 3, 8), np.float32), np.ones((1, 7), np.int32)
    attributes = {"num_heads": 2, "n_outputs": 1}
    kernel = replacement(multi_head_attention, [None] * 10, attributes)
    with pytest.raises(ValueError, match="the mask has shape"):
        kernel(q, q, q, None, mask, *[None] * 5, **attributes)
    with pytest.raises(TypeError, match="both have one type"):
        kernel(q, q, q.astype(np.float16), *[None] * 7, **attributes)
    weights = np.ones((8, 24), np.float32)
    kernel = replacement(attention, [None, weights], attributes)
    with pytest.raises(ValueError, match="the mask has shape"):
        kernel(q, weights, None, mask, *[None] * 3, **attributes)
    with pytest.raises(ValueError, match="the bias has shape"):
        kernel(q, weights, q[0, 0], *[None] * 4, **attributes)
    sizes = {"num_heads": 2, "n_outputs": 2, "qkv_hidden_sizes": (8, 8, 4)}
    with pytest.raises(ValueError, match="they make no present"):
        replacement(attention, [None] * 7, sizes)(q, weights[:, :20], None, *[None] * 4, **sizes)
