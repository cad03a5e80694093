"""Looking at models of chance, and making inputs up for them, gives an answer or an error of ours."""

from contextlib import suppress
from random import Random

import pytest
from fuzz.wild import wild_node

import onnxeval
from onnxeval.checks.recording import record
from onnxeval.inspection.cost import cost_of
from onnxeval.inspection.summary import summarise
from onnxeval.loader import load_model
from onnxeval.random_feeds import make_feeds
from onnxeval.schema import all_schemas
from onnxeval.values import type_of


@pytest.mark.parametrize("seed", range(3))
def test_wild_nodes(seed):
    chance = Random(seed)
    for _ in range(700):
        model, _ = wild_node(chance.choice(all_schemas()), chance)
        with suppress(onnxeval.OnnxEvalError):
            recorded = record(load_model(model))
            cost_of(recorded)
            summarise(recorded)
        with suppress(onnxeval.OnnxEvalError):
            made = make_feeds(onnxeval.load(model), {}, {}, 0)
            for value in made.feeds.values():
                type_of(value)


@pytest.mark.parametrize("seed", range(3))
def test_broken_conformance_models(seed):
    from fuzz.mutations import mutate

    from onnxeval.suite import load_cases

    chance = Random(seed)
    cases = [case for case in load_cases() if case.kind != "real"]
    for _ in range(300):
        model, _ = mutate(chance.choice(cases).model, {}, chance)
        with suppress(onnxeval.OnnxEvalError):
            recorded = record(load_model(model))
            cost_of(recorded)
            summarise(recorded)
        with suppress(onnxeval.OnnxEvalError):
            make_feeds(onnxeval.load(model), {}, {}, 0)
