"""No miss: where onnx's full check refuses a model that chance has spoiled, there is an error at or above the place."""

import re
from random import Random

import hypothesis
import hypothesis.strategies as st
import onnx
import pytest
from checks.mutations import CHANGES, NAMES, good_model, graphs, nodes
from onnx import AttributeProto, ModelProto

import onnxeval

#: Where these are wrong onnx's inference may never come back: they are kept from it.
_NOT_FOR_ONNX = {"value/axis", "value/batch-dims", "value/equation", "value/number", "value/parts"}
#: What onnx refuses and this check does not, by a part of its message, with the reason.
REFUSED_BY_ONNX_ALONE = {
    "Output 0 is out of bounds": "a call may take fewer outputs than its function has, none even",
    "(op_type:MeanVarianceNormalization": "the function body in onnx's schema fails onnx's own inference",
    "whereas model imports version 1": "a domain that only functions use need not be imported by the model",
    "No opset import for domain  optype": "before IR version 3 a model imports no opset and means the first",
}


def refusal(model: ModelProto) -> str | None:
    """What onnx's full check says against a model; None where it accepts it."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError) as error:
        return str(error)
    return None


def above(model: ModelProto, name: str) -> set[str]:
    """The names of a node, of those in it, of those whose values it needs, and of those it stands in."""
    found: set[str] = set()
    todo = [name]
    by_name = {node.name: node for node in nodes(model)}
    while todo:
        each = todo.pop()
        if each in found or each not in by_name:
            continue
        found.add(each)
        node = by_name[each]
        subs = [attribute.g for attribute in node.attribute if attribute.type == AttributeProto.GRAPH]
        inside = [*subs, *(function for function in model.functions if function.name == node.op_type)]
        todo += [inner.name for graph in inside for inner in graph.node]
        wanted = {*node.input, *(name for graph in subs for inner in graph.node for name in inner.input)}
        for other in by_name.values():
            holds = any(node in attribute.g.node for attribute in other.attribute)
            calls = any(f.name == other.op_type and node in f.node for f in model.functions)
            if wanted.intersection(other.output) or holds or calls:
                todo.append(other.name)
    return found


def assert_no_miss(model: ModelProto) -> None:
    errors = [finding for finding in onnxeval.check(model) if finding.severity == "error"]
    if _NOT_FOR_ONNX.intersection(finding.rule for finding in errors):
        return
    said = refusal(model)
    if said is None or any(part in said for part in REFUSED_BY_ONNX_ALONE):
        return
    assert errors, said
    place = re.search(r"(?:node name|Name): (\w+)", said)
    if place is not None:
        named = {name for finding in errors for name in re.findall(r'\(\w* ?"(\w+)"\)', finding.where)}
        elsewhere = [finding for finding in errors if "node[" not in finding.where]
        assert elsewhere or named & above(model, place[1]), (said, list(map(str, errors)))


@pytest.mark.parametrize("name", NAMES)
def test_the_models_are_good(name: str) -> None:
    model = good_model(name)
    assert onnxeval.check(model, ignore=["graph/unused-*"]) == []
    assert refusal(model) is None


MUTATIONS = (
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3),
    st.randoms(use_true_random=False),
)


def spoil_and_judge(name: str, changes: list, chance: Random) -> None:
    model = good_model(name)
    for change in changes:
        if any(graph.node for graph in graphs(model)):
            change(model, chance)
    assert_no_miss(model)


@hypothesis.settings(max_examples=400, deadline=None, derandomize=True)
@hypothesis.given(*MUTATIONS)
def test_no_miss(name: str, changes: list, chance: Random) -> None:
    spoil_and_judge(name, changes, chance)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_no_miss_among_thousands(seed: int) -> None:
    check_all = hypothesis.settings(max_examples=2000, deadline=None, database=None)(
        hypothesis.seed(seed)(hypothesis.given(*MUTATIONS)(spoil_and_judge))
    )
    check_all()
