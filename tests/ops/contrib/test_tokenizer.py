"""Tokenizer: the examples of its text, what re finds, and onnxruntime."""

import re

import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError
from onnxeval.ops.text._re2 import Pattern


def texts(*lines):
    return np.array(lines, object)


WORDS = texts("Hello World", "I love computer science !", "", "a  b")
FIXED = {"mark": 0, "mincharnum": 1, "pad_value": "#"}


def tokens(x, **attributes):
    return ours("Tokenizer", [x], **(FIXED | attributes)).tolist()


def test_examples_of_the_text() -> None:
    assert tokens(WORDS[:2], separators=[" "]) == [
        ["Hello", "World", "#", "#", "#"],
        ["I", "love", "computer", "science", "!"],
    ]
    assert tokens(texts("Hello"), separators=[" "], mark=1) == [["\x02", "Hello", "\x03"]]
    assert tokens(texts("añ", "b"), separators=[""]) == [["a", "ñ"], ["b", "#"]]
    assert tokens(texts("añ", "b"), tokenexp=".") == [["a", "ñ"], ["b", "#"]]


@pytest.mark.parametrize("least", [1, 2, 4])
def test_separators_cut_one_after_the_other(least) -> None:
    for separators in ([" "], [" ", "o"], ["l+", "o| "], ["c[a-z]", " +"]):
        rows = []
        for text in WORDS:
            pieces = [text]
            for separator in separators:
                pieces = [part for piece in pieces for part in re.split(separator, piece) if len(part) >= least]
            rows.append(pieces)
        most = max(map(len, rows))
        expected = [row + ["#"] * (most - len(row)) for row in rows]
        assert tokens(WORDS, separators=separators, mincharnum=least) == expected


CASES = [
    (WORDS, {"separators": [" ", "o"], "mark": 1, "mincharnum": 2}),
    (WORDS, {"tokenexp": "[a-z]+", "mark": 1}),
    (WORDS, {"tokenexp": "a|ab|[a-z]o", "mincharnum": 2}),
    (texts("añb日本", "x"), {"separators": [""], "mark": 1}),
    (texts("añb日本", "x"), {"separators": ["日"], "mincharnum": 2}),
    (texts("", "  "), {"separators": [" "], "mark": 1}),
    (texts("", ""), {"separators": [""]}),
    (texts("12"), {"tokenexp": "[a-z]", "mark": 1}),
    (texts("aabxb", "bb"), {"separators": ["x*"]}),
    (texts("aabxb", "bb"), {"tokenexp": "a*"}),
    (texts("aaa"), {"separators": ["^a"]}),
    (texts("aaa"), {"tokenexp": "^a"}),
    (texts("ab cd"), {"tokenexp": r"\b\w"}),
    (np.array([["a b", "c"], ["d", "e f g"]], object), {"separators": [" "]}),
    (np.zeros(0, object), {"separators": [" "]}),
    (np.zeros((2, 0), object), {"separators": [" "]}),
    (texts("a\nb c"), {"tokenexp": ".+"}),
    (texts("abab abb"), {"tokenexp": "a(b|bb|ab)*"}),
    (texts("Abc"), {"tokenexp": "(?i)ABC"}),
    (texts("foo123bar"), {"separators": ["[0-9]"]}),
]


@pytest.mark.parametrize(("x", "attributes"), CASES)
def test_onnxruntime(x, attributes) -> None:
    assert_agree("Tokenizer", [x], **(FIXED | attributes))


@pytest.mark.parametrize(
    ("x", "attributes", "message"),
    [
        (np.array([[["a"]]], object), {"separators": [" "]}, r"shape \[1, 1, 1\], expected \[C\] or \[N, C\]"),
        (texts("a"), {}, "one of separators and tokenexp"),
        (texts("a"), {"separators": ["b"], "tokenexp": "a"}, "one of separators and tokenexp"),
        (texts("a"), {"separators": ["("]}, "missing"),
        (texts("a"), {"separators": [""], "mincharnum": 2}, "mincharnum 2 leaves no token of one character"),
        (texts("a"), {"separators": [" "], "mincharnum": 0}, "mincharnum 0 is not positive"),
    ],
)
def test_faults(x, attributes, message) -> None:
    with pytest.raises(NodeError, match=message):
        ours("Tokenizer", [x], **(FIXED | attributes))


@pytest.mark.parametrize("pattern", ["a|ab|abc", "b*", "^a", "a$", r"\bb", "(a|b)+c", "x", "a.c|b", "(ab)*"])
@pytest.mark.parametrize("text", ["", "abcabc", "aab", "cab\nabc", "b ab"])
def test_search_finds_the_first_and_longest(pattern, text) -> None:
    compiled, ours_of = Pattern(pattern), re.compile(pattern if pattern != "a$" else r"a\Z")
    for start in range(len(text) + 1):
        found = None
        for begin in range(start, len(text) + 1):
            ends = [e for e in range(begin, len(text) + 1) if matches_between(ours_of, text, begin, e)]
            if ends:
                found = begin, max(ends)
                break
        assert compiled.search(text, start) == found


def matches_between(pattern, text, begin, end):
    """Whether the part matches as a whole where it stands; a lookahead says how much may follow."""
    exact = re.compile(f"(?:{pattern.pattern})(?<=\\A[\\s\\S]{{{end}}})")
    return (match := exact.match(text, begin)) is not None and match.end() == end


def test_a_search_that_finds_nothing_takes_time_in_proportion() -> None:
    assert Pattern("(a|aa)*b").search("a" * 3000) is None
