"""Range against the pseudocode of the text."""

import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.registry import OpKey, Registry


def kernel(version):
    return Registry.standard()[OpKey("", "Range", version)]


def run(version, start, limit, delta, dtype, **attributes):
    bounds = (np.array(bound).astype(dtype) for bound in (start, limit, delta))
    got = kernel(version)(*bounds, allocate=np.empty, **attributes)
    assert got.dtype == dtype
    assert got.ndim == 1
    return got


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize(
    ("start", "limit", "delta"),
    [(3, 9, 3), (10, 4, -2), (3, 10, 3), (0, 0, 1), (5, 0, 1), (0, 5, -1), (-7, 8, 4), (2, 3, 100)],
)
def test_the_pseudocode(dtype, start, limit, delta):
    wanted = [start + i * delta for i in range(max(math.ceil((limit - start) / delta), 0))]
    assert run(11, start, limit, delta, dtype).tolist() == wanted
    assert run(27, start, limit, delta, dtype, stash_type=1).tolist() == wanted


def test_integers_are_exact():
    big = 2**53 + 1
    assert run(11, big, big + 3, 1, np.int64).tolist() == [big, big + 1, big + 2]
    assert run(11, -(2**63), 2**63 - 1, 2**62, np.int64).tolist() == [-(2**63), -(2**62), 0, 2**62]
    assert run(11, 32766, 32767, 5, np.int16).tolist() == [32766]
    assert run(11, 32000, -32000, -30000, np.int16).tolist() == [32000, 2000, -28000]


def test_floats_compute_in_their_own_type():
    got = run(11, 0.5, 2, 0.1, np.float32)
    delta = np.float32(0.1)
    count = math.ceil((np.float32(2) - np.float32(0.5)) / delta)
    assert got.tolist() == [float(np.float32(0.5) + np.float32(i) * delta) for i in range(count)]
    assert run(11, 1.0, 2.0, 0.25, np.float64).tolist() == [1, 1.25, 1.5, 1.75]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_do_not_stall(dtype):
    start = 2048 if dtype == np.float16 else 256  # where adding 1 changes nothing in the type itself
    got = run(27, start, start + 8, 1, dtype, stash_type=1)
    np.testing.assert_array_equal(got, np.arange(start, start + 8).astype(dtype))


def test_range_refuses():
    with pytest.raises(ValueError, match="delta is 0"):
        run(11, 0, 1, 0, np.float32)
    with pytest.raises(ValueError, match="delta is 0"):
        run(11, 0, 1, 0, np.int32)
    with np.errstate(all="ignore"):
        for bounds in ((0, np.inf, 1), (0, 1, np.nan), (np.nan, 1, 1), (0, 1, 1e-320)):
            with pytest.raises(ValueError, match="steps"):
                run(11, *bounds, np.float64)
    with pytest.raises(ValueError, match="expected a scalar"):
        run(11, [0, 1], 1, 1, np.float32)

    def refuse(shape, dtype):
        raise MemoryError(shape)

    for dtype in (np.int64, np.float64):
        with pytest.raises(MemoryError):
            kernel(11)(*(np.array(v, dtype) for v in (0, 2**50, 1)), allocate=refuse)
