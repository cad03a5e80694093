"""TfIdfVectorizer against counting by hand."""

import numpy as np
import pytest

from onnxeval.registry import OpKey, Registry

kernel = Registry.standard()[OpKey("", "TfIdfVectorizer", 9)]
WORDS = ("a", "b", "c", "d")
GRAMS = [(0,), (2,), (0, 1), (1, 1), (3, 2), (0, 2, 1), (1, 1, 1)]


def run(x, **given):
    pool = [token for gram in GRAMS for token in gram]
    attributes = {
        "mode": "TF",
        "min_gram_length": 1,
        "max_gram_length": 3,
        "max_skip_count": 0,
        "ngram_counts": (0, 2, 8),
        "ngram_indexes": (3, 0, 1, 2, 6, 5, 4),
        "pool_int64s": tuple(pool),
        "pool_strings": None,
        "weights": None,
        **given,
    }
    return kernel(x, **attributes, allocate=np.empty)


def counted(tokens, least, most, skips):
    """How often each of GRAMS stands in ``tokens``, a window at a time."""
    counts = np.zeros(len(GRAMS))
    for number, gram in enumerate(GRAMS):
        if least <= len(gram) <= most:
            for skip in range(skips + 1 if len(gram) > 1 else 1):
                for at in range(len(tokens)):
                    places = [at + i * (skip + 1) for i in range(len(gram))]
                    if places[-1] < len(tokens):
                        counts[number] += tuple(tokens[p] for p in places) == gram
    return counts


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(("least", "most"), [(1, 1), (1, 2), (2, 2), (2, 3), (3, 3)])
@pytest.mark.parametrize("skips", [0, 1, 3, 10**12])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, object])
def test_every_mode(mode, least, most, skips, dtype):
    x = np.random.default_rng(skips % 7).integers(0, 4, (3, 9))
    weights = (0.5, 1, 2, 3, 0.25, 1.5, 4)
    tokens = np.array(WORDS, object)[x] if dtype is object else x.astype(dtype)
    given = {
        "mode": mode,
        "min_gram_length": least,
        "max_gram_length": most,
        "max_skip_count": skips,
        "weights": weights,
    }
    if dtype is object:
        given["pool_strings"] = tuple(WORDS[token] for gram in GRAMS for token in gram)
        given["pool_int64s"] = None
    got = run(tokens, **given)
    assert got.dtype == np.float32
    assert got.shape == (3, 7)
    for row, line in zip(got, x.tolist(), strict=True):
        counts = counted(line, least, most, min(skips, 9))
        wanted = np.minimum(counts, 1) if mode == "IDF" else counts
        wanted = wanted if mode == "TF" else wanted * weights
        assert row[[3, 0, 1, 2, 6, 5, 4]].tolist() == wanted.tolist()
        assert run(tokens[0], **given).tolist() == got[0].tolist()


def test_shared_and_unused_coordinates():
    got = run(np.array([0, 2, 0]), ngram_indexes=(9, 9, 1, 2, 3, 4, 5))
    assert got.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 0, 3]
    assert run(np.array([0, 0]), mode="TFIDF").tolist() == run(np.array([0, 0])).tolist()  # weights of 1


def test_empty_levels_and_inputs():
    got = run(np.array([1, 1]), ngram_counts=(0, 0), ngram_indexes=(0, 1), pool_int64s=(1, 1, 0, 1))
    assert got.tolist() == [1, 0]
    assert run(np.zeros((2, 0), np.int64)).tolist() == [[0] * 7] * 2
    assert run(np.zeros((0, 3), np.int64)).shape == (0, 7)
    assert run(np.zeros(0, np.int64)).shape == (7,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mode": "COUNT"}, "mode 'COUNT'"),
        ({"ngram_counts": (0, 1, 8)}, r"2-grams in \[1, 8\)"),
        ({"ngram_counts": (0, 2, 20)}, "do not fit a pool of 14"),
        ({"ngram_counts": (1, 3, 9)}, r"1-grams in \[1, 3\)"),
        ({"ngram_indexes": (0, 1)}, "7 n-grams of the pool"),
        ({"ngram_indexes": (3, 0, 1, 2, 6, 5, -4)}, "do not fit ngram_indexes"),
        ({"weights": (1.0,)}, "1 weights for 7 n-grams"),
        ({"pool_int64s": None}, "one of pool_int64s and pool_strings"),
        ({"pool_strings": ("a",)}, "not both"),
        ({"pool_int64s": None, "pool_strings": ("a",) * 14}, "holds strings"),
        ({"pool_int64s": (0, 0, *[1] * 12)}, "twice"),
        ({"min_gram_length": 0}, "lengths 0 to 3"),
        ({"min_gram_length": 4}, "lengths 4 to 3"),
        ({"max_skip_count": -1}, "-1 skips"),
    ],
)
def test_refusals(given, message):
    with pytest.raises(ValueError, match=message):
        run(np.zeros(3, np.int64), **given)


def test_the_width_is_refused_before_memory_is_taken():
    def refuse(shape, dtype):
        raise MemoryError(shape)

    with pytest.raises(MemoryError):
        kernel(
            np.zeros(3, np.int64),
            mode="TF",
            min_gram_length=1,
            max_gram_length=1,
            max_skip_count=0,
            ngram_counts=(0,),
            ngram_indexes=(2**60,),
            pool_int64s=(1,),
            pool_strings=None,
            weights=None,
            allocate=refuse,
        )
    with pytest.raises(ValueError, match="rank 3"):
        run(np.zeros((1, 1, 1), np.int64))
