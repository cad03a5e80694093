import numpy as np
import pytest

from onnxeval.ops.tensor.compress import compress


def test_along_an_axis_and_flat():
    x = np.arange(12).reshape(3, 4)
    for axis in (0, 1, -1, -2):
        condition = np.array([False, True, True])
        picked = compress(x, condition, axis=axis)
        assert picked.tolist() == (x[1:3] if axis in (0, -2) else x[:, 1:3]).tolist()
    assert compress(x, np.array([True, False, False, False, False, True]), axis=None).tolist() == [0, 5]
    assert compress(x, np.zeros(0, np.bool_), axis=0).shape == (0, 4)
    words = compress(np.array(["a", "b"], object), np.array([False, True]), axis=0)
    assert words.tolist() == ["b"]
    assert words.dtype == object


@pytest.mark.parametrize(
    ("x", "condition", "axis", "message"),
    [
        (np.zeros((2, 3)), np.ones(3, np.bool_), 0, "3 elements for 2 slices"),
        (np.zeros((2, 3)), np.ones(7, np.bool_), None, "7 elements for 6 slices"),
        (np.zeros((2, 3)), np.ones((1, 2), np.bool_), 0, "ranks are 2 and 2"),
        (np.array(1.0), np.ones(1, np.bool_), None, "ranks are 0 and 1"),
        (np.zeros((2, 3)), np.ones(1, np.bool_), 2, "axis 2 is outside"),
    ],
)
def test_errors(x, condition, axis, message):
    with pytest.raises(ValueError, match=message):
        compress(x, condition, axis=axis)
