"""Every case of the installed onnx wheel, by value."""

import numpy as np
import pytest

from onnxeval import backend
from onnxeval.dtypes import BFLOAT16, is_float
from onnxeval.suite import Case, load_cases
from onnxeval.testing.suite_jobs import data_at_fault

KNOWN_FAILURES = data_at_fault()
CASES = {case.name: case for case in load_cases()}

#: Their numbers are random by definition; shape and dtype are compared here, the distribution in tests/ops/generator.
RANDOM = {name for name in CASES if name.startswith("test_bernoulli")}


def assert_same(got, wanted, case: Case) -> None:
    if wanted is None:
        assert got is None
    elif isinstance(wanted, (list, tuple)):
        assert isinstance(got, list)
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            assert_same(one, other, case)
    elif isinstance(wanted, dict):
        assert got == wanted
    else:
        wanted = np.asarray(wanted)
        assert got.shape == wanted.shape
        if wanted.dtype.kind in "OUS":
            assert got.dtype == object
            assert got.tolist() == wanted.tolist()
            return
        assert got.dtype == wanted.dtype
        if case.name in RANDOM:
            return
        if wanted.dtype.kind == "c":
            np.testing.assert_allclose(got, wanted, rtol=case.rtol, atol=case.atol)
        elif is_float(wanted.dtype):
            # onnx's own runner grants bfloat16 two units in the last place
            rtol = max(case.rtol, 2**-6) if wanted.dtype == BFLOAT16 else case.rtol
            with np.errstate(invalid="ignore"):
                np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=rtol, atol=case.atol)
        else:
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, request: pytest.FixtureRequest) -> None:
    case = CASES[name]
    if name in KNOWN_FAILURES:
        request.applymarker(pytest.mark.xfail(reason=KNOWN_FAILURES[name], strict=True))
    prepared = backend.prepare(case.model)
    data_sets = list(case.data_sets)
    assert data_sets, "a case without data proves nothing"
    for inputs, wanted in data_sets:
        got = prepared.run(inputs)
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            assert_same(one, other, case)


def test_all_cases_are_there() -> None:
    assert len(CASES) == 2033
    assert len(RANDOM) == 6


def test_every_known_failure_is_a_case() -> None:
    assert not KNOWN_FAILURES.keys() - CASES.keys()
