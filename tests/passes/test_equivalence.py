"""Every conformance case gives the same with and without the passes, its inputs fed and its inputs constant."""

import numpy as np
import pytest
from conformance.test_conformance import CASES, KNOWN_FAILURES, RANDOM, assert_same
from onnx import ModelProto, numpy_helper

import onnxeval


def with_constant_inputs(model: ModelProto, inputs: list) -> ModelProto:
    """The model with its tensor inputs as initializers, so that everything can be folded."""
    constant = ModelProto()
    constant.CopyFrom(model)
    constant.ir_version = max(constant.ir_version, 4)
    kept = [value for value, given in zip(model.graph.input, inputs, strict=False) if not isinstance(given, np.ndarray)]
    for value, given in zip(model.graph.input, inputs, strict=False):
        if isinstance(given, np.ndarray):
            constant.graph.initializer.append(numpy_helper.from_array(given, value.name))
    del constant.graph.input[:]
    constant.graph.input.extend(kept)
    return constant


@pytest.mark.parametrize("name", sorted(CASES.keys() - RANDOM - KNOWN_FAILURES.keys()))
def test_passes_change_no_result(name: str) -> None:
    case = CASES[name]
    inputs, given = next(case.data_sets)
    model = onnxeval.load(case.model)
    names = [entry.name for entry in model.inputs if not entry.optional]
    feeds = dict(zip(names, inputs, strict=False))
    # the weights of a real model are all alike: Softmax makes 0 and 1 of what BLAS rounds otherwise in one channel
    wanted = given if case.kind == "real" else list(model.run(feeds, reference=True).values())
    for _ in range(4):  # when shapes have come again, what follows from them is constant
        for one, other in zip(model.run(feeds).values(), wanted, strict=True):
            assert_same(one, other, case)
    if case.kind != "node":
        return
    folded = onnxeval.load(with_constant_inputs(case.model, inputs))
    rest = {entry.name: feeds[entry.name] for entry in folded.inputs if not entry.optional}
    for one, other in zip(folded.run(rest).values(), wanted, strict=True):
        assert_same(one, other, case)


def test_constants_are_folded_at_all() -> None:
    case = CASES["test_add"]
    inputs, _ = next(case.data_sets)
    model = onnxeval.load(with_constant_inputs(case.model, inputs))
    assert len(model.plan().steps) == 0
    assert len(model.plan(reference=True).steps) == 1
