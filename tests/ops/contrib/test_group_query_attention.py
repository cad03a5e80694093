"""GroupQueryAttention against loops over entries, heads and queries in float64, and against onnxruntime."""

import math

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import ours, theirs

from onnxeval.errors import NodeError

RNG = np.random.default_rng(15)
BATCH, STEPS, HEADS, KV_HEADS, SIZE = 2, 4, 4, 2, 16
HIDDEN, KV_HIDDEN = HEADS * SIZE, KV_HEADS * SIZE
NAMES = (
    *("query", "key", "value", "past_key", "past_value", "seqlens_k", "total", "cos", "sin", "position_ids"),
    *("attention_bias", "head_sink", "k_scale", "v_scale", "q_norm", "k_norm", "query_seqlens"),
)
EVERY = {"num_heads": HEADS, "kv_num_heads": KV_HEADS}


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def whole(*numbers):
    return np.array(numbers, np.int32)


def call(steps=STEPS, batch=BATCH, past=None, lengths=(3, 3), total=4, **more):
    """Inputs by name: random queries, keys and values, a cache of so many rows, and what else is given."""
    given = {"query": normal(batch, steps, HIDDEN)}
    given |= {"key": normal(batch, steps, KV_HIDDEN), "value": normal(batch, steps, KV_HIDDEN)}
    if past is not None:
        given |= {name: normal(batch, KV_HEADS, past, SIZE) for name in ("past_key", "past_value")}
    return given | {"seqlens_k": whole(*lengths), "total": np.array(total, np.int32)} | more


def listed(given):
    return [given.get(name) for name in NAMES]


def heads_of(x, n):
    return x.astype(np.float64).reshape(*x.shape[:2], n, x.shape[2] // n).transpose(0, 2, 1, 3)


def rotate(vector, position, cos, sin, interleaved):
    width = cos.shape[1]
    result = vector.copy()
    for i in range(width):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + width)
        result[a] = cos[position, i] * vector[a] - sin[position, i] * vector[b]
        result[b] = sin[position, i] * vector[a] + cos[position, i] * vector[b]
    return result


def resident(tokens, capacity, window):
    """How many of the tokens a sliding cache keeps, by adding one after the other and evicting when it is full."""
    kept = 0
    for _ in range(tokens):
        if kept == capacity:
            kept = window - 1
        kept += 1
    return kept


def normed(vector, weight, epsilon):
    return vector / math.sqrt((vector * vector).mean() + epsilon) * weight


def by_hand(given, **attributes):
    """(Y, keys and values of each entry as lists of rows, scores, probabilities), written from the text."""
    get = {"causal": 1, "local_window_size": -1, "softcap": 0.0, "scale": 0.0, "rotary_interleaved": 0} | attributes
    if given.get("key") is None:
        query, key, value = np.split(given["query"], [HIDDEN, HIDDEN + KV_HIDDEN], axis=2)
    else:
        query, key, value = given["query"], given["key"], given["value"]
    q, k, v = heads_of(query, HEADS), heads_of(key, KV_HEADS), heads_of(value, KV_HEADS)
    batch, _, steps, _ = q.shape
    total = int(given["total"])
    y = np.zeros((batch, HEADS, steps, SIZE))
    scores, weights = np.zeros((2, batch, HEADS, steps, total))
    caches, counts = [], []
    for b in range(batch):
        after = int(given["seqlens_k"][b]) + 1
        count = min(steps, after) if given.get("query_seqlens") is None else int(given["query_seqlens"][b])
        counts.append(count)
        start = after - count
        first = start if k.shape[2] else after
        if attributes.get("sliding_window_cache"):
            hidden = first - resident(first, given["past_key"].shape[2], get["local_window_size"])
        else:
            hidden = 0
        rows = {name: [[None] * hidden for _ in range(KV_HEADS)] for name in "kv"}
        for h in range(KV_HEADS):
            for name, past in (("k", "past_key"), ("v", "past_value")):
                rows[name][h] += [given[past][b, h, r].astype(np.float64) for r in range(first - hidden)]

        def turned(vector, step):
            position = start + step  # noqa: B023  used at once
            if given.get("position_ids") is not None:
                prompt = given.get("query_seqlens") is None and steps == total
                position = given["position_ids"][0, 0] + step if prompt else given["position_ids"][b, step]  # noqa: B023
            return rotate(vector, position, given["cos"], given["sin"], get["rotary_interleaved"])

        for s in range(count if k.shape[2] else 0):
            for h in range(KV_HEADS):
                row = k[b, h, s]
                if given.get("k_norm") is not None:
                    row = normed(row, given["k_norm"], 1e-6)
                rows["k"][h].append(turned(row, s) if attributes.get("do_rotary") else row)
                rows["v"][h].append(v[b, h, s])
        for n in range(HEADS):
            h = n // (HEADS // KV_HEADS)
            for s in range(count):
                vector = q[b, n, s]
                if given.get("q_norm") is not None:
                    vector = normed(vector, given["q_norm"], 1e-6)
                if attributes.get("do_rotary"):
                    vector = turned(vector, s)
                here = start + s
                seen = range(after if not get["causal"] else here + 1)
                if get["local_window_size"] > 0:
                    seen = range(max(0, here + 1 - get["local_window_size"]), here + 1)
                row = []
                for j in seen:
                    score = vector @ rows["k"][h][j] * (get["scale"] or 1 / math.sqrt(SIZE))
                    if get["softcap"]:
                        score = get["softcap"] * math.tanh(score / get["softcap"])
                    if (bias := given.get("attention_bias")) is not None:
                        score += bias[b % bias.shape[0], n % bias.shape[1], s, j]
                    row.append(score)
                sink = math.exp(0) if attributes.get("smooth_softmax") == 1 else 0
                if given.get("head_sink") is not None:
                    sink = math.exp(given["head_sink"][n])
                powers = np.exp(row)
                scores[b, n, s, list(seen)] = row
                weights[b, n, s, list(seen)] = powers / (powers.sum() + sink)
                y[b, n, s] = sum(weights[b, n, s, j] * rows["v"][h][j] for j in seen)
        caches.append(rows)
    return y.transpose(0, 2, 1, 3).reshape(batch, steps, HIDDEN), caches, scores, weights, counts


def assert_right(results, given, **attributes):
    """The results against the loops; padding and rows of the caches behind the tokens are nobody's business."""
    y, keys, values, *stage = results
    expected, caches, scores, weights, counts = by_hand(given, **attributes)
    for b, count in enumerate(counts):
        np.testing.assert_allclose(y[b, :count], expected[b, :count], rtol=1e-4, atol=1e-5)
        for h in range(KV_HEADS):
            for cache, name in ((keys, "k"), (values, "v")):
                rows = [row for row in caches[b][name][h] if row is not None]
                if attributes.get("sliding_window_cache"):
                    after = int(given["seqlens_k"][b]) + 1
                    rows = rows[-resident(after, cache.shape[2], attributes["local_window_size"]) :]
                np.testing.assert_allclose(cache[b, h, : len(rows)], rows, rtol=1e-5, atol=1e-5)
        if stage:
            want = scores if attributes["qk_output"] == 1 else weights
            np.testing.assert_allclose(stage[0][b, :, :count], want[b, :, :count], rtol=1e-4, atol=1e-5)


def check(given, *, with_onnxruntime=True, **attributes):
    outputs = 4 if attributes.get("qk_output") else 3
    how = EVERY | attributes
    assert_right(ours("GroupQueryAttention", listed(given), outputs=outputs, **how), given, **attributes)
    return theirs("GroupQueryAttention", listed(given), outputs=outputs, **how) if with_onnxruntime else None


MODES = {
    "plain": {},
    "scale": {"scale": 0.3},
    "softcap": {"softcap": 1.5},
    "window": {"local_window_size": 2},
    "smooth": {"smooth_softmax": 1},
    "both ways": {"causal": 0},
    "scores": {"qk_output": 1, "softcap": 1.0},
    "weights": {"qk_output": 2, "local_window_size": 2},
}


def calls(mode):
    """One call of each kind there is, with what goes with it."""
    cos, sin = normal(20, 8), normal(20, 8)
    turning = {"cos": cos, "sin": sin}
    places = np.array([[3, 7, 1, 9], [5, 2, 8, 3]], np.int64)
    yield "prompt", call(), {}
    yield "bias", call(attention_bias=normal(1, HEADS, STEPS, STEPS), head_sink=normal(HEADS)), {}
    packed = call()
    packed["query"] = np.concatenate([packed.pop("query"), packed.pop("key"), packed.pop("value")], axis=2)
    yield "packed", packed | turning, {"do_rotary": 1}
    yield "padded prompt", call(lengths=(1, 3), **turning), {"do_rotary": 1}
    yield "interleaved", call(position_ids=places, **turning), {"do_rotary": 1, "rotary_interleaved": 1}
    yield "prompt into a buffer", call(past=12), {}
    yield "one token", call(1, past=6, lengths=(6, 6), total=7, **turning), {"do_rotary": 1}
    uneven = call(1, past=6, lengths=(6, 4), total=7, position_ids=places[:, :1], **turning)
    yield "one token, uneven", uneven | {"attention_bias": normal(BATCH, 1, 1, 7)}, {"do_rotary": 1}
    yield "one token into a buffer", call(1, past=12, lengths=(6, 4), total=7), {}
    yield "a chunk", call(batch=1, past=6, lengths=(9,), total=10, **turning), {"do_rotary": 1}
    buffered = call(batch=1, past=12, lengths=(9,), total=10, position_ids=places[:1], **turning)
    yield "a chunk into a buffer", buffered, {"do_rotary": 1}
    shared = call(3, batch=1, past=6, lengths=(5,), total=6, **turning)
    nothing = normal(1, 0, KV_HIDDEN)
    yield "no new keys", shared | {"key": nothing, "value": nothing}, {"do_rotary": 1}
    padded = {"query_seqlens": whole(2, 3), **turning}
    if mode != "both ways":
        yield "padded chunks", call(past=12, lengths=(6, 7), total=12, **padded), {"do_rotary": 1}
        idle = {"query_seqlens": whole(1, 0), **turning}
        yield "an idle entry", call(past=12, lengths=(6, 7), total=12, **idle), {"do_rotary": 1}
        yield "padded chunks, growing", call(past=5, lengths=(5, 6), total=9, **padded), {"do_rotary": 1}


@pytest.mark.parametrize("mode", MODES)
def test_loops(mode) -> None:
    for _, given, attributes in calls(mode):
        check(given, with_onnxruntime=False, **MODES[mode], **attributes)


@pytest.mark.parametrize("mode", MODES)
def test_onnxruntime(mode) -> None:
    pytest.importorskip("onnxruntime")
    for _, given, attributes in calls(mode):
        results = check(given, **MODES[mode], **attributes)
        assert_right(results, given, **MODES[mode], **attributes)


@pytest.mark.parametrize(("window", "capacity"), [(3, 3), (3, 5), (2, 6)])
@pytest.mark.parametrize(
    ("steps", "lengths", "more"),
    [
        (1, (0, 0), {}),
        (4, (3, 3), {}),
        (1, (6, 4), {}),
        (1, (9, 2), {}),
        (4, (9,), {}),
        (1, (18,), {}),
        (4, (7, 4), {"query_seqlens": whole(2, 3)}),
    ],
)
def test_sliding_cache(window, capacity, steps, lengths, more) -> None:
    total = max(lengths) + 1
    given = call(steps, len(lengths), capacity, lengths, total, cos=normal(20, 8), sin=normal(20, 8), **more)
    given["attention_bias"] = normal(1, HEADS, steps, total)
    attributes = {"local_window_size": window, "sliding_window_cache": 1, "do_rotary": 1}
    check(given, with_onnxruntime=False, **attributes)
    pytest.importorskip("onnxruntime")
    assert_right(check(given, **attributes), given, **attributes)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("kind", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize(("steps", "past", "lengths", "total"), [(4, 0, (3, 3), 4), (1, 6, (6, 6), 7)])
def test_caches_of_few_bits(bits, kind, steps, past, lengths, total) -> None:
    """Keys and values are what the cache holds of them."""
    low = -(2 ** (bits - 1))
    scales = [np.abs(normal(1, *((1, 1) if kind == "PER_TENSOR" else (KV_HEADS, 1)), 1)) + 0.3 for _ in range(2)]
    scales = [(np.full_like(s, s.flat[0]) if kind == "PER_TENSOR" else s) / 2 ** (bits - 4) for s in scales]
    if kind == "PER_CHANNEL":
        scales = [np.broadcast_to(s.reshape(1, KV_HEADS, 1, 1), (1, KV_HEADS, 1, SIZE)).copy() for s in scales]
    given = call(steps, past=past, lengths=lengths, total=total)

    def coded(x, scale):
        return np.clip(np.rint(x / scale), low, -low - 1)

    def written(codes):
        codes = codes.astype(np.int64)
        if bits == 8:
            return codes.astype(np.int8)
        codes += 8
        return (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)

    plain = dict(given)
    for name, past_name, scale in (("key", "past_key", scales[0]), ("value", "past_value", scales[1])):
        codes = RNG.integers(low, -low, (BATCH, KV_HEADS, past, SIZE))
        new = given[name].reshape(BATCH, steps, KV_HEADS, SIZE).transpose(0, 2, 1, 3)
        plain[past_name] = (codes * scale).astype(np.float32)
        rounded = (coded(new, scale) * scale).astype(np.float32)
        plain[name] = rounded.transpose(0, 2, 1, 3).reshape(given[name].shape)
        given[past_name] = written(codes)
        given["present_" + name] = written(np.concatenate([codes, coded(new, scale)], axis=2))
    given |= {"k_scale": scales[0].reshape(-1), "v_scale": scales[1].reshape(-1)}
    how = EVERY | {"k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": bits}
    y, keys, values = ours("GroupQueryAttention", listed(given), outputs=3, **how)
    np.testing.assert_array_equal(keys, given["present_key"])
    np.testing.assert_array_equal(values, given["present_value"])
    np.testing.assert_allclose(y, by_hand(plain)[0], rtol=1e-4, atol=1e-5)
    their = theirs("GroupQueryAttention", listed(given), outputs=3, **how)
    for our, other in zip((y, keys, values), their, strict=True):
        np.testing.assert_allclose(our, other, rtol=1e-4, atol=1e-5)


def test_a_cache_of_float8() -> None:
    scale = np.array([0.25], np.float32)
    given = call(k_scale=scale, v_scale=scale)
    empty = np.zeros((BATCH, KV_HEADS, 0, SIZE), ml_dtypes.float8_e4m3fn)
    how = EVERY | {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": 8}
    y, keys, _ = ours("GroupQueryAttention", listed(given | {"past_key": empty, "past_value": empty}), outputs=3, **how)
    rounded = {n: (given[n] / scale).astype(empty.dtype).astype(np.float32) * scale for n in ("key", "value")}
    expected = given["key"].reshape(BATCH, STEPS, KV_HEADS, SIZE).transpose(0, 2, 1, 3) / scale
    np.testing.assert_array_equal(keys.astype(np.float32), expected.astype(empty.dtype).astype(np.float32))
    np.testing.assert_allclose(y, by_hand(given | rounded)[0], rtol=1e-4, atol=1e-5)


def test_norms_of_heads_come_before_the_rotation() -> None:
    given = call(q_norm=normal(SIZE), k_norm=normal(SIZE), cos=normal(20, 8), sin=normal(20, 8))
    check(given, with_onnxruntime=False, do_rotary=1)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision(dtype) -> None:
    given = call(1, past=6, lengths=(6, 6), total=7, cos=normal(20, 8), sin=normal(20, 8))
    narrow = {n: x.astype(dtype) if x.dtype == np.float32 else x for n, x in given.items()}
    results = ours("GroupQueryAttention", listed(narrow), outputs=3, do_rotary=1, **EVERY)
    assert {x.dtype for x in results} == {np.dtype(dtype)}
    wide = {n: x.astype(np.float32) if x.dtype == dtype else x for n, x in narrow.items()}
    eps = float(ml_dtypes.finfo(dtype).eps)
    expected = by_hand(wide, do_rotary=1)[0]
    np.testing.assert_allclose(results[0].astype(np.float64), expected, rtol=4 * eps, atol=4 * eps)
    if dtype == np.float16:
        their = theirs("GroupQueryAttention", listed(narrow), outputs=3, do_rotary=1, **EVERY)
        for our, other in zip(results, their, strict=True):
            np.testing.assert_allclose(our, other, rtol=4 * eps, atol=4 * eps)


def test_what_a_buffer_holds_behind_the_tokens_does_not_matter() -> None:
    given = call(1, past=12, lengths=(6, 4), total=7)
    clean = ours("GroupQueryAttention", listed(given), outputs=3, **EVERY)
    for name in ("past_key", "past_value"):
        given[name] = given[name].copy()
        given[name][:, :, 8:] = np.nan
    for one, other in zip(clean, ours("GroupQueryAttention", listed(given), outputs=3, **EVERY), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("given", "attributes", "message"),
    [
        (call(lengths=(4, 3)), {}, r"seqlens_k \[4, 3\] leave \[0, 3\]"),
        (call(total=6), {}, "total_sequence_length 6 does not fit a cache of 0 and 4 new keys"),
        (call(past=6, lengths=(9, 9), total=10), {}, "4 queries after a past are for a batch of 1"),
        (call(1, past=6, lengths=(6, 6), total=9), {}, "total_sequence_length 9 does not fit a cache of 6"),
        (call(lengths=(3, 3, 3)), {}, r"seqlens_k has shape \[3\], expected \[2\]"),
        (call(), {"do_rotary": 1}, "do_rotary needs cos_cache and sin_cache"),
        (call(), {"local_window_size": 2, "causal": 0}, "local_window_size 2 is neither"),
        (call(), {"local_window_size": 2, "sliding_window_cache": 1}, "sliding_window_cache needs a past"),
        (call(1, past=2, lengths=(6, 6), total=7), {"local_window_size": 3, "sliding_window_cache": 1}, "window of 3"),
        (call(), {"kv_num_heads": 3}, "num_heads 4 is not a positive multiple of kv_num_heads 3"),
        (call(), {"qk_output": 3}, "qk_output 3 is none of 0, 1, 2"),
        (call(), {"k_quant_type": "NF4"}, "quantisation 'NF4' is none of"),
        (call(), {"k_quant_type": "PER_TENSOR"}, "needs a scale and kv_cache_bit_width 4 or 8"),
        (call(attention_bias=normal(1, 1, 4, 5)), {}, r"attention_bias has shape \[1, 1, 4, 5\]"),
        (call(head_sink=normal(3)), {}, r"head_sink has shape \[3\], expected \[4\]"),
        (call(past_key=normal(2, 2, 0, 16)), {}, "come together"),
        (call(past=3, lengths=(4, 4), total=4, query_seqlens=whole(5, 1)), {}, "query_seqlens .5, 1. leave"),
        (call(q_norm=normal(SIZE)), {}, "q_norm_weight and k_norm_weight come together"),
    ],
)
def test_faults(given, attributes, message) -> None:
    with pytest.raises(NodeError, match=message):
        ours("GroupQueryAttention", listed(given), outputs=3, **(EVERY | attributes))
