"""Strategies of text, and of generators, whose numbers are random by definition."""

from __future__ import annotations

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, element_of, strategy
from onnx import TensorProto, helper

from onnxeval.dtypes import ELEMENT_TYPES, STRING


@strategy("StringConcat")
def string_concat(d: Drawing) -> Node:
    shape = d.shape()
    return d.node(d.array(STRING, shape), d.array(STRING, d.partner(shape)))


@strategy("StringNormalizer")
def string_normalizer(d: Drawing) -> Node:
    shape = d.one_of((d.size(1),), (1, d.size(1)))
    options = d.some(
        case_change_action=d.one_of("LOWER", "UPPER", "NONE"),
        is_case_sensitive=d.integer(0, 1),
        stopwords=d.one_of(["a"], ["a", "é"], ["AB", "1"]),
    )
    return d.node(d.array(STRING, shape), locale="C.UTF-8", **options)


@strategy("StringSplit")
def string_split(d: Drawing) -> Node:
    words = np.array(["a b", "a  b c", "", " a ", "a,b,,c", ",", "a--b--c", "é b"], object)
    x = np.asarray(words[d.integers(d.shape(0, 2), 0, len(words) - 1)], object)
    options = d.some(delimiter=d.one_of(",", "--", " ", ""), maxsplit=d.integer(0, 2))
    return d.node(x, wanted=(True, True), **options)


@strategy("RegexFullMatch")
def regex(d: Drawing) -> Node:
    pattern = d.one_of("a", "a?b?", "[ab]+", "(a|b)*", ".", "..", r"\d", "é", "(?i)A", "a b", "^a$", r"\w+", "")
    return d.node(d.array(STRING, d.shape(0, 2)), pattern=pattern)


@strategy("TfIdfVectorizer", ulps=4)
def tf_idf(d: Drawing) -> Node:
    dtype = d.dtype(0)
    grams = [[d.integer(0, 3) for _ in range(n)] for n in (1, 1, 2, 2, 3)]
    grams[1], grams[3] = [(grams[0][0] + 1) % 4], [(grams[2][0] + 1) % 4, grams[3][1]]  # none twice
    pool = [number for gram in grams for number in gram]
    shape = (d.integer(1, 6),) if d.flag() else (d.integer(1, 2), d.integer(1, 6))
    x = d.integers(shape, 0, 4)
    least = d.integer(1, 2)
    options: dict[str, object] = {"pool_int64s": pool}
    if dtype == STRING:
        words = np.array(["a", "b", "c", "d", "e"], object)
        options, x = {"pool_strings": [words[i] for i in pool]}, words[x]
    return d.node(
        x if dtype == STRING else x.astype(dtype),
        mode=d.one_of("TF", "IDF", "TFIDF"),
        min_gram_length=least,
        max_gram_length=d.integer(least, 3),
        max_skip_count=d.integer(0, 2),
        ngram_counts=[0, 2, 6],
        ngram_indexes=d.permutation(5),
        **options,
        **d.some(weights=[0.5, 1.0, 2.0, 0.25, 1.5]),
    )


@strategy("RandomNormal", "RandomUniform", values=False)
def random_shape(d: Drawing) -> Node:
    return d.node(shape=list(d.shape(1)), **d.some(dtype=d.one_of(1, 11, 10), seed=1.0, scale=2.0, high=3.0))


@strategy("RandomNormalLike", "RandomUniformLike", values=False)
def random_like(d: Drawing) -> Node:
    x = d.tensor(0, d.shape())
    dtype = None if x.dtype in (np.float32, np.float64, np.float16) and d.flag() else d.one_of(1, 11, 10)
    return d.node(x, dtype=dtype, **d.some(seed=1.0))


@strategy("Bernoulli", values=False)
def bernoulli(d: Drawing) -> Node:
    x = d.integers(d.shape(), 0, 4) / 4
    return d.node(np.asarray(x).astype(d.dtype(0)), **d.some(dtype=d.one_of(1, 7, 9, 11, 6), seed=1.0))


@strategy("Multinomial", values=False)
def multinomial(d: Drawing) -> Node:
    x = d.integers((d.size(1), d.size(1)), 0, 4) / 4
    options = d.some(dtype=d.one_of(6, 7), sample_size=d.integer(1, 5), seed=1.0)
    return d.node(x.astype(d.dtype(0)), **options)


def packed(name: str, array: np.ndarray) -> TensorProto:
    """An array as the value of a tensor attribute."""
    values = [str(x).encode() for x in array.ravel()] if array.dtype == STRING else array
    return helper.make_tensor(name, ELEMENT_TYPES[array.dtype], array.shape, values)


def types_of_output(d: Drawing) -> list[int]:
    return sorted(ELEMENT_TYPES[element_of(name)] for name in d.schema.outputs[0].allowed)
