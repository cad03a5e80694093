"""Inputs made up for measuring."""

import ml_dtypes
import numpy as np
import pytest

from onnxeval.benchmark.inputs import filled
from onnxeval.errors import InputError
from onnxeval.feeding import check_feeds
from onnxeval.model import Declared
from onnxeval.values import OptionalType, SequenceType, TensorType

DTYPES = [np.float32, np.float16, np.complex64, np.int64, np.uint8, np.int16, bool, object, "int4", "uint2", "bfloat16"]


@pytest.mark.parametrize("name", DTYPES, ids=str)
def test_of_every_type(name):
    dtype = np.dtype(getattr(ml_dtypes, name) if isinstance(name, str) else name)
    entry = Declared("x", TensorType(dtype, (2, 3)))
    feeds, made_up = filled([entry], {})
    assert made_up == ["x"]
    assert check_feeds([entry], feeds)["x"].dtype == dtype
    again, _ = filled([entry], {})
    assert np.array_equal(feeds["x"], again["x"])


def test_what_is_given_stays_and_what_has_a_default_is_left():
    x = np.zeros((1, 2), np.float32)
    inputs = [
        Declared("x", TensorType(np.dtype(np.float32), ("N", 2))),
        Declared("w", TensorType(np.dtype(np.float32), (3,)), optional=True),
        Declared("o", OptionalType(TensorType(np.dtype(np.float32), ("M",)))),
        Declared("n", TensorType(np.dtype(np.int64), ())),
    ]
    feeds, made_up = filled(inputs, {"x": x})
    assert feeds["x"] is x
    assert list(feeds) == ["x", "n"]
    assert made_up == ["n"]
    assert feeds["n"] == 1


def test_open_sizes_are_named_all_at_once():
    f32 = np.dtype(np.float32)
    inputs = [
        Declared("a", TensorType(f32, ("N", 3))),
        Declared("b", TensorType(f32, (None,))),
        Declared("c", TensorType(f32)),
        Declared("d", SequenceType(TensorType(f32, (2,)))),
        Declared("e", None),
        Declared("fixed", TensorType(f32, (2,))),
    ]
    with pytest.raises(InputError) as caught:
        filled(inputs, {})
    message = str(caught.value)
    assert message.startswith('no value for the inputs "a" (float32[N, 3]), "b" (float32[?]), "c" (float32), "d" (seq(')
    assert '"e" (of undeclared type)' in message
    assert "fixed" not in message
    assert "--input" in caught.value.hint
    assert "--dim" in caught.value.hint


def test_sizes_for_open_dimensions():
    f32 = np.dtype(np.float32)
    inputs = [Declared("a", TensorType(f32, ("N", 3))), Declared("b", TensorType(f32, (None, "N", -1)))]
    feeds, made_up = filled(inputs, {}, {"N": 2, "b[0]": 4, "b[2]": 0})
    assert made_up == ["a", "b"]
    assert {name: value.shape for name, value in feeds.items()} == {"a": (2, 3), "b": (4, 2, 0)}
    with pytest.raises(InputError, match=r'the input "b"'):
        filled(inputs, {}, {"N": 2, "b[0]": 4})
