"""What changed between versions, held against steps that are known from the standard's change log."""

import pytest

from onnxeval.opdiff import difference, history
from onnxeval.opdocs import operators, page


def between(name, older, newer, domain=""):
    return difference(page(domain, name, older), page(domain, name, newer))


@pytest.mark.parametrize(
    ("name", "older", "newer", "breaking", "change"),
    [
        ("DepthToSpace", 1, 11, False, 'attribute mode is new (optional, default "DCR")'),
        ("DepthToSpace", 11, 13, False, "input and output: also bfloat16"),
        ("DepthToSpace", 13, 28, False, "now with a function body"),
        ("Softmax", 11, 13, True, "attribute axis defaults to -1, was 1"),
        ("Cast", 1, 6, True, "attribute to is INT, was STRING"),
        ("Clip", 6, 11, True, "attribute min is now an input"),
        ("Clip", 6, 11, True, "input min is new (optional)"),
        ("Upsample", 7, 9, True, "input scales is new (required)"),
        ("Upsample", 9, 10, True, "now deprecated"),
        ("BatchNormalization", 7, 9, True, "attribute spatial is gone"),
        ("BatchNormalization", 9, 14, True, "output saved_mean is gone"),
        ("BatchNormalization", 9, 14, True, "looser: one type for X, scale and B; one for input_mean and input_var"),
        ("Dropout", 7, 10, True, "mask: no longer float16 float32 float64"),
        ("Dropout", 7, 10, True, "mask: also bool"),
        ("Pow", 7, 12, False, "inputs may differ in type"),
        ("MaxPool", 1, 8, False, "output Indices is new (optional)"),
        ("Gemm", 9, 11, False, "input C is optional, was required"),
        ("Concat", 1, 4, True, "attribute axis is required now"),
        ("Clip", 13, 12, True, "input, min, max and output: no longer bfloat16"),
    ],
)
def test_steps(name, older, newer, breaking, change):
    found = between(name, older, newer)
    assert found.breaking == breaking
    assert change in [c.text for c in found.changes]


def test_the_verdict_leaves_a_changed_text_to_the_reader():
    assert between("Cast", 19, 21).verdict == "not breaking"
    assert between("AveragePool", 19, 22).verdict == "not breaking by its signature"
    assert any("right padded region" in line and line.startswith("+") for line in between("AveragePool", 19, 22).prose)
    assert between("DepthToSpace", 13, 28).summary == (
        "not breaking, same inputs, attributes and types, now with a function body"
    )


def test_a_version_does_not_differ_from_itself():
    for domain, name in operators():
        newest = page(domain, name)
        found = difference(newest, newest)
        assert not found.changes
        assert not found.prose
        assert found.same == ("inputs", "attributes", "types")


def test_every_step_of_every_operator_is_described():
    steps = [step for key in operators() for step in history(*key)]
    assert len(steps) == sum(len(versions) - 1 for versions in operators().values())
    assert all(step.changes or step.prose for step in steps)


def test_pages_hold_what_the_schemas_say():
    for (domain, name), versions in operators().items():
        for version in versions:
            of = page(domain, name, version)
            assert (of.domain, of.name, of.since_version) == (domain, name, version)
            variables = {v.name for v in of.variables}
            assert all(slot.variable in variables for slot in (*of.inputs, *of.outputs) if slot.variable)
            assert all(slot.types for slot in (*of.inputs, *of.outputs))
    assert page("", "MaxPool", 7).since_version == 1
    assert page("", "Mish", 9) is None
    assert page("", "NoSuchOperator") is None
