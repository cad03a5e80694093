"""Each test of a compiled kernel runs once for every instruction set and on one thread and three."""

import numpy as np
import pytest

from onnxeval.fast.engine import native, status


@pytest.fixture(scope="session")
def kernels():
    """The compiled kernels; skips where there are none."""
    found = native()
    if found is None:
        (pytest.fail if status().startswith("not used") else pytest.skip)(f"compiled kernels: {status()}")
    return found


@pytest.fixture(scope="module", params=["v2", "v3", "v4", "v4vnni", "neon", "generic"])
def tier(request, kernels):
    """The compiled kernels, with each instruction set in turn."""
    best, threads = kernels.active(), kernels.threads()
    if request.param not in kernels.tiers():
        pytest.skip(f"this processor, or this build, has no {request.param}")
    kernels.select(request.param)
    kernels.set_threads(3)
    yield kernels
    kernels.select(best)
    kernels.set_threads(threads)


@pytest.fixture(autouse=True, scope="module")
def unwarned():
    """Readable kernels run as they do in a model. (OpenBLAS on arm64 computes with what lies beside a matrix, too.)"""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="module")
def threads(kernels):
    """The compiled kernels with three threads, for those that are the same with every instruction set."""
    before = kernels.threads()
    kernels.set_threads(3)
    yield kernels
    kernels.set_threads(before)


@pytest.fixture
def rng():
    return np.random.default_rng(0)
