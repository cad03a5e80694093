import numpy as np
import pytest

from onnxeval.errors import ResourceLimitError
from onnxeval.ops.traditionalml.maps import cast_map, dict_vectorizer, zip_map
from onnxeval.values import MapType, TensorType


def cast(x, to="TO_FLOAT", form="DENSE", max_map=1, allocate=np.empty):
    return cast_map(x, cast_to=to, map_form=form, max_map=max_map, allocate=allocate)


def test_cast_map():
    numbers = {5: np.float32(2.75), -1: np.float32(7), 0: np.float32(-3.5)}
    assert cast(numbers).tolist() == [7, -3.5, 2.75]
    assert cast(numbers).dtype == np.float32
    assert cast(numbers, "TO_INT64").tolist() == [7, -3, 2]
    assert cast(numbers, "TO_STRING").tolist() == ["7", "-3.5", "2.75"]
    words = {2: "2.5", 1: "1e3"}
    assert cast(words).tolist() == [1000, 2.5]
    assert cast(words, "TO_STRING").tolist() == ["1e3", "2.5"]
    sparse = cast({1: np.float32(4), 3: np.float32(6)}, form="SPARSE", max_map=5)
    assert sparse.tolist() == [0, 4, 0, 6, 0]
    assert cast({2: "c"}, "TO_STRING", "SPARSE", 3).tolist() == ["", "", "c"]
    assert cast({}).tolist() == []


def test_cast_map_refuses():
    for key in (5, -1):
        with pytest.raises(ValueError, match=rf"key {key} is outside \[0, 4\]"):
            cast({key: np.float32(1)}, form="SPARSE", max_map=5)
    with pytest.raises(ValueError, match="TO_BOOL"):
        cast({}, "TO_BOOL")
    with pytest.raises(ValueError, match="LOOSE"):
        cast({}, form="LOOSE")
    with pytest.raises(ValueError, match="no"):
        cast({1: "no number"})

    def refuse(shape, dtype):
        raise ResourceLimitError(str(shape))

    with pytest.raises(ResourceLimitError):
        cast({0: np.float32(1)}, form="SPARSE", max_map=2**40, allocate=refuse)


def test_dict_vectorizer():
    vocabulary = {"int64_vocabulary": None, "string_vocabulary": ("a", "c", "b", "z")}
    got = dict_vectorizer({"a": np.int64(4), "c": np.int64(8)}, **vocabulary)
    assert got.tolist() == [4, 8, 0, 0]
    assert got.dtype == np.int64
    for dtype in (np.float32, np.float64):
        assert dict_vectorizer({"z": dtype(0.5)}, **vocabulary).dtype == dtype
    words = dict_vectorizer({7: "x"}, int64_vocabulary=(5, 7), string_vocabulary=None)
    assert words.tolist() == ["", "x"]
    assert dict_vectorizer({}, **vocabulary).tolist() == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="key 'q' is not in the vocabulary"):
        dict_vectorizer({"q": np.float32(1)}, **vocabulary)
    with pytest.raises(ValueError, match="expected one of"):
        dict_vectorizer({}, int64_vocabulary=None, string_vocabulary=None)


def test_zip_map():
    x = np.array([[0.25, 0.75], [1, 0]], np.float32)
    got = zip_map(x, classlabels_int64s=None, classlabels_strings=("no", "yes"))
    assert got == [{"no": 0.25, "yes": 0.75}, {"no": 1, "yes": 0}]
    assert got[0]["no"].dtype == np.float32
    assert got.element_type == MapType(np.dtype(object), TensorType(x.dtype))
    assert zip_map(x[0], classlabels_int64s=(3, 1), classlabels_strings=None) == [{3: 0.25, 1: 0.75}]
    empty = zip_map(x[:0], classlabels_int64s=(3, 1), classlabels_strings=None)
    assert empty == []
    assert empty.element_type == MapType(np.dtype(np.int64), TensorType(x.dtype))
    with pytest.raises(ValueError, match="2 columns for 1 labels"):
        zip_map(x, classlabels_int64s=(3,), classlabels_strings=None)
    with pytest.raises(ValueError, match="expected one of"):
        zip_map(x, classlabels_int64s=(3, 1), classlabels_strings=("a", "b"))
