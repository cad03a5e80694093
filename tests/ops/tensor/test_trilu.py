import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.tensor.trilu import trilu


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 4), (0, 3), (3, 0)])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -1, 2, -5, 9, -(2**63), 2**63 - 1])
def test_triangles(shape, upper, k):
    x = np.arange(1, 1 + int(np.prod(shape))).reshape(shape)
    got = trilu(x, None if k is None else np.array(k, np.int64), upper=upper)
    for place in np.ndindex(shape):
        row, column = place[-2:]
        kept = column >= row + (k or 0) if upper else column <= row + (k or 0)
        assert got[place] == (x[place] if kept else 0)
    assert got.shape == shape


@pytest.mark.parametrize("dtype", [object, np.bool_, ml_dtypes.bfloat16, np.complex64])
def test_every_kind_of_element(dtype):
    x = np.array([["a", "b"], ["c", "d"]], object) if dtype is object else np.ones((2, 2), dtype)
    got = trilu(x, None, upper=1)
    assert got.dtype == dtype
    assert got.tolist() == [x.tolist()[0], ["" if dtype is object else 0, x.tolist()[1][1]]]


def test_errors():
    with pytest.raises(ValueError, match="rank 1"):
        trilu(np.zeros(3), None, upper=1)
    with pytest.raises(ValueError, match="k has 2 elements"):
        trilu(np.zeros((3, 3)), np.array([0, 1]), upper=1)
