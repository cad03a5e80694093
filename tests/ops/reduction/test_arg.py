import ml_dtypes
import numpy as np
import pytest

from onnxeval.registry import STANDARD

STANDARD.load_section("reduction")
EXTREME = {"ArgMax": max, "ArgMin": min}


@pytest.mark.parametrize("name", EXTREME)
@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("last", [0, 1])
def test_the_first_or_the_last_of_several(name, dtype, axis, last):
    x = np.random.default_rng(1).integers(0, 3, (4, 5, 6)).astype(dtype)
    got = STANDARD["", name, 13](x, axis=axis, keepdims=1, select_last_index=last)
    assert got.dtype == np.int64
    assert got.shape == tuple(1 if at == axis % 3 else size for at, size in enumerate(x.shape))
    pruned = STANDARD["", name, 13](x, axis=axis, keepdims=0, select_last_index=last)
    assert pruned.tolist() == np.squeeze(got, axis).tolist()
    for place, row in zip(pruned.ravel(), np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]).tolist(), strict=True):
        hits = [at for at, value in enumerate(row) if value == EXTREME[name](row)]
        assert place == hits[-1 if last else 0]


@pytest.mark.parametrize("version", [1, 11])
def test_before_version_12_the_first_wins(version):
    x = np.array([[1, 3, 3], [2, 2, 0]], np.float32)
    assert STANDARD["", "ArgMax", version](x, axis=1, keepdims=0).tolist() == [1, 0]
    assert STANDARD["", "ArgMin", version](x, axis=0, keepdims=1).tolist() == [[0, 1, 1]]


def test_nan_is_the_extreme():
    x = np.array([1, np.nan, 5, np.nan])
    for name in EXTREME:
        for last in (0, 1):
            assert STANDARD["", name, 13](x, axis=0, keepdims=0, select_last_index=last) == (3 if last else 1)


def test_empty():
    x = np.zeros((2, 0, 3), np.float32)
    assert STANDARD["", "ArgMax", 13](x, axis=0, keepdims=1).shape == (1, 0, 3)
    with pytest.raises(ValueError, match="no elements"):
        STANDARD["", "ArgMax", 13](x, axis=1, keepdims=1)
    with pytest.raises(ValueError, match="outside"):
        STANDARD["", "ArgMin", 13](np.array(3.0), axis=0, keepdims=0)
