"""Steps that change the meaning: the old version still means the old thing, the new one the new thing.

By the signature: an attribute is gone, of another kind or with another default, is required or no longer; an input or
output is new, gone or has another option. Or by the text alone, as the reading list has it. Each such step has examples
of both sides, run as models of their opset.
"""

import numpy as np
import pytest
from standard import examples_elementwise, examples_networks, examples_prose, examples_shapes
from standard.one_node import Example, run
from standard.reading_list import verdicts
from standard.steps import Step, steps

import onnxeval

EXAMPLES: dict[str, list[Example]] = {
    **examples_elementwise.EXAMPLES,
    **examples_networks.EXAMPLES,
    **examples_shapes.EXAMPLES,
    **examples_prose.EXAMPLES,
}
REREAD = {step for step, (verdict, _) in verdicts().items() if verdict == "changed"}
STEPS = {str(step): step for step in steps() if step.changes_meaning() or str(step) in REREAD}
RUNS = [(name, number) for name, examples in EXAMPLES.items() for number in range(len(examples))]


def test_every_step_has_examples_of_both_sides() -> None:
    assert set(EXAMPLES) == set(STEPS)
    for name, step in STEPS.items():
        assert {e.version for e in EXAMPLES[name]} == {schema.key.since_version for schema in step}, name


@pytest.mark.parametrize(("name", "number"), RUNS)
def test_example(name: str, number: int) -> None:
    step, example = STEPS[name], EXAMPLES[name][number]
    if isinstance(example.wanted, str):
        with pytest.raises(onnxeval.OnnxEvalError, match=example.wanted):
            _run(step, example, 1)
        return
    if callable(example.wanted):
        example.wanted(_run(step, example, 2))
        return
    got = _run(step, example, len(example.wanted))
    for one, other in zip(got, example.wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        else:
            assert one.tolist() == other.tolist()


def _run(step: Step, example: Example, n_outputs: int) -> tuple:
    domain, op_type, _ = step.operator
    return run(domain, op_type, example.version, example.inputs, n_outputs, example.attributes)
