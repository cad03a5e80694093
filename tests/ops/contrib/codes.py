"""Numbers of 8 bits, what they stand for, and whether they are the nearest ones."""

import numpy as np
from ops.contrib.nodes import ours, theirs

F32 = np.float32
BYTES = [np.uint8, np.int8]


def draw(shape, dtype, seed=0):
    """Codes all over the type."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def scale(value):
    return np.array(value, F32)


def zero(value, dtype):
    """A zero point: ``value`` for uint8, as much below 128 for int8."""
    return np.array(value - (128 if dtype == np.int8 else 0), dtype)


def real(x, x_scale, x_zero_point=None):
    """What codes stand for, in float64."""
    return (x.astype(float) - (0 if x_zero_point is None else float(x_zero_point))) * float(x_scale)


def assert_nearest(given, numbers, y_scale, y_zero_point, dtype):
    """``given`` are the codes nearest to the numbers; between two codes either is right."""
    limits = np.iinfo(dtype)
    places = np.asarray(numbers) / float(y_scale) + (0 if y_zero_point is None else float(y_zero_point))
    assert given.dtype == dtype
    assert given.shape == places.shape
    np.testing.assert_allclose(given.astype(float), np.clip(places, limits.min, limits.max), rtol=0, atol=0.5 + 1e-4)


def assert_one_apart(op_type, inputs, **how):
    """onnxruntime gives the same codes, or a neighbour where a number falls between two."""
    given, wanted = ours(op_type, inputs, **how), theirs(op_type, inputs, **how)
    assert given.dtype == wanted.dtype
    assert given.shape == wanted.shape
    apart = np.abs(given.astype(int) - wanted.astype(int))
    assert apart.max(initial=0) <= 1
    assert (apart > 0).mean() <= 0.05
