import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.tensor.tensor_scatter import tensor_scatter

RNG = np.random.default_rng(6)


def looped(past_cache, update, write_indices, axis, mode):
    """The text's pseudocode."""
    present_cache = past_cache.copy()
    axis %= past_cache.ndim
    for prefix in np.ndindex(past_cache.shape[:axis]):
        for sequence in range(update.shape[axis]):
            at = write_indices[prefix[0]] + sequence
            if mode == "circular":
                at %= past_cache.shape[axis]
            present_cache[(*prefix, at)] = update[(*prefix, sequence)]
    return present_cache


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, ml_dtypes.float8_e4m3fn, ml_dtypes.int4])
@pytest.mark.parametrize(("shape", "axis"), [((2, 3, 5, 4), -2), ((2, 5), 1), ((2, 3, 5), -1), ((2, 5, 3, 1), 1)])
def test_writes(dtype, shape, axis):
    cache = RNG.integers(0, 7, shape).astype(dtype)
    update_shape = list(shape)
    update_shape[axis] = 3
    update = RNG.integers(0, 7, update_shape).astype(dtype)
    before = cache.copy()
    for mode, write in (("linear", [2, 0]), ("circular", [4, 1]), ("circular", [13, -1])):
        got = tensor_scatter(cache, update, np.array(write), axis=axis, mode=mode)
        assert got.dtype == dtype
        assert got.tolist() == looped(cache, update, write, axis, mode).tolist()
    absent = tensor_scatter(cache, update, None, axis=axis, mode="linear")
    assert absent.tolist() == looped(cache, update, [0, 0], axis, "linear").tolist()
    assert cache.tolist() == before.tolist()


@pytest.mark.parametrize(
    ("update", "write", "axis", "mode", "message"),
    [
        ((2, 3, 4), [3, 0], 1, "linear", "outside a cache of 5"),
        ((2, 3, 4), [-1, 0], 1, "linear", "outside a cache of 5"),
        ((2, 6, 4), [0, 0], 1, "circular", "does not fit"),
        ((2, 3, 3), [0, 0], 1, "linear", "does not fit"),
        ((2, 3), [0, 0], 1, "linear", "does not fit"),
        ((2, 3, 4), [0], 1, "linear", "write_indices is"),
        ((2, 5, 4), [0, 0], 0, "linear", "the batch axis"),
        ((2, 5, 4), [0, 0], 3, "linear", "axis 3 is outside"),
        ((2, 3, 4), [0, 0], 1, "ring", "mode 'ring'"),
    ],
)
def test_errors(update, write, axis, mode, message):
    with pytest.raises(ValueError, match=message):
        tensor_scatter(np.zeros((2, 5, 4)), np.zeros(update), np.array(write), axis=axis, mode=mode)
