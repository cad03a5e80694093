"""known_failures.toml holds no case that another engine passes, unless the standard's text proves its data wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conformance.test_conformance import assert_same
from old_standards.engines import run_onnxruntime, run_reference
from old_standards.known_failures import KNOWN_FAILURES
from old_standards.wheels import load_old_cases, read_data_sets
from onnx import ModelProto

from onnxeval.suite import Case

pytestmark = pytest.mark.slow

ENGINES = {"reference": run_reference, "onnxruntime": run_onnxruntime}


def gives_the_data(run: Callable[[ModelProto, dict[str, Any]], list[Any]], case: Case) -> bool:
    """Whether an engine gives the outputs of a case; what it raises is an answer too."""
    try:
        for feeds, wanted in read_data_sets(case):
            for one, other in zip(run(case.model, feeds), wanted, strict=True):
                is_cast = isinstance(other, np.ndarray) and other.dtype.isbuiltin == 2
                assert_same(one.astype(other.dtype) if is_cast else one, other, case)
    except Exception:  # an engine's errors are its own
        return False
    return True


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "name", ["string_concat", "cast_FLOAT_to_BFLOAT16", "castlike_FLOAT_to_FLOAT8E5M2", "cast_INT4_to_FLOAT"]
)
def test_engines_are_asked_rightly(name: str, engine: str) -> None:
    """They do give right data, of types that NumPy lacks too."""
    assert gives_the_data(ENGINES[engine], load_old_cases("1.18.0")[f"node/test_{name}"])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("failure", KNOWN_FAILURES)
def test_only_engines_listed_give_the_data(failure: str, engine: str) -> None:
    version, _, name = failure.partition("/")
    case = load_old_cases(version)[name]
    assert gives_the_data(ENGINES[engine], case) == (engine in KNOWN_FAILURES[failure].agree)


def test_every_known_failure_is_a_case() -> None:
    for failure in KNOWN_FAILURES:
        version, _, name = failure.partition("/")
        assert name in load_old_cases(version)
