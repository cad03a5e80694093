from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import onnxeval.ops.nn.dropout  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

DATA = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
TRUE = np.array(True)


def dropout(version, *inputs, **attributes):
    given = {"rng": np.random.default_rng(0)} if version not in (7, 10) else {}
    return STANDARD["", "Dropout", version](*inputs, **attributes, **given)


@pytest.mark.parametrize("training_mode", [None, np.array(False)])
@pytest.mark.parametrize("version", [12, 13, 22])
def test_outside_training_it_is_a_copy(version, training_mode):
    y, mask = dropout(version, DATA, np.array(0.9, np.float32), training_mode, seed=None)
    np.testing.assert_array_equal(y, DATA)
    np.testing.assert_array_equal(mask, np.ones(DATA.shape, np.bool_))
    assert mask.dtype == np.bool_


@pytest.mark.parametrize(("version", "mask_dtype"), [(7, np.float32), (10, np.bool_)])
def test_versions_that_cannot_train(version, mask_dtype):
    y, mask = dropout(version, DATA, ratio=0.9)
    np.testing.assert_array_equal(y, DATA)
    assert mask.dtype == mask_dtype
    assert mask.all()


@pytest.mark.parametrize("version", [1, 6])
def test_the_oldest_train_unless_told(version):
    y, mask = dropout(version, DATA, ratio=0.5, is_test=0)
    assert mask.dtype == DATA.dtype
    assert 0 < mask.sum() < mask.size
    np.testing.assert_array_equal(y, DATA * mask * 2)
    y, _ = dropout(version, DATA, ratio=0.5, is_test=1)
    np.testing.assert_array_equal(y, DATA)


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
)
def test_training(dtype):
    data = np.ones((100, 100), dtype)
    y, mask = dropout(22, data, np.array(0.75, dtype), TRUE, seed=5)
    assert (y.dtype, mask.dtype) == (data.dtype, np.bool_)
    assert 0.2 < mask.mean() < 0.3
    np.testing.assert_array_equal(y.astype(np.float32), mask * np.float32(4))


def test_default_ratio_is_a_half():
    y, mask = dropout(13, np.ones((100, 100), np.float32), None, TRUE, seed=1)
    assert 0.45 < mask.mean() < 0.55
    np.testing.assert_array_equal(y, mask * np.float32(2))


def test_ratio_zero_keeps_everything():
    y, mask = dropout(12, DATA, np.array(0, np.float32), TRUE, seed=None)
    np.testing.assert_array_equal(y, DATA)
    assert mask.all()


@pytest.mark.parametrize("seed", [0, 7, -1, 2**63 - 1, -(2**63)])
def test_equal_seeds_give_equal_masks(seed):
    first, second = (dropout(13, DATA, None, TRUE, seed=seed)[1] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_dropped_infinities_are_zero():
    y, mask = dropout(13, np.full((50,), np.inf, np.float32), None, TRUE, seed=2)
    np.testing.assert_array_equal(y, np.where(mask, np.float32(np.inf), np.float32(0)))


@pytest.mark.parametrize("ratio", [1.0, -0.1, np.nan])
def test_ratio_is_below_one(ratio):
    with pytest.raises(ValueError, match="outside"):
        dropout(13, DATA, np.array(ratio, np.float32), TRUE, seed=0)
    with pytest.raises(ValueError, match="outside"):
        dropout(6, DATA, ratio=ratio, is_test=0)


def test_ratio_is_a_scalar():
    with pytest.raises(ValueError, match=r"ratio has shape \[2\]"):
        dropout(13, DATA, np.zeros(2, np.float32), TRUE, seed=0)
