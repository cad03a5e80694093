"""Plans for inputs that come again: operators of onnxruntime alone, and those of users."""

import numpy as np
import pytest
from onnx import numpy_helper, parser
from plan.test_adaptive import plan_for, same

import onnxeval
from onnxeval import adaptive
from onnxeval.registry import STANDARD, OpKey


def model(body: str, inputs: str, outputs: str, constants: dict | None = None) -> onnxeval.Model:
    imports = '"" : 21, "com.microsoft" : 1, "com.acme" : 1'
    proto = parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]> g ({inputs}) => ({outputs}) {{ {body} }}")
    for name, value in (constants or {}).items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return onnxeval.load(proto)


def types_for(loaded: onnxeval.Model, feeds: dict) -> dict:
    (found,) = loaded._adaptives.values()
    return found._kinds[adaptive.kind_of(feeds)[0]].types


def test_what_follows_on_operators_of_onnxruntime_is_decided():
    body = "h = com.microsoft.FastGelu (x) s = Shape (h) n = Gather (s, zero) l = Unsqueeze (n, zeros)"
    body += " k = Expand (one, l) e = com.microsoft.QuickGelu (k) y = Add (e, h) z = Exp (y)"
    constants = {"zero": np.array(0), "zeros": np.array([0]), "one": np.float32(1)}
    loaded = model(body, "float[N] x", "float y, float z", constants)
    for size in (3, 5, 3):
        feeds = {"x": np.linspace(-1, 1, size, dtype=np.float32)}
        same(loaded, feeds, 6)
        assert len(loaded.plan().steps) > len(plan_for(loaded, feeds).steps)  # what shapes alone decide is constant
        assert types_for(loaded, feeds)["y"].shape == (size,)


GROUPED = """
    y, present_key, present_value = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 1>
        (query, key, value, past_key, past_value, lengths, total)
"""


def grouped_feeds(rows: int, tokens: int) -> dict:
    rng = np.random.default_rng(rows + tokens)
    shapes = {"query": (1, 1, 8), "key": (1, 1, 4), "value": (1, 1, 4)}
    shapes |= {"past_key": (1, 1, rows, 4), "past_value": (1, 1, rows, 4)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return {**feeds, "lengths": np.array([tokens - 1], np.int32)}


def test_a_cache_whose_length_is_decided_by_a_number():
    inputs = "float[B,S,8] query, float[B,S,4] key, float[B,S,4] value, float[B,1,P,4] past_key, "
    inputs += "float[B,1,P,4] past_value, int32[B] lengths, int32[1] total"
    loaded = model(GROUPED, inputs, "float y, float present_key, float present_value")
    for rows, tokens in [(5, 6), (5, 4), (5, 6), (5, 5)] * 3:  # tokens go behind the cache, or into it
        feeds = {**grouped_feeds(rows, tokens), "total": np.array([tokens], np.int32)}
        same(loaded, feeds, 1)
    assert "present_key" not in types_for(loaded, feeds)


def test_a_cache_whose_length_is_decided_by_shapes():
    body = "s = Shape (mask) g = Gather (s, one) total = Cast <to = 6> (g)" + GROUPED
    inputs = "float[B,S,8] query, float[B,S,4] key, float[B,S,4] value, float[B,1,P,4] past_key, "
    inputs += "float[B,1,P,4] past_value, int32[B] lengths, int64[B,T] mask"
    outputs = "float y, float present_key, float present_value"
    loaded = model(body, inputs, outputs, {"one": np.array(1)})
    for rows, tokens in [(5, 6), (6, 7)]:
        feeds = {**grouped_feeds(rows, tokens), "mask": np.ones((1, tokens), np.int64)}
        same(loaded, feeds, 6)
        assert types_for(loaded, feeds)["present_key"].shape == (1, 1, tokens, 4)


@pytest.mark.parametrize("domain", ["com.acme", "com.microsoft"])
def test_operators_of_users_decide_nothing(domain, monkeypatch):
    monkeypatch.setitem(STANDARD._kernels, OpKey(domain, "TestPositive", 1), lambda x: x[x > 0])
    monkeypatch.setitem(STANDARD._versions, (domain, "TestPositive"), [1])
    loaded = model(f"h = {domain}.TestPositive (x) y = Exp (h)", "float[N] x", "float y")
    for x in ([1, 2, 3], [1, -2, 3], [-1, -2, -3], [1, 2, 3], [0, 1, 2], [3, 2, 1]):
        feeds = {"x": np.float32(x)}
        same(loaded, feeds, 1)
    assert "y" not in types_for(loaded, feeds)
