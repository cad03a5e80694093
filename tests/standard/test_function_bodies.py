"""A kernel and its schema's function body agree: on the shipped cases the body alone gives the expected outputs."""

import pytest
from conformance.test_conformance import KNOWN_FAILURES, RANDOM, assert_same

from onnxeval.functions import has_typed_function_body
from onnxeval.loader import Loaded
from onnxeval.model import Model
from onnxeval.registry import STANDARD, Kernel, OpKey, Registry
from onnxeval.schema import Schema, canonical_domain, find_schema
from onnxeval.suite import Case, load_cases


class Without(Registry):
    """The standard registry less one kernel."""

    def __init__(self, key: OpKey) -> None:
        super().__init__()
        self._missing = key

    def load_section(self, section: str) -> None:
        STANDARD.load_section(section)

    def __getitem__(self, key: OpKey) -> Kernel:
        if key == self._missing:
            raise KeyError(key)
        return STANDARD[key]

    def versions(self, domain: str, op_type: str) -> list[int]:
        return STANDARD.versions(domain, op_type)


def schema_with_body(case: Case) -> Schema | None:
    """The schema of a one-node model, where it brings a function body."""
    model = case.model
    if case.kind != "node" or len(model.graph.node) != 1:
        return None
    (node,) = model.graph.node
    imports = {canonical_domain(entry.domain): entry.version for entry in model.opset_import}
    domain = canonical_domain(node.domain)
    schema = find_schema(domain, node.op_type, imports.get(domain, 0))
    if schema is None or not (schema.definition.has_function or has_typed_function_body(schema)):
        return None
    return schema


BODIES = {c.name: (c, schema) for c in load_cases() if (schema := schema_with_body(c)) and c.name not in RANDOM}


@pytest.mark.parametrize("name", BODIES)
def test_the_body_gives_the_expected_outputs(name: str, request: pytest.FixtureRequest) -> None:
    case, schema = BODIES[name]
    if reason := KNOWN_FAILURES.get(f"{name}_expanded"):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    model = Model(Loaded(case.model, name, ()), Without(schema.key))
    for inputs, wanted in case.data_sets:
        got = model.run(dict(zip([i.name for i in model.inputs], inputs, strict=False)))
        for one, other in zip(got.values(), wanted, strict=True):
            assert_same(one, other, case)


def test_there_are_bodies_to_compare() -> None:
    assert len(BODIES) > 300
