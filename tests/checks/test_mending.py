"""What `--fix` mends, what it leaves alone, and that the mended model computes the same."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import onnx
import pytest
from checks.mutations import good_model, graphs
from onnx import ModelProto, NodeProto

import onnxeval
from onnxeval.checks.mending import mend
from onnxeval.loader import Loaded
from onnxeval.saving import model_bytes
from onnxeval.suite import load_cases

IF = """g (bool c, float[2] x) => (float[2] y) {
    y = If(c) <then_branch = t () => (float[2] a) { a = Neg(b)  b = Abs(x)  dead = Exp(x) },
               else_branch = e () => (float[2] d) { d = Neg(x) }>
}"""


def model(text: str, change: Callable[[ModelProto], object] | None = None) -> ModelProto:
    proto = onnx.parser.parse_model(
        text if text.startswith("<") else f'<ir_version: 10, opset_import: ["": 21]> {text}'
    )
    if change is not None:
        change(proto)
    return proto


def mended(proto: ModelProto) -> tuple[ModelProto, list[str]]:
    copy = ModelProto()
    copy.CopyFrom(proto)
    return copy, mend(Loaded(copy, "model", ()))


def rules(proto: ModelProto) -> set[str]:
    return {finding.rule for finding in onnxeval.check(proto)}


MENDED = {
    "graph/order": model("g (float[2] x) => (float[2] y) { y = Neg(h)  h = Abs(x) }"),
    "graph/doubled-node-name": model(
        "g (float[2] x) => (float[2] y) { [n] h = Abs(x)  [n_1] k = Exp(h)  [n] y = Neg(k) }"
    ),
    "graph/unused-node": model(
        "g (float[2] x) => (float[2] y) { a = Abs(x)  b = Exp(a)  c, m = Dropout(a)  y = Neg(x) }"
    ),
    "graph/unused-initializer": model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Neg(x) }"),
    "graph/no-type": model(
        "g (float[N, 2] x) => (float[N, 2] y) { y = Neg(x) }", lambda m: m.graph.output[0].ClearField("type")
    ),
    "graph/no-shape": model(
        "g (float[N, 2] x) => (float[N, 2] y) { y = Neg(x) }",
        lambda m: m.graph.output[0].type.tensor_type.ClearField("shape"),
    ),
    "graph/unnamed": model("g (float[2] x) => (float[2] y) { y = Neg(x) }", lambda m: m.graph.ClearField("name")),
    "proto/domain-spelling": model("g (float[2] x) => (float[2] y) { y = ai.onnx.Neg(x) }"),
    "proto/doubled-opset": model(
        '<ir_version: 10, opset_import: ["": 21, "ai.onnx": 21]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    ),
    "function/unused": model(
        """<ir_version: 10, opset_import: ["": 21, "loc": 1]> g (float[2] x) => (float[2] y) { y = Neg(x) }
        <domain: "loc", opset_import: ["": 21, "loc": 1]> f (a) => (c) { c = loc.h(a) }
        <domain: "loc", opset_import: ["": 21]> h (a) => (c) { c = Add(a, a) }"""
    ),
    "graph/order in a branch": model(IF),
}


@pytest.mark.parametrize("what", MENDED)
def test_what_is_mended(what: str) -> None:
    proto = MENDED[what]
    assert what.partition(" ")[0] in rules(proto)
    copy, done = mended(proto)
    assert done
    assert rules(copy) == set()
    feeds = {i.name: np.array([0.5, 2.0], np.float32) for i in proto.graph.input if i.name == "x"}
    feeds = {name: x if what not in ("graph/no-type", "graph/no-shape") else x[None] for name, x in feeds.items()}
    for condition in (True, False):
        given = {**feeds, **({"c": np.array(condition)} if "c" in [i.name for i in proto.graph.input] else {})}
        before, after = onnxeval.load(proto).run(given), onnxeval.load(copy).run(given)
        assert {name: value.tolist() for name, value in before.items()} == {n: v.tolist() for n, v in after.items()}
    assert mended(copy) == (copy, [])


def test_what_is_declared_is_what_inference_tells() -> None:
    copy, done = mended(MENDED["graph/no-type"])
    assert done == ['graph/output[0] "y": declared float32[N, 2]']
    assert copy.graph.output[0] == onnx.helper.make_tensor_value_info("y", 1, ["N", 2])


def test_nodes_keep_their_order_where_they_can() -> None:
    copy, _ = mended(model("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Add(b, a)  b = Abs(x) }"))
    assert [node.output[0] for node in copy.graph.node] == ["a", "b", "y"]


def test_nothing_is_removed_beside_other_errors() -> None:
    """A misspelt name makes what it meant look unused."""
    proto = model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { h = Abs(w)  y = Add(x, hh) }")
    copy, done = mended(proto)
    assert (copy, done) == (proto, [])


def test_the_default_of_an_input_stays() -> None:
    proto = model("g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Neg(x) }")
    assert mended(proto) == (proto, [])


def test_what_training_and_annotations_read_stays() -> None:
    proto = model("g (float[2] x) => (float[2] y) <float w = {1}, float s = {1}> { k = Mul(x, w)  y = Neg(x) }")
    info = proto.training_info.add()
    info.algorithm.CopyFrom(onnx.parser.parse_graph("t () => (float[2] z) { z = Neg(k) }"))
    info.update_binding.add(key="w", value="z")
    annotation = proto.graph.quantization_annotation.add(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    assert mended(proto) == (proto, [])


def test_what_a_gradient_names_stays() -> None:
    proto = model(
        """<ir_version: 10, opset_import: ["": 21, "ai.onnx.preview.training": 1]>
        g (float[2] x) => (float[2] d) {
            y = Mul(x, x)
            d = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(x)
        }"""
    )
    assert mended(proto) == (proto, [])


def test_declarations_of_removed_values_go_too() -> None:
    copy, _ = mended(model("g (float[2] x) => (float[2] y) <float[2] h> { h = Abs(x)  y = Neg(x) }"))
    assert not copy.graph.value_info


def test_a_cycle_is_left_alone() -> None:
    proto = model("g (float[2] x) => (float[2] y) { a = Add(x, b)  b = Neg(a)  y = Abs(b) }")
    assert mended(proto) == (proto, [])


@pytest.mark.parametrize("name", ["m.onnx", "m.onnxtxt", "m.json", "m.textproto"])
def test_every_format_can_be_written(name: str, tmp_path: object) -> None:
    proto, _ = mended(MENDED["graph/order"])
    path = tmp_path / name
    path.write_bytes(model_bytes(proto, name)[0])
    assert onnxeval.check(path) == []


# The same results


def spoiled(proto: ModelProto, chance: random.Random) -> ModelProto:
    """The model with nodes in a chance order under one name, spelled long, and beside them some that serve nothing."""
    copy = ModelProto()
    copy.CopyFrom(proto)
    graph = copy.graph
    nodes = list(graph.node)
    nodes += [NodeProto(op_type="Identity", input=[v.name], output=[f"unread_{v.name}"]) for v in graph.input]
    chance.shuffle(nodes)
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    for node in nodes:
        node.name = "same"
        node.domain = node.domain or "ai.onnx"
    del graph.node[:]
    graph.node.extend(nodes)
    if copy.ir_version > 3:
        graph.initializer.add(name="nobody_reads_this", data_type=1, dims=[0])
    for value in graph.output:
        value.ClearField("type")
    return copy


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and one.dtype.kind in "biufc":
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    return repr(one) == repr(other)


def test_the_mended_model_computes_the_same() -> None:
    tried = 0
    for case in [case for case in load_cases() if case.kind != "real" and len(case.model.graph.node) > 3][::24]:
        model, (inputs, _) = case.model, next(case.data_sets)
        fed = dict(zip((value.name for value in model.graph.input), inputs, strict=False))
        copy, done = mended(spoiled(model, random.Random(case.name)))
        assert done, case.name
        left = {finding.rule for finding in onnxeval.check(copy) if finding.severity == "error"}
        assert left <= {"graph/no-type", "graph/no-shape"}, case.name
        before, after = onnxeval.load(model).run(fed, seed=1), onnxeval.load(copy).run(fed, seed=1)
        assert before.keys() == after.keys()
        assert all(same(value, after[name]) for name, value in before.items()), case.name
        tried += 1
    assert tried > 12


# By chance


def _shuffle(graph: Any, chance: random.Random) -> None:
    copies = [NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    chance.shuffle(copies)
    del graph.node[:]
    graph.node.extend(copies)


def _name_alike(graph: Any, chance: random.Random) -> None:
    for node in graph.node:
        node.name = chance.choice(("same", "same_1", "", node.name))


def _spell_long(graph: Any, chance: random.Random) -> None:
    for node in graph.node:
        node.domain = node.domain or chance.choice(("", "ai.onnx"))


_NUMBERS = itertools.count()


def _leave_lying(graph: Any, chance: random.Random) -> None:
    """Add nodes that serve nothing, and what they alone read."""
    if isinstance(graph, onnx.GraphProto):
        name = f"idle_{next(_NUMBERS)}"
        graph.initializer.append(onnx.helper.make_tensor(name, 1, [1], [1.0]))
        graph.node.add(op_type="Neg", input=[name], output=[f"{name}_neg"])


def _forget_declarations(graph: Any, chance: random.Random) -> None:
    if isinstance(graph, onnx.GraphProto):
        for value in graph.output:
            if value.type.HasField("tensor_type") and chance.random() < 0.5:
                value.type.tensor_type.ClearField("shape")


_DAMAGES = (_shuffle, _name_alike, _spell_long, _leave_lying, _forget_declarations)
_FED = {
    "network": {"x": np.linspace(-1, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8)},
    "shapes": {name: np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4) for name in "xt"},
    "control": {"n": np.array(3), "c": np.array(True), "x": np.array([[1, 2], [0.5, 1]], np.float32)},
    "functions": {"x": np.full((2, 3), 0.5, np.float32), "d": np.full((2, 3), 0.25)},
    "recurrent": {"x": np.linspace(-1, 1, 30, dtype=np.float32).reshape(5, 2, 3)},
}


@hypothesis.settings(max_examples=60, deadline=None, derandomize=True)
@hypothesis.given(
    st.sampled_from(sorted(_FED)),
    st.lists(st.sampled_from(_DAMAGES), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_damage_by_chance_is_mended(name: str, damages: list, chance: random.Random) -> None:
    """In whatever order damages come, nothing of theirs is found afterwards, and the results are those of before."""
    proto = good_model(name)
    for damage in damages:
        for graph in [*graphs(proto)][::-1]:
            damage(graph, chance)
    copy, _ = mended(proto)
    untold = {"graph/no-shape"} if name == "control" else set()  # what a Loop carries may change its shape
    assert rules(copy) <= untold
    assert mended(copy) == (copy, [])
    before, after = onnxeval.load(good_model(name)).run(_FED[name]), onnxeval.load(copy).run(_FED[name])
    assert before.keys() == after.keys()
    assert all(same(value, after[each]) for each, value in before.items())
