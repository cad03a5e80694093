"""Inputs made up for real models: ``pytest -m slow tests/models/test_random_inputs.py`` downloads 60 MB once."""

import sys
from pathlib import Path

import pytest

import onnxeval
from onnxeval.random_feeds import make_feeds

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import fetch  # it lies beside the list of models, not in a package

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("entry", fetch.load_list(), ids=lambda entry: entry["name"])
@pytest.mark.parametrize("seed", range(3))
def test_the_model_runs_at_once(entry: dict[str, str], seed: int) -> None:
    model = onnxeval.load(fetch.fetch(entry))
    made = make_feeds(model, {}, {}, seed)
    assert made.names == tuple(declared.name for declared in model.inputs if not declared.optional)
    assert model.run(made.feeds)
