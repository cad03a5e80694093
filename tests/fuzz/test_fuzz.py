"""Broken models and feeds, the same each time: nothing but an OnnxEvalError that says something, or values.

pytest tests/fuzz             a selection, in a few seconds
pytest -m slow tests/fuzz     many more, in minutes: ONNXEVAL_FUZZ is their number for each test (20,000)
"""

import json
import os
import warnings
from pathlib import Path
from random import Random

import onnx
import pytest
from cases.run_cases import read
from fuzz.forks import outcomes
from fuzz.judging import fault
from fuzz.mutations import Feeds, mutate
from fuzz.wild import wild_node
from onnx import ModelProto

from onnxeval.graph import constants_of
from onnxeval.registry import Registry
from onnxeval.schema import all_schemas
from onnxeval.suite import load_cases

CASES = Path(__file__).parents[1] / "cases"
#: How many attempts of a test are made every time, and with `-m slow`.
FEW = 1500
MANY = int(os.environ.get("ONNXEVAL_FUZZ", "20000"))

QUICK = [range(FEW), pytest.param(range(FEW, FEW + MANY), marks=pytest.mark.slow)]


@pytest.fixture(scope="module", autouse=True)
def _everything_is_loaded() -> None:
    """Before the forks are made, so that none of them has to."""
    Registry.standard()
    all_schemas()


def faults(attempt, places: range) -> list[str]:
    """What is wrong with each attempt, a (label, model, feeds) for each place."""

    def judged(place: int) -> str:
        _, model, feeds = attempt(place)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return fault(model, feeds)

    return [f"{place} ({attempt(place)[0]}): {text}" for place, text in outcomes(judged, places) if text]


@pytest.mark.parametrize("places", QUICK, ids=["few", "many"])
def test_any_node(places: range) -> None:
    """Every version of every operator in turn, on values and attributes of chance."""
    schemas = all_schemas()

    def attempt(place: int) -> tuple[str, ModelProto, Feeds]:
        schema = schemas[place % len(schemas)]
        return (schema.label, *wild_node(schema, Random(f"node {place}")))

    assert faults(attempt, places) == []


@pytest.mark.parametrize("places", QUICK, ids=["few", "many"])
def test_broken_handed_cases(places: range) -> None:
    corpus = [loaded for path in sorted(CASES.glob("*/meta.json")) if (loaded := _handed(path)) is not None]

    def attempt(place: int) -> tuple[str, ModelProto, Feeds]:
        name, model, feeds = corpus[place % len(corpus)]
        return (name, *mutate(model, feeds, Random(f"case {place}")))

    assert faults(attempt, places) == []


def _handed(path: Path) -> tuple[str, ModelProto, Feeds] | None:
    """A case's name, model and feeds; None where it is no model that could be broken further."""
    try:
        model = onnx.load(path.parent / "model.onnx", load_external_data=False)
    except Exception:
        return None
    feeds = {name: read(path.parent, entry) for name, entry in json.loads(path.read_text())["inputs"].items()}
    return (path.parent.name, model, feeds) if model.graph.node else None


@pytest.mark.slow
def test_broken_conformance_cases() -> None:
    corpus = [case for case in load_cases() if case.kind != "real"]

    def attempt(place: int) -> tuple[str, ModelProto, Feeds]:
        case = corpus[place % len(corpus)]
        model = case.model
        inputs, _ = next(iter(case.data_sets))
        constants = set(constants_of(model.graph)) if len(inputs) < len(model.graph.input) else set()
        names = [value.name for value in model.graph.input if value.name not in constants]
        feeds = dict(zip(names, inputs, strict=True))
        return (case.name, *mutate(model, feeds, Random(f"conformance {place}")))

    assert faults(attempt, range(MANY)) == []
