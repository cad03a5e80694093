"""Einsum against the definition: a loop over every assignment of the labels."""

from __future__ import annotations

import itertools
import math
import re
from functools import partial

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.math import einsum as _  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

EINSUM = partial(STANDARD["", "Einsum", 28], allocate=np.empty)
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def by_the_definition(equation: str, *xs: np.ndarray) -> np.ndarray:
    """output[output-term] = reduce-sum(input1[term1] * input2[term2] ...), of Python numbers."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    spread = max([x.ndim - len(t.replace("...", "")) for t, x in zip(terms, xs, strict=True) if "..." in t], default=0)
    dots = "0123456789"[:spread]
    if not arrow:
        letters = re.sub(r"[,.]", "", left)
        right = dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    terms, right = [t.replace("...", dots) for t in terms], right.replace("...", dots)
    sizes: dict[str, int] = {}
    for term, x in zip(terms, xs, strict=True):
        for label, size in zip(term, x.shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1)) if size else 0
    summed = [label for label in sizes if label not in right]
    result = np.zeros([sizes[label] for label in right], object)
    for place in itertools.product(*(range(sizes[label]) for label in right)):
        total = 0
        for rest in itertools.product(*(range(sizes[label]) for label in summed)):
            at = dict(zip([*right, *summed], [*place, *rest], strict=True))
            index = [
                tuple(at[label] if size > 1 else 0 for label, size in zip(term, x.shape, strict=True))
                for term, x in zip(terms, xs, strict=True)
            ]
            total += math.prod(
                x[i].item() if x.dtype != BFLOAT16 else float(x[i]) for i, x in zip(index, xs, strict=True)
            )
        result[place] = total
    return result


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
CASES = [
    ("ij->ji", (2, 3)),
    ("ij", (2, 3)),
    ("ji", (2, 3)),
    ("bA", (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->ji", (2, 2, 3)),
    ("iii->i", (2, 2, 2)),
    ("ijij->ij", (2, 3, 2, 3)),
    ("ij->", (2, 3)),
    ("ij->i", (2, 3)),
    ("->", ()),
    ("", ()),
    (",", (), ()),
    ("i,->i", (3,), ()),
    ("i,i", (3,), (3,)),
    ("i,i->i", (3,), (3,)),
    ("i,j", (2,), (3,)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("bij, bjk -> bik", (2, 2, 3), (2, 3, 4)),
    ("bij,bkj->bijk", (2, 2, 3), (2, 4, 3)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 2), (2, 2, 4, 2)),
    ("...ij->...ji", (2, 3, 4)),
    ("...", (2, 3)),
    ("...->...", ()),
    ("i...->...i", (2, 3, 4)),
    ("a...b->ba...", (2, 3, 4)),
    ("...ij,...jk->...ik", (2, 2, 3), (2, 3, 2)),
    ("...ij,...jk", (2, 2, 3), (1, 3, 2)),
    ("i...,i...->...", (2, 1, 3), (2, 4, 1)),
    ("...i,i->...", (2, 3), (3,)),
    ("...i->i", (2, 3)),
    ("i. ..->i...", (2, 3)),
    ("i,j->...ij", (2,), (3,)),
    ("ab,bc,cd->ad", (2, 3), (3, 2), (2, 4)),
    ("ab,cd,bc->ad", (2, 3), (2, 4), (3, 2)),
    ("a,a,a->a", (3,), (3,), (3,)),
    ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 2)),
    ("ii,i->i", (3, 3), (3,)),
    ("iK,Kj,i->Kj", (2, 3), (3, 2), (2,)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    ("ij,ij->ij", (2, 1), (2, 3)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("ij->j", (0, 3)),
    ("ij,k->ijk", (2, 0), (3,)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[1:]}")
@pytest.mark.parametrize("dtype", [np.int64, np.float64, BFLOAT16], ids=str)
def test_the_definition(case, dtype):
    equation, *shapes = case
    rng = np.random.default_rng(0)
    xs = [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]
    result = EINSUM(*xs, equation=equation)
    expected = by_the_definition(equation, *xs)
    assert result.dtype == dtype
    assert np.shape(result) == expected.shape
    np.testing.assert_array_equal(np.asarray(result).astype(float), expected.astype(float))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("ij,jk->ik", [(2, 5), (5, 2)]), ("ij->", [(3, 3)]), ("i,j->ij", [(3,), (2,)]), ("ii", [(3, 3)])],
)
def test_integers_wrap_around(dtype, equation, shapes):
    rng = np.random.default_rng(0)
    xs = [rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype) for shape in shapes]
    result = EINSUM(*xs, equation=equation)
    assert result.dtype == dtype
    bits, low = np.iinfo(dtype).bits, int(np.iinfo(dtype).min)
    expected = (by_the_definition(equation, *xs) - low) % 2**bits + low
    assert np.asarray(result).tolist() == np.asarray(expected).tolist()


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16], ids=str)
def test_sixteen_bits_are_rounded_once(dtype):
    ones = np.ones(4097, dtype)
    for equation, xs in [("i->", [ones]), ("i,i->", [ones, ones]), ("i,i,i->", [ones] * 3)]:
        assert EINSUM(*xs, equation=equation) == np.float32(4097).astype(dtype)


def test_against_numpy():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 5, 2)), rng.normal(size=(2, 4))
    for equation in ["bij,bjk,ki->b", "bij,bjk,ki", "bij,bjk,ki->ijk", "bij,bjk,ki->kb"]:
        np.testing.assert_allclose(EINSUM(a, b, c, equation=equation), np.einsum(equation, a, b, c), rtol=1e-12)


@pytest.mark.parametrize(
    ("equation", "shapes", "text"),
    [
        ("ij,jk->ik", [(2, 3)], "2 terms for 1 inputs"),
        ("ij", [(2, 3), (3,)], "1 terms for 2 inputs"),
        ("ij", [(2,)], r"2 labels for the shape \[2\]"),
        ("i", [(2, 3)], r"1 labels for the shape \[2, 3\]"),
        ("ij,jk", [(2, 3), (4, 5)], "label 'j' has the sizes 3 and 4"),
        ("ii", [(2, 3)], "sizes 2 and 3"),
        ("ii->i", [(1, 3)], "sizes 1 and 3"),
        ("i->ij", [(2,)], "label 'j' in the output"),
        ("i->ii", [(2,)], "label 'i' twice"),
        ("...->......", [(2,)], "term '......'"),
        ("......->...", [(2,)], "at most one ellipsis"),
        ("i..->i", [(2,)], r"term 'i..'"),
        ("i1->i", [(2, 3)], "term 'i1'"),
        ("i\tj->i", [(2, 3)], "is not made of letters"),
        ("i->i->i", [(2,)], "is not made of letters"),
        ("é->é", [(2,)], "is not made of letters"),
        ("ijk...", [(2, 3)], r"stand for \[-1\] axes"),
        ("...,...->...", [(), (2, 3)], r"stand for \[0, 2\] axes of inputs of ranks \[0, 2\]"),
        ("...ik,...j->ij", [(1, 2, 3), (3,)], r"stand for \[0, 1\] axes"),
        ("...i,...i", [(2, 3), (4, 3)], "axis 0 of the ellipsis has the sizes 2 and 4"),
    ],
)
def test_equations_that_are_refused(equation, shapes, text):
    with pytest.raises(ValueError, match=text):
        EINSUM(*(np.ones(shape) for shape in shapes), equation=equation)


def test_a_chain_never_builds_the_outer_product():
    n = 300  # ab,cd first would need 300^4 numbers
    a = np.ones((n, n), np.float32)
    assert EINSUM(a, a, a, equation="ab,cd,bc->ad")[0, 0] == n * n
