"""Older standards, through the eyes of their time: every backend case that the onnx wheels of wheels.py carry.

    pytest -m slow tests/old_standards                          # everything, against the other engines too
    pytest -m slow tests/old_standards -k "1.6.0 and resize"    # a wheel, a part of the names

The first run downloads 50 MB. A case whose data is wrong stands in known_failures.toml; test_known_failures.py watches
over that file.
"""

import subprocess

import pytest
from conformance.test_conformance import assert_same
from old_standards.known_failures import KNOWN_FAILURES
from old_standards.wheels import WHEELS, Wheel, load_old_cases, read_data_sets

import onnxeval

pytestmark = pytest.mark.slow


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each case; none where slow tests are not asked for, so that nothing is downloaded."""
    if {"version", "name"} <= set(metafunc.fixturenames):
        wanted = "not slow" not in metafunc.config.getoption("markexpr")
        cases = [(version, name) for version in WHEELS for name in (_names(version) if wanted else ())]
        metafunc.parametrize(("version", "name"), cases, ids=[f"{version}/{name}" for version, name in cases])


def _names(version: str) -> list[str]:
    try:
        return list(load_old_cases(version))
    except subprocess.CalledProcessError:
        return []  # test_all_cases_are_there shows the error


def test_case(version: str, name: str, request: pytest.FixtureRequest) -> None:
    case = load_old_cases(version)[name]
    failure = KNOWN_FAILURES.get(f"{version}/{name}")
    if failure is not None:
        expected = (AssertionError, onnxeval.OnnxEvalError)
        request.applymarker(pytest.mark.xfail(reason=failure.reason, raises=expected, strict=True))
    model = onnxeval.load(case.model)
    data_sets = list(read_data_sets(case))
    assert data_sets, "a case without data proves nothing"
    for feeds, wanted in data_sets:
        got = model.run(feeds)
        for one, other in zip(got.values(), wanted, strict=True):
            assert_same(one, other, case)


@pytest.mark.parametrize("wheel", WHEELS.values(), ids=WHEELS)
def test_all_cases_are_there(wheel: Wheel) -> None:
    assert len(load_old_cases(wheel.version)) == wheel.count
