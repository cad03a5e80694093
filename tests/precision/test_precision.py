"""A step's error against float64 is at most twice onnxruntime's: ``pytest -m slow tests/precision``, minutes.

The right results are those of the readable kernels in float64. Where an operator knows no such type the test is
skipped: what takes float32 alone (Celu, DequantizeLinear, trees) and what the texts compute in float32.
"""

import numpy as np
import pytest
from precision import drawn
from precision.measured import errors_of, largest, moved

from onnxeval.fast.engine import native
from onnxeval.suite import load_cases

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(native() is None, reason="what NumPy and its BLAS lose is theirs"),
]
CASES = {case.name: case for case in load_cases() if case.kind != "real"}


#: Draws of inputs where a case's own are too few to tell an error from bad luck.
DRAWS = 24


def as_fed(value):
    return np.asarray(value) if isinstance(value, np.generic) else value


def assert_small(model, feeds) -> None:
    errors = errors_of(model, feeds)
    if not errors:
        pytest.skip("no float32 comes out")
    if not all(found.is_small for found in errors):
        draw = np.random.default_rng(0)
        errors = largest([errors_of(model, moved(feeds, draw)) for _ in range(DRAWS)])
    assert not [str(found) for found in errors if not found.is_small]


@pytest.mark.parametrize("node", drawn.ALL, ids=str)
def test_drawn(node) -> None:
    assert_small(*node.model())


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    names = [value.name for value in case.model.graph.input]
    inputs, _ = next(iter(case.data_sets))
    assert_small(case.model, {name: as_fed(value) for name, value in zip(names, inputs, strict=False)})
