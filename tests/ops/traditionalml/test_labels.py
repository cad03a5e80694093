import numpy as np
import pytest

from onnxeval.ops.traditionalml.labels import (
    category_mapper,
    label_encoder,
    label_encoder_bitwise,
    label_encoder_list,
)

DEFAULTS = {"default_float": -0.0, "default_int64": -1, "default_string": "_Unused"}
TWO = {f"{side}_{kind}": None for side in ("keys", "values") for kind in ("floats", "int64s", "strings")} | DEFAULTS
FOUR = {**TWO, "keys_tensor": None, "values_tensor": None, "default_tensor": None}


def strings(*values):
    return np.array(values, object)


def test_version_1_numbers_a_list():
    options = {"classes_strings": ("a", "b", "a"), "default_int64": -7, "default_string": "?"}
    assert label_encoder_list(strings("b", "a", "c"), **options).tolist() == [1, 2, -7]
    assert label_encoder_list(np.array([[0, 1], [3, -1]]), **options).tolist() == [["a", "b"], ["?", "?"]]
    assert label_encoder_list(np.array([0]), **{**options, "classes_strings": None}).tolist() == ["?"]


def test_category_mapper():
    options = {"cats_int64s": (5, 9), "cats_strings": ("x", "y"), "default_int64": -1, "default_string": "?"}
    back = category_mapper(np.array([[9], [4]]), **options)
    assert back.tolist() == [["y"], ["?"]]
    assert back.dtype == object
    there = category_mapper(strings("x", "z"), **options)
    assert there.tolist() == [5, -1]
    assert there.dtype == np.int64
    with pytest.raises(ValueError, match="2 keys and 1 values"):
        category_mapper(there, **{**options, "cats_strings": ("x",)})


@pytest.mark.parametrize(("kernel", "plain"), [(label_encoder_bitwise, TWO), (label_encoder, FOUR)])
def test_every_kind_of_key_and_value(kernel, plain):
    lists = {"floats": (0.5, 2.0, np.inf), "int64s": (7, -2, 2**60), "strings": ("a", "", "é")}
    dtypes = {"floats": np.float32, "int64s": np.int64, "strings": object}
    missing = {"floats": 99, "int64s": 99, "strings": "no"}
    default = {"floats": -0.0, "int64s": -1, "strings": "_Unused"}
    for keys, values in ((k, v) for k in lists for v in lists):
        x = np.array([[*lists[keys], missing[keys]]], dtypes[keys])
        got = kernel(x, **{**plain, f"keys_{keys}": lists[keys], f"values_{values}": lists[values]})
        assert got.dtype == dtypes[values]
        assert got.tolist() == [[*lists[values], default[values]]]
    scalar = kernel(np.array(2), **{**plain, "keys_int64s": (2,), "values_strings": ("two",)})
    assert scalar.tolist() == "two"


def test_version_2_compares_bits():
    nan, other = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    x = np.array([nan, other, 0.0, -0.0], np.float32)
    got = label_encoder_bitwise(x, **{**TWO, "keys_floats": (float(nan), 0.0), "values_int64s": (1, 2)})
    assert got.tolist() == [1, -1, 2, -1]


def test_version_4_has_one_nan_and_the_last_key_counts():
    nan, other = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)
    x = np.array([nan, other, 0.0, -0.0, 1.0], np.float32)
    got = label_encoder(x, **{**FOUR, "keys_floats": (float(nan), 0.0, 1.0, 1.0), "values_int64s": (1, 2, 3, 4)})
    assert got.tolist() == [1, 1, 2, 2, 4]
    words = label_encoder(strings("a"), **{**FOUR, "keys_strings": ("a", "a"), "values_floats": (1.0, 2.0)})
    assert words.tolist() == [2]


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.float64, object])
def test_tensors(dtype):
    words = strings("p", "q", "r")
    numbers = np.array([1, 2, 3], np.int16 if dtype is object else dtype)
    keys = words if dtype is object else numbers
    x = keys[[1, 0, 2]].copy()
    x[2] = "?" if dtype is object else 77
    got = label_encoder(x, **{**FOUR, "keys_tensor": keys, "values_tensor": numbers[::-1]})
    assert got.dtype == numbers.dtype
    assert got.tolist() == [2, 3, -0.0 if dtype is np.float64 else -1]
    own = {**FOUR, "keys_tensor": keys, "values_tensor": words, "default_tensor": strings("none")}
    assert label_encoder(x, **own).tolist() == ["q", "p", "none"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keys_int64s": (1,)}, "none given, expected one of values_floats"),
        ({"keys_int64s": (1,), "keys_strings": ("a",), "values_int64s": (1,)}, "keys_int64s and keys_strings given"),
        ({"keys_int64s": (1, 2), "values_int64s": (1,)}, "2 keys and 1 values"),
        ({"keys_strings": ("a",), "values_int64s": (1,)}, "keys are string, the input is int64"),
        ({"keys_int64s": (1,), "values_tensor": np.ones((1, 1))}, "values_tensor has rank 2"),
        ({"keys_int64s": (1,), "values_int64s": (1,), "default_tensor": np.ones(1)}, "default_tensor is float64"),
        ({"keys_int64s": (1,), "values_int64s": (1,), "default_tensor": np.arange(2)}, r"default_tensor is int64\[2\]"),
    ],
)
def test_errors(given, message):
    with pytest.raises(ValueError, match=message):
        label_encoder(np.array([1]), **{**FOUR, **given})
