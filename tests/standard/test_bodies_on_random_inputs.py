"""A kernel and its schema's function body agree on random inputs and attributes, of every type the schema lists."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from differential.cases import Node, shown
from differential.comparing import difference
from ml_dtypes import finfo
from standard.bodies import PARTINGS, SCHEMAS, Parting, nodes, opsets, strategy_of
from standard.test_function_bodies import Without

from onnxeval.dtypes import dtype_of
from onnxeval.errors import OnnxEvalError
from onnxeval.loader import Loaded
from onnxeval.model import Model
from onnxeval.registry import STANDARD, Registry
from onnxeval.values import Value

Outcome = list[Value] | OnnxEvalError


def run(node: Node, registry: Registry, opset: int) -> Outcome:
    model = node.model()
    model.opset_import[0].version = opset
    try:
        return list(Model(Loaded(model, "one node", ()), registry).run(node.feeds, seed=1).values())
    except OnnxEvalError as error:
        return error


def told(outcome: Outcome) -> str:
    return str(outcome) if isinstance(outcome, OnnxEvalError) else "; ".join(map(shown, outcome))


def parting(kernel: Outcome, body: Outcome, node: Node) -> str | None:
    if isinstance(kernel, OnnxEvalError) or isinstance(body, OnnxEvalError):
        if isinstance(kernel, OnnxEvalError) and isinstance(body, OnnxEvalError):
            return None
        return "kernel refuses" if isinstance(kernel, OnnxEvalError) else "body refuses"
    strategy = strategy_of(node.schema)
    if precision := node.attribute("softmax_precision"):
        coarser = float(finfo(dtype_of(precision)).eps) / float(finfo(node.inputs[0].dtype).eps)
        strategy = replace(strategy, ulps=strategy.ulps * max(1, int(coarser)))
    with np.errstate(all="ignore"):
        differs = any(difference(a, b, strategy) for a, b in zip(kernel, body, strict=True))
    return "values" if differs else None


def test_there_are_76_versions_with_a_body() -> None:
    assert len(SCHEMAS) == 76
    assert sum(schema.definition.has_function for schema in SCHEMAS.values()) == 42


@pytest.mark.parametrize("name", SCHEMAS)
def test_kernel_and_body_agree(name: str) -> None:
    check(name, 2, 30)


@pytest.mark.parametrize("name", SCHEMAS)
def test_all_attributes_and_optional_inputs_are_drawn(name: str) -> None:
    schema, drawn = SCHEMAS[name], set()
    for node in nodes(schema, 8, 100):
        drawn |= {a for a, value in node.attributes.items() if value != schema.attributes[a].default}
        drawn |= {slot.name for place, slot in enumerate(schema.inputs) if node.input(place) is not None}
        drawn |= {f"no {slot.name}" for place, slot in enumerate(schema.inputs) if node.input(place) is None}
    optional = {f"no {slot.name}" for slot in schema.inputs if slot.optional}
    assert {*schema.attributes, *(slot.name for slot in schema.inputs), *optional} <= drawn


@pytest.mark.parametrize("opset", [15, 22])
def test_bernoulli_is_its_body_of_the_other_probability(opset: int) -> None:
    """The text draws 1 with probability p, the body where a random number is greater than p."""
    schema = SCHEMAS[f"Bernoulli-{opset}"]
    p = np.array([0, 1, 1, 0], np.float32)
    assert [x.tolist() for x in run(Node(schema, [p]), STANDARD, opset)] == [[0, 1, 1, 0]]
    assert [x.tolist() for x in run(Node(schema, [1 - p]), Without(schema.key), opset)] == [[0, 1, 1, 0]]
    quarter = np.full(40_000, 0.25, np.float32)
    (ones,), (others,) = (run(Node(schema, [quarter]), r, opset) for r in (STANDARD, Without(schema.key)))
    assert abs(ones.mean() - 0.25) < 0.01
    assert abs(others.mean() - 0.75) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMAS)
def test_kernel_and_body_agree_on_many_nodes(name: str) -> None:
    met = check(name, 20, 300)
    assert met == {entry for entry in PARTINGS if entry.concerns(SCHEMAS[name].key)}, "what parts no longer"


def check(name: str, per_binding: int, total: int) -> set[Parting]:
    """Compare so many nodes, and give back what parted."""
    schema = SCHEMAS[name]
    body_alone = Without(schema.key)
    expected = {entry for entry in PARTINGS if entry.concerns(schema.key)}
    met, agreed = set(), Counter()
    for node in nodes(schema, per_binding, total):
        types = tuple(getattr(value, "dtype", None) for value in node.inputs)
        for opset in opsets(schema):
            with np.errstate(all="ignore"):
                kernel, body = run(node, STANDARD, opset), run(node, body_alone, opset)
            if (what := parting(kernel, body, node)) is None:
                agreed[types] += not isinstance(kernel, OnnxEvalError)
                continue
            with np.errstate(all="ignore"):
                reasons = {entry for entry in expected if entry.covers(what, node)}
            assert reasons, f"{what} at opset {opset}\n{node}\nkernel  {told(kernel)}\nbody    {told(body)}"
            met |= reasons
    assert sum(agreed.values()) >= total / 5
    return met
