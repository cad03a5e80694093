"""Flatten against the shapes that the text gives."""

from math import prod

import numpy as np
import pytest

from onnxeval.registry import OpKey, Registry

X = np.arange(120).reshape(2, 3, 4, 5)


def kernel(version):
    return Registry.standard()[OpKey("", "Flatten", version)]


@pytest.mark.parametrize("axis", range(-4, 5))
def test_every_axis(axis):
    at = axis % 4 if axis < 0 else axis
    for version in (11, 13, 21, 25) if axis < 0 else (1, 9, 11, 25):
        got = kernel(version)(X, axis=axis)
        assert got.shape == (prod(X.shape[:at]), prod(X.shape[at:]))
        np.testing.assert_array_equal(got.ravel(), X.ravel())
        assert np.shares_memory(got, X)


def test_rank_0_and_empty():
    assert kernel(25)(np.array(7), axis=0).shape == (1, 1)
    assert kernel(25)(np.zeros((2, 0, 3)), axis=1).shape == (2, 0)
    assert kernel(25)(np.zeros((2, 0, 3)), axis=3).shape == (0, 1)


@pytest.mark.parametrize(("version", "axis"), [(25, 5), (25, -5), (9, 5), (9, -1), (1, -1)])
def test_axes_outside(version, axis):
    with pytest.raises(ValueError, match=f"axis {axis}"):
        kernel(version)(X, axis=axis)


def test_the_default_axis_of_a_scalar_is_outside():
    with pytest.raises(ValueError, match=r"axis 1 is outside \[0, 0\]"):
        kernel(25)(np.array(7), axis=1)
