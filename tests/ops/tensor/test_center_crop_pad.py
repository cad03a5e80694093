import itertools

import numpy as np
import pytest

from onnxeval.ops.tensor.center_crop_pad import center_crop_pad


def cropped(x, shape, axes=None):
    return center_crop_pad(x, np.array(shape, np.int64), axes=axes, allocate=np.empty)


def test_one_axis():
    for size, length in itertools.product(range(6), range(8)):
        row = list(range(1, size + 1))
        if length <= size:
            wanted = row[(size - length) // 2 :][:length]
        else:
            left = (length - size) // 2
            wanted = [0] * left + row + [0] * (length - size - left)
        assert cropped(np.array(row, np.int8), [length]).tolist() == wanted


def test_axes():
    x = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
    assert cropped(x, [1, 5], axes=(-1, 1)).tolist() == np.pad(x, ((0, 0), (1, 1), (0, 0)))[..., 1:2].tolist()
    assert cropped(x, [3, 1, 4]).tolist() == np.pad(x, ((0, 1), (0, 0), (0, 0)))[:, 1:2].tolist()
    assert cropped(np.array(["a"], object), [3]).tolist() == ["", "a", ""]
    assert cropped(np.array(2.0), []).tolist() == 2


@pytest.mark.parametrize(
    ("shape", "axes", "message"),
    [
        ([1], None, r"shape is \[1\], expected \[2\]"),
        ([[1, 1]], None, "shape is"),
        ([1, -1], None, "negative length"),
        ([1], (2,), "axes 2 is outside"),
        ([1, 1], (1, -1), "twice"),
    ],
)
def test_errors(shape, axes, message):
    with pytest.raises(ValueError, match=message):
        cropped(np.zeros((2, 3)), shape, axes)
