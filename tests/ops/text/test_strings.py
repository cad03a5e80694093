"""StringConcat, StringSplit and StringNormalizer."""

import numpy as np
import pytest

from onnxeval.registry import OpKey, Registry


def kernel(op_type, version=20):
    return Registry.standard()[OpKey("", op_type, version)]


def strings(values):
    return np.array(values, object)


def test_concat():
    got = kernel("StringConcat")(strings([["a"], [""]]), strings(["x", "é", ""]))
    assert got.dtype == object
    assert got.tolist() == [["ax", "aé", "a"], ["x", "é", ""]]
    one = kernel("StringConcat")(strings("a"), strings("b"))
    assert isinstance(one, np.ndarray)
    assert (one.shape, one.item()) == ((), "ab")
    assert kernel("StringConcat")(strings([]), strings("b")).shape == (0,)
    with pytest.raises(ValueError, match="broadcast"):
        kernel("StringConcat")(strings(["a", "b"]), strings(["a", "b", "c"]))


@pytest.mark.parametrize(
    ("x", "delimiter", "maxsplit", "parts"),
    [
        (["abc.com", "def.net"], ".", None, [["abc", "com"], ["def", "net"]]),
        (["o-n-n--x-", "o-n----nx"], "-", None, [["o", "n", "n", "", "x", ""], ["o", "n", "", "", "", "nx"]]),
        (
            ["hello world !", "  hello   world !", " a\t\nb "],
            "",
            None,
            [["hello", "world", "!"], ["hello", "world", "!"], ["a", "b"]],
        ),
        (["the quick brown fox", "x"], None, 2, [["the", "quick", "brown fox"], ["x"]]),
        ([" a b  c "], None, 1, [["a", "b  c"]]),
        ([" a b "], None, 0, [["a b"]]),
        (["a--b--c"], "--", 1, [["a", "b--c"]]),
        (["a,b"], ",", 0, [["a,b"]]),
        (["", "a"], ",", None, [[""], ["a"]]),
        (["", "  "], None, None, [[], []]),
    ],
)
def test_split(x, delimiter, maxsplit, parts):
    substrings, counts = kernel("StringSplit")(strings(x), delimiter=delimiter, maxsplit=maxsplit)
    width = max(map(len, parts))
    assert substrings.dtype == object
    assert substrings.shape == (len(x), width)
    assert substrings.tolist() == [one + [""] * (width - len(one)) for one in parts]
    assert (counts.dtype, counts.tolist()) == (np.int64, [len(one) for one in parts])


def test_split_of_other_shapes():
    substrings, counts = kernel("StringSplit")(strings([["a b", "c"], ["", "d e f"]]), delimiter=None, maxsplit=None)
    assert substrings.tolist() == [[["a", "b", ""], ["c", "", ""]], [["", "", ""], ["d", "e", "f"]]]
    assert counts.tolist() == [[2, 1], [0, 3]]
    substrings, counts = kernel("StringSplit")(strings("a b"), delimiter=None, maxsplit=None)
    assert (substrings.tolist(), counts.shape, counts.item()) == (["a", "b"], (), 2)
    substrings, counts = kernel("StringSplit")(np.zeros((2, 0), object), delimiter=None, maxsplit=None)
    assert (substrings.shape, counts.shape) == ((2, 0, 0), (2, 0))
    with pytest.raises(ValueError, match="maxsplit -1"):
        kernel("StringSplit")(strings(["a"]), delimiter=None, maxsplit=-1)


def normalise(x, stopwords=None, is_case_sensitive=0, case_change_action="NONE", locale=None):
    return kernel("StringNormalizer", 10)(
        strings(x),
        stopwords=stopwords,
        is_case_sensitive=is_case_sensitive,
        case_change_action=case_change_action,
        locale=locale,
    )


DAYS = ["Monday", "tuesday", "WEDNESDAY", "Émile"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, DAYS),
        ({"case_change_action": "LOWER"}, ["monday", "tuesday", "wednesday", "émile"]),
        ({"case_change_action": "UPPER"}, ["MONDAY", "TUESDAY", "WEDNESDAY", "ÉMILE"]),
        ({"stopwords": ("monday", "Tuesday")}, ["WEDNESDAY", "Émile"]),
        ({"stopwords": ("monday", "tuesday"), "is_case_sensitive": 1}, ["Monday", "WEDNESDAY", "Émile"]),
        (
            {"stopwords": ("éMILE",), "case_change_action": "UPPER", "locale": "de_DE"},
            ["MONDAY", "TUESDAY", "WEDNESDAY"],
        ),
        ({"stopwords": tuple(DAYS)}, [""]),
    ],
)
def test_normalise(given, wanted):
    assert normalise(DAYS, **given).tolist() == wanted
    got = normalise([DAYS], **given)
    assert (got.dtype, got.tolist()) == (object, [wanted])


def test_normalise_edges_and_refusals():
    assert normalise(np.zeros(0, object)).tolist() == [""]
    assert normalise(np.zeros((1, 0), object)).tolist() == [[""]]
    for shape in ((), (2, 1), (1, 1, 1)):
        with pytest.raises(ValueError, match="expected"):
            normalise(np.full(shape, "a", object))
    with pytest.raises(ValueError, match="'TITLE'"):
        normalise(DAYS, case_change_action="TITLE")
    with pytest.raises(ValueError, match="tr_TR"):
        normalise(DAYS, case_change_action="UPPER", locale="tr_TR")
    assert normalise(DAYS, is_case_sensitive=1, locale="tr_TR").tolist() == DAYS
