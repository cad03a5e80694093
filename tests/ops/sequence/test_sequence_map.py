from __future__ import annotations

import numpy as np
import pytest

from onnxeval.ops.sequence.sequence_map import sequence_map
from onnxeval.values import Sequence, TensorType

INT64 = TensorType(np.dtype(np.int64))


class Graph:
    """A sub-graph written in Python."""

    def __init__(self, function, n_inputs, *output_types):
        self.function, self.n_inputs, self.output_types = function, n_inputs, output_types

    def __call__(self, *inputs):
        return tuple(self.function(*inputs))


def sequence(*lengths):
    return Sequence([np.arange(n) for n in lengths])


def test_sequences_give_their_elements_and_tensors_stay_whole():
    body = Graph(lambda x, y, t: (x + t, np.append(x, y)), 3, INT64, INT64)
    sums, joined = sequence_map(sequence(1, 3), sequence(2, 0), np.array(10), body=body, n_outputs=2)
    assert [s.tolist() for s in sums] == [[10], [10, 11, 12]]
    assert [j.tolist() for j in joined] == [[0, 0, 1], [0, 1, 2]]
    assert sums.element_type == INT64


def test_an_empty_sequence_knows_its_type():
    body = Graph(None, 1, TensorType(np.dtype(np.float16), (2,)), None)
    halves, unknown = sequence_map(Sequence([], INT64), body=body, n_outputs=2)
    assert (halves, halves.element_type) == ([], TensorType(np.dtype(np.float16)))
    assert (unknown, unknown.element_type) == ([], None)


@pytest.mark.parametrize(
    ("inputs", "n_inputs", "n_outputs", "message"),
    [
        ((sequence(1, 2), sequence(1)), 2, 1, r"lengths \[2, 1\]"),
        ((sequence(1),), 2, 1, "the body has 2 inputs and 1 outputs, the node 1 and 1"),
        ((sequence(1),), 1, 2, "the body has 1 inputs and 1 outputs, the node 1 and 2"),
    ],
)
def test_refusals(inputs, n_inputs, n_outputs, message):
    with pytest.raises(ValueError, match=message):
        sequence_map(*inputs, body=Graph(lambda *x: x[:1], n_inputs, INT64), n_outputs=n_outputs)
