import math

import numpy as np
import pytest

from onnxeval.errors import ResourceLimitError
from onnxeval.ops.traditionalml.features import (
    array_feature_extractor,
    binarizer,
    feature_vectorizer,
    imputer,
    normalizer,
    one_hot_encoder,
    scaler,
)

NUMBERS = [np.float32, np.float64, np.int32, np.int64]


def f32(values):
    return np.array(values, np.float32).tolist()


# ArrayFeatureExtractor


def test_extractor():
    x = np.arange(24).reshape(2, 3, 4)
    assert array_feature_extractor(x, np.array([3, 0, 3])).tolist() == x[..., [3, 0, 3]].tolist()
    assert array_feature_extractor(x, np.array([[1], [2]])).tolist() == x[..., [1, 2]].tolist()
    words = array_feature_extractor(np.array(["a", "b", "c"], object), np.array([2]))
    assert words.tolist() == [["c"]]
    assert words.dtype == object
    assert array_feature_extractor(x, np.zeros(0, np.int64)).shape == (2, 3, 0)


@pytest.mark.parametrize("index", [4, -1])
def test_extractor_refuses(index):
    with pytest.raises(ValueError, match=rf"index {index} is outside \[0, 3\]"):
        array_feature_extractor(np.zeros((2, 4)), np.array([0, index]))
    with pytest.raises(ValueError, match="scalar"):
        array_feature_extractor(np.array(1.0), np.array([0]))


# Binarizer


@pytest.mark.parametrize("dtype", NUMBERS)
def test_binarizer(dtype):
    x = np.array([[-2, -1, 0], [1, 2, 3]], dtype)
    for threshold in (1.0, 1.5, -1.0, -1.5, math.inf, -math.inf):
        got = binarizer(x, threshold=threshold)
        assert got.dtype == dtype
        assert got.tolist() == [[int(v > threshold) for v in row] for row in x.tolist()]


def test_binarizer_is_exact_and_nan_is_not_above():
    assert binarizer(np.array([2**53 + 1, 2**53]), threshold=2.0**53).tolist() == [1, 0]
    assert binarizer(np.array([np.nan, 1], np.float32), threshold=0.0).tolist() == [0, 1]


# FeatureVectorizer


def test_vectorizer():
    one, two = np.array([[1, 2], [3, 4]]), np.array([[5], [6]])
    got = feature_vectorizer(one, two, inputdimensions=(2, 1))
    assert got.dtype == np.float32
    assert got.tolist() == [[1, 2, 5], [3, 4, 6]]
    assert feature_vectorizer(np.array([1.5, 2]), np.array([[3.0]]), inputdimensions=None).tolist() == [[1.5, 2, 3]]


@pytest.mark.parametrize(
    ("shapes", "dimensions", "message"),
    [
        ([(2, 2), (2, 1)], (1, 2), r"\[2, 1\] columns"),
        ([(2, 2), (2, 1)], (3,), r"\[2, 1\] columns"),
        ([(2, 2), (3, 1)], None, r"\[2, 3\] rows"),
        ([(2, 2, 1)], None, "rank 3"),
    ],
)
def test_vectorizer_refuses(shapes, dimensions, message):
    with pytest.raises(ValueError, match=message):
        feature_vectorizer(*map(np.zeros, shapes), inputdimensions=dimensions)


# Imputer

IMPUTER = {
    "replaced_value_float": 0.0,
    "replaced_value_int64": 0,
    "imputed_value_floats": None,
    "imputed_value_int64s": None,
}


@pytest.mark.parametrize("dtype", NUMBERS)
def test_imputer(dtype):
    kind, other, number = ("int64", "float", int) if np.dtype(dtype).kind == "i" else ("float", "int64", float)

    def imputed(x, *values, name=kind):
        return imputer(x, **{**IMPUTER, f"imputed_value_{name}s": values, f"replaced_value_{kind}": number(2)})

    x = np.array([[[2, 1], [0, 2]]], dtype)
    one = imputed(x, number(7))
    assert one.dtype == dtype
    assert one.tolist() == [[[7, 1], [0, 7]]]
    assert imputed(x, number(7), number(8)).tolist() == [[[7, 1], [0, 8]]]
    assert imputed(x[0, 0, 0], number(7)).tolist() == 7
    with pytest.raises(ValueError, match="3 imputed values for 2 features"):
        imputed(x, number(1), number(2), number(3))
    with pytest.raises(ValueError, match="none given"):
        imputed(x)
    with pytest.raises(ValueError, match="imputed values are"):
        imputed(x, 1 if kind == "float" else 1.0, name=other)
    with pytest.raises(ValueError, match="expected one of"):
        imputer(x, **{**IMPUTER, "imputed_value_floats": (1.0,), "imputed_value_int64s": (1,)})


def test_imputer_nan_and_widths():
    x = np.array([[np.nan, 2], [3, np.nan]])
    filled = imputer(x, **{**IMPUTER, "replaced_value_float": math.nan, "imputed_value_floats": (7.0, 8.0)})
    assert filled.tolist() == [[7, 2], [3, 8]]
    with pytest.raises(ValueError, match=f"{2**31} does not fit int32"):
        imputer(np.zeros(1, np.int32), **{**IMPUTER, "imputed_value_int64s": (2**31,)})
    untouched = imputer(
        np.array([0], np.int32), **{**IMPUTER, "replaced_value_int64": 2**32, "imputed_value_int64s": (1,)}
    )
    assert untouched.tolist() == [0]


# Normalizer


@pytest.mark.parametrize("dtype", NUMBERS)
def test_normalizer(dtype):
    x = np.array([[1, 4, 2], [0, 0, 0], [3, 0, 4]], dtype)
    for norm, divisor in {"MAX": max, "L1": sum, "L2": lambda row: math.hypot(*row)}.items():
        got = normalizer(x, norm=norm)
        assert got.dtype == np.float32
        wanted = [[v / (divisor(row) or 1) for v in row] for row in x.tolist()]
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
        np.testing.assert_array_equal(normalizer(x[2], norm=norm), got[2])


def test_normalizer_of_negative_numbers():
    x = np.array([[1, -4, 2], [1, -1, 0]], np.float32)
    assert normalizer(x, norm="MAX").tolist() == [[0.5, -2, 1], [1, -1, 0]]
    np.testing.assert_allclose(normalizer(x, norm="L1"), [[1 / 7, -4 / 7, 2 / 7], [0.5, -0.5, 0]], rtol=1e-6)
    np.testing.assert_allclose(normalizer(x, norm="L2")[1], [0.5**0.5, -(0.5**0.5), 0], rtol=1e-6)
    assert normalizer(np.zeros((2, 0)), norm="MAX").shape == (2, 0)
    with pytest.raises(ValueError, match="norm 'L3'"):
        normalizer(x, norm="L3")
    with pytest.raises(ValueError, match="rank 3"):
        normalizer(np.zeros((1, 1, 1)), norm="L1")


# OneHotEncoder


def encoded(x, ints=None, strings=None, zeros=1, allocate=np.empty):
    return one_hot_encoder(x, cats_int64s=ints, cats_strings=strings, zeros=zeros, allocate=allocate)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_one_hot(dtype):
    got = encoded(np.array([[1, 3], [9, 2]], dtype), ints=(1, 2, 3))
    assert got.dtype == np.float32
    assert got.tolist() == [[[1, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 1, 0]]]
    assert encoded(np.array(2, dtype), ints=(1, 2, 3)).tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match=r"9.* none of the categories"):
        encoded(np.array([1, 9], dtype), ints=(1, 2, 3), zeros=0)


def test_one_hot_of_strings_and_of_fractions():
    assert encoded(np.array(["b", "?"], object), strings=("a", "b")).tolist() == [[0, 1], [0, 0]]
    odd = np.array([1.9, -1.9, np.nan, np.inf, 1e30, 0.5])
    assert encoded(odd, ints=(-1, 0, 1)).tolist() == [[0, 0, 1], [1, 0, 0], *[[0, 0, 0]] * 3, [0, 1, 0]]
    for x, given in ((np.array([1]), {"strings": ("a",)}), (np.array(["a"], object), {"ints": (1,)})):
        with pytest.raises(ValueError, match="the categories are"):
            encoded(x, **given)
    with pytest.raises(ValueError, match="expected one of"):
        encoded(odd, ints=(1,), strings=("a",))

    def refuse(shape, dtype):
        raise ResourceLimitError(str(shape))

    with pytest.raises(ResourceLimitError):
        encoded(odd, ints=(1,), allocate=refuse)


# Scaler


@pytest.mark.parametrize("dtype", NUMBERS)
def test_scaler(dtype):
    x = np.array([[1, 2], [3, 4]], dtype)
    got = scaler(x, offset=(1.0, 2.0), scale=(0.5, 3.0))
    assert got.dtype == np.float32
    assert got.tolist() == [[0, 0], [1, 6]]
    assert scaler(x, offset=(1.0,), scale=(2.0,)).tolist() == [[0, 2], [4, 6]]
    assert scaler(x, offset=None, scale=(2.0,)).tolist() == [[2, 4], [6, 8]]
    assert scaler(x, offset=(1.0,), scale=None).tolist() == [[0, 1], [2, 3]]
    assert scaler(x[0, 0], offset=(1.0,), scale=(2.0,)).tolist() == 0
    assert scaler(x[0], offset=(1.0, 2.0), scale=(1.0, 1.0)).tolist() == [0, 0]


def test_scaler_rounds_once():
    x = np.array([2**24 + 1])
    assert scaler(x, offset=(2.0**24,), scale=(1.0,)).tolist() == [1]
    for wrong in ({"offset": (1.0,), "scale": (1.0, 2.0)}, {"offset": (1.0, 2.0), "scale": (1.0, 2.0)}):
        with pytest.raises(ValueError, match=r"same length|2 elements for 1 features"):
            scaler(x, **wrong)
