"""Every operator version that onnxruntime has, on random nodes: `pytest -m slow tests/differential`.

A node is drawn by the strategy of its operator for each binding of the schema's type variables. Where onnxruntime has
no kernel for the types the binding is skipped; where both engines refuse a node they agree; where their results differ
the difference must be in the table of accepted ones, each of which docs/differences.md shows.
"""

import importlib
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from differential.accepted import ACCEPTED, load
from differential.cases import OLDEST_OPSET, Node, shown
from differential.comparing import difference
from differential.drawing import STRATEGIES, Drawing, Strategy, type_bindings
from differential.engines import Outcome, Refusal, run_onnxeval, run_onnxruntime
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from onnxeval.registry import OpKey
from onnxeval.schema import Schema, all_schemas, known_versions

pytestmark = pytest.mark.slow

load()
for path in sorted(Path(__file__).parent.glob("of_*.py")):
    importlib.import_module(f"differential.{path.stem}")

#: Nodes a version gets in all, and each binding of its type variables at the least.
NODES, NODES_PER_BINDING = 320, 12

#: Operators that onnxruntime lacks in every version.
LACKING = {
    ("", "ImageDecoder"),
    ("ai.onnx.preview", "FlexAttention"),
    *(("ai.onnx.preview.training", name) for name in ("Adagrad", "Adam", "Gradient", "Momentum")),
}
#: No node of these has a meaning on its own, or none that random numbers leave.
NOT_DRAWN = {("", "Constant")}


def is_in_force(key: OpKey) -> bool:
    """Whether a model at an opset that onnxruntime takes can hold this version."""
    later = [version for version in known_versions(key.domain, key.op_type) if version > key.since_version]
    return bool(key.domain) or not later or later[0] > OLDEST_OPSET


SCHEMAS = {str(s.key): s for s in all_schemas() if is_in_force(s.key) and s.key[:2] not in LACKING | NOT_DRAWN}


def test_every_operator_has_a_strategy() -> None:
    assert {schema.key[:2] for schema in SCHEMAS.values()} == STRATEGIES.keys()


@pytest.mark.parametrize("name", SCHEMAS)
def test_operator(name: str) -> None:
    schema = SCHEMAS[name]
    strategy = STRATEGIES[schema.key[:2]]
    bindings = list(known_bindings(schema, strategy))
    if not bindings:
        pytest.skip("onnxruntime has no kernel")
    for types in bindings:
        check(schema, strategy, types, max(NODES // len(bindings), NODES_PER_BINDING))


def known_bindings(schema: Schema, strategy: Strategy) -> Iterator[dict[str, str]]:
    """The bindings for which onnxruntime has a kernel: one of a few plain nodes runs."""
    for types in type_bindings(schema, strategy.tied, strategy.bindings):
        nodes = (strategy.draw(plain(schema, strategy, types, seed)) for seed in range(4))
        if any(not is_missing(run_onnxruntime(node)) for node in nodes if not is_avoided(node)):
            yield types


def plain(schema: Schema, strategy: Strategy, types: dict[str, str], seed: int) -> Drawing:
    return Drawing(random.Random(seed).randint, schema, types, strategy.palettes)


def is_missing(outcome: Outcome) -> bool:
    return isinstance(outcome, Refusal) and outcome.missing


def is_avoided(node: Node) -> bool:
    return any(entry.avoid and entry.covers(node) for entry in ACCEPTED)


def check(schema: Schema, strategy: Strategy, types: dict[str, str], count: int) -> None:
    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        drawing = Drawing(lambda low, high: data.draw(st.integers(low, high)), schema, types, strategy.palettes)
        with np.errstate(all="ignore"):
            compare(strategy.draw(drawing), strategy)

    run()


def compare(node: Node, strategy: Strategy) -> None:
    if is_avoided(node):
        return
    theirs = run_onnxruntime(node)
    if is_missing(theirs):
        return
    ours = run_onnxeval(node)
    if verdict := judge(ours, theirs, strategy):
        accepted = any(entry.covers(node) for entry in ACCEPTED)
        assert accepted, f"{verdict}\n{node}\nonnxeval     {told(ours)}\nonnxruntime  {told(theirs)}"


def judge(ours: Outcome, theirs: Outcome, strategy: Strategy) -> str | None:
    """What differs between two outcomes; None where nothing does."""
    if isinstance(ours, Refusal) or isinstance(theirs, Refusal):
        if isinstance(ours, Refusal) and isinstance(theirs, Refusal):
            return None
        return "onnxeval alone refuses" if isinstance(ours, Refusal) else "onnxruntime alone refuses"
    return next(filter(None, (difference(a, b, strategy) for a, b in zip(ours, theirs, strict=True))), None)


def told(outcome: Outcome) -> str:
    return outcome.text if isinstance(outcome, Refusal) else "; ".join(map(shown, outcome))
