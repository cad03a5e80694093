import numpy as np
import pytest

from onnxeval.ops.tensor.reverse_sequence import reverse_sequence


@pytest.mark.parametrize(("batch_axis", "time_axis"), [(0, 1), (1, 0)])
@pytest.mark.parametrize("rest", [(), (2,), (2, 3)])
def test_each_sequence_up_to_its_length(batch_axis, time_axis, rest):
    x = np.random.default_rng(2).permutation(20 * int(np.prod(rest))).reshape(4, 5, *rest)
    if batch_axis == 1:
        x = x.swapaxes(0, 1)
    lengths = np.array([5, 0, 1, 3])
    got = reverse_sequence(x, lengths, batch_axis=batch_axis, time_axis=time_axis)
    by_batch, result = (np.moveaxis(t, batch_axis, 0) for t in (x, got))
    for sequence, reversed_, length in zip(by_batch, result, lengths, strict=True):
        steps = list(sequence)
        wanted = steps[:length][::-1] + steps[length:]
        assert reversed_.tolist() == [step.tolist() for step in wanted]


def test_worked_examples():
    x = np.arange(16.0).reshape(4, 4)
    one = reverse_sequence(x.T, np.array([4, 3, 2, 1]), batch_axis=1, time_axis=0)
    assert one.tolist() == [[3, 6, 9, 12], [2, 5, 8, 13], [1, 4, 10, 14], [0, 7, 11, 15]]
    two = reverse_sequence(x, np.array([1, 2, 3, 4]), batch_axis=0, time_axis=1)
    assert two.tolist() == [[0, 1, 2, 3], [5, 4, 6, 7], [10, 9, 8, 11], [15, 14, 13, 12]]
    empty = reverse_sequence(np.zeros((0, 3)), np.zeros(0, np.int64), batch_axis=0, time_axis=1)
    assert empty.shape == (0, 3)


@pytest.mark.parametrize(
    ("shape", "lengths", "axes", "message"),
    [
        ((3, 2), [1, 4], (1, 0), r"length of 4 is outside \[0, 3\]"),
        ((3, 2), [-1, 0], (1, 0), "length of -1"),
        ((3, 2), [1], (1, 0), r"sequence_lens is \[1\], expected \[2\]"),
        ((3, 2), [1, 1], (1, 1), "are not 0 and 1"),
        ((3, 2, 1), [1, 1], (2, 1), "are not 0 and 1"),
        ((3,), [1], (1, 0), "rank 1"),
    ],
)
def test_errors(shape, lengths, axes, message):
    with pytest.raises(ValueError, match=message):
        reverse_sequence(np.zeros(shape), np.array(lengths), batch_axis=axes[0], time_axis=axes[1])
