"""What is said of two engines' outputs."""

import ml_dtypes
import numpy as np
import pytest

from onnxeval.benchmark.differences import Difference, differences

F32 = np.float32


def one(ours, theirs) -> Difference:
    (found,) = differences({"y": ours}, {"y": theirs})
    return found


def test_numbers():
    found = one(np.array([1, -8, 2], F32), np.array([1, -7, 2.5], F32))
    assert found == Difference("y", largest=1.0, scale=7.0, unlike=0, of=3)
    assert found.relative == pytest.approx(1 / 7)


@pytest.mark.parametrize(
    "dtype",
    [np.int64, np.uint8, np.float16, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, complex],
)
def test_every_kind_of_number(dtype):
    found = one(np.array([1, 2], dtype), np.array([1, 4], dtype))
    assert (found.largest, found.scale, found.unlike) == (2, 4, 0)


def test_what_is_not_finite():
    a = np.array([np.nan, np.inf, np.inf, 1, np.nan], F32)
    b = np.array([np.nan, np.inf, -np.inf, np.inf, 2], F32)
    found = one(a, b)
    assert found.unlike == 3
    assert found.largest == 0


@pytest.mark.parametrize(
    ("a", "b"), [([True, False], [True, True]), (np.array(["a", "b"], object), np.array(["a", "c"], object))]
)
def test_what_has_no_distance(a, b):
    found = one(np.array(a), np.array(b))
    assert (found.unlike, found.of, found.largest) == (1, 2, 0)


def test_strings_of_numpys_own_type_are_strings():
    assert one(np.array(["a"], object), np.array(["a"])).unlike == 0


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (np.zeros(2, F32), np.zeros(3, F32), "float32[2] and float32[3]"),
        (np.zeros(2, F32), np.zeros(2), "float32[2] and float64[2]"),
        ([np.zeros(2)], [], "sequences of 1 and 0 values"),
        ({1: 0.5}, {2: 0.5}, "the maps have different keys"),
        (None, np.zeros(2), "one of the two is empty"),
    ],
)
def test_what_cannot_be_compared(a, b, reason):
    assert one(a, b).reason == reason


def test_what_holds_others():
    found = one([np.zeros(2, F32), np.ones(3, F32)], [np.zeros(2, F32), np.full(3, 3, F32)])
    assert found == Difference("y", largest=2.0, scale=3.0, of=5)
    assert one([{0: F32(0.25)}], [{0: 0.5}]).largest == 0.25  # onnxruntime's maps hold Python's numbers
    assert one(None, None) == Difference("y")
    assert one(np.zeros((0, 3), F32), np.zeros((0, 3), F32)) == Difference("y")


def test_outputs_that_one_lacks():
    found = differences({"a": np.zeros(1), "b": np.zeros(1)}, {"b": np.zeros(1), "c": np.zeros(1)})
    assert [(d.name, bool(d.reason)) for d in found] == [("a", True), ("b", False), ("c", True)]
