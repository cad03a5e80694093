"""RegexFullMatch: RE2's own rules by example, Python's engine where the two agree, and the time patterns take."""

import re
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxeval.ops.text._re2 import compiled
from onnxeval.registry import OpKey, Registry

kernel = Registry.standard()[OpKey("", "RegexFullMatch", 20)]


def test_shapes():
    x = np.array([["ab", "abc"], ["", "a\nb"]], object)
    got = kernel(x, pattern="a.?b?")
    assert got.dtype == np.bool_
    assert got.tolist() == [[True, False], [False, False]]
    assert kernel(np.array("x", object), pattern="x").shape == ()
    assert kernel(np.zeros((0, 2), object), pattern="x").shape == (0, 2)
    with pytest.raises(ValueError, match="missing"):
        kernel(x, pattern=None)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("", [""], ["a", "\n"]),
        ("a|b|", ["a", "b", ""], ["ab"]),
        (".", ["a", "é", "𐐀"], ["\n", "", "ab"]),
        ("(?s).", ["\n"], [""]),
        ("a$", ["a"], ["a\n"]),  # $ is the very end
        ("^a", ["a"], ["\na"]),
        ("(?m)a$\n^b", ["a\nb"], ["ab"]),
        (r"\Aa\z", ["a"], ["a\n"]),
        (r"a\b-\Bb?", ["a-"], ["a-b"]),
        (r"\d\w\s", ["1_ ", "9z\f"], ["١_ ", "1é ", "1a\v"]),  # ASCII alone, and no vertical tab
        (r"\D\W\S", ["aéa", "\n\nx"], ["1é ", "aaa"]),
        ("[[:alpha:]_]+", ["aZ_"], ["1", "é"]),
        ("[[:^digit:]]", ["a", "é"], ["5"]),
        ("[]a-]+", ["]a-"], ["b"]),
        ("[^]a]", ["b", "\n"], ["]", "a"]),
        (r"[a\-c]+", ["a-c"], ["b"]),
        ("[a-c-e]+", ["abc-e"], ["d"]),
        (r"[\pL\d]+", ["aé1"], ["_"]),
        (r"\pN\p{Lu}\PL\p{^Lu}\P{^Lu}", ["²É_aÉ"], ["aÉ_aÉ"]),
        (r"[^\pL]", ["1"], ["é"]),
        (r"\x41\x{e9}\101\n\.\_", ["AéA\n._"], ["A"]),
        (r"\Qa*b\E+", ["a*bbb"], ["a*ba*b"]),
        (r"\Qa*", ["a*"], ["aa"]),
        ("a{2}", ["aa"], ["a", "aaa"]),
        ("a{2,}", ["aa", "aaaa"], ["a"]),
        ("a{1,3}?", ["a", "aaa"], ["", "aaaa"]),
        ("a{0}b", ["b"], ["ab"]),
        ("a{,2}{", ["a{,2}{"], ["aa"]),  # braces that count nothing stand for themselves
        ("a{01}", ["a{01}"], ["a"]),
        ("}]", ["}]"], []),
        ("(?i)k(?-i)k", ["kk", "Kk", "\u212ak"], ["kK"]),  # \u212a is the sign of the kelvin
        ("(?i:S)s", ["ſs", "Ss"], ["sS"]),
        ("(?i)[^k]", ["a"], ["k", "K", "\u212a"]),
        (r"(?i)\W", ["-"], ["ſ", "a"]),
        ("(?i)straße", ["STRAßE", "STRAẞE"], ["STRASSE"]),
        ("(a(?i)b)b", ["abb", "aBb"], ["abB"]),
        ("(?P<year>[0-9]{4})-(?<month>[0-9]{2})", ["2024-02"], ["24-02"]),
        ("(?U)a+(?ms-i)b", ["aab"], ["b"]),
        ("(a|ab)(c|bcd)(d*)", ["abcd", "acddd"], ["abd"]),
        ("()*|(|a)+", ["", "aaa"], ["b"]),
        ("(^|b)*a(?:$)+", ["a", "bba"], ["ab"]),
    ],
)
def test_the_rules_of_re2(pattern, yes, no):
    got = kernel(np.array([*yes, *no], object), pattern=pattern)
    assert got.tolist() == [True] * len(yes) + [False] * len(no)


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "a)", "(a", "[a", "[]", "[^]", "[z-a]", r"[a-\d]", "[[:foo:]]", "[[:alpha:]"),
        *("*", "+a", "|*", "(?)*", "a**", "a*+", "a+?*", "a{2}{3}", "{1}", "a{1001}", "a{3,2}", "(a{100}){100}"),
        *("\\", r"\8", r"\1", r"\E", r"\G", r"\Z", r"\e", r"\h", r"\x", r"\x{110000}", r"\xg0", "\\é"),
        *(
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?<!a)",
            "(?P=n)",
            "(?P<n",
            "(?P<>a)",
            "(?x)a",
            "(?-)a",
            "(?i",
            "(?#a)",
            "(?>a)",
        ),
        *(r"\p", r"\p{", r"\p{Lu", r"\p{Greek}", r"\p{Cn}", r"\pX", r"\C"),
        "(" * 2000 + ")" * 2000,
        "((a{1,1000}b{1,1000})(c{1,1000}))" * 20,
    ],
)
def test_invalid_patterns(pattern):
    with pytest.raises(ValueError, match="regular expression"):
        kernel(np.array(["a"], object), pattern=pattern)


#: Patterns that mean the same in Python, but for the time they take; its \B finds nothing in an empty string.
COMMON = st.recursive(
    st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", "(?:)", r"\b", r"\n", "a|b"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,2}", "{0,}"])).map("(?:{0[0]}){0[1]}".format),
    ),
    max_leaves=8,
)


@given(COMMON, st.text("abc \n", max_size=6))
@settings(max_examples=300, deadline=None)
def test_python_agrees(pattern, text):
    assert compiled(pattern).full_match(text) == (re.fullmatch(pattern, text, re.ASCII) is not None)


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*)(.*)(.*)(.*)[^a]", "((a{0,30}){0,30})b"])
def test_no_pattern_backtracks(pattern):
    started = time.process_time()
    assert not compiled(pattern).full_match("a" * 5000)
    assert time.process_time() - started < 5


def test_the_kept_steps_are_bounded():
    pattern = compiled("(?:[^a]|a.{12})*")
    text = "".join(np.random.default_rng(0).choice(list("ab"), 20000))
    pattern.full_match(text)
    assert sum(len(states) for states in pattern._steps.values()) < 600_000


def test_against_onnxruntime():
    onnxruntime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    texts = np.array(["", "a", "ab", "aB", "a1_", "é", "a\n", "k\u212a", "1-2", "]", "[:alpha:]"], object)
    for pattern in (
        r"\w*",
        "(?i)ab?",
        r"[[:alpha:]]",
        r"[^\d]+",
        "a$",
        "(?i)k+",
        r"\pL+",
        ".*",
        "(?s).*",
        "[]]",
        r"\d-\d",
    ):
        node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
        x = helper.make_tensor_value_info("x", TensorProto.STRING, [None])
        y = helper.make_tensor_value_info("y", TensorProto.BOOL, [None])
        graph = helper.make_graph([node], "g", [x], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(kernel(texts, pattern=pattern), session.run(None, {"x": texts})[0], pattern)
