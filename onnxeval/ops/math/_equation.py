"""The equations of Einsum, read into one tuple of labels a tensor.

A label is a letter, or a number that counts the axes of the ellipsis from the front.
"""

from __future__ import annotations

import re

from onnxeval.dtypes import Tensor
from onnxeval.values import shape_text

Labels = tuple[str, ...]
_TERM = re.compile(r"([A-Za-z]*)(?:(\.\.\.)([A-Za-z]*))?")


def read_equation(equation: str, shapes: list[tuple[int, ...]]) -> tuple[list[Labels], Labels]:
    """The labels of each input's axes and those of the output's.

    Raises ValueError where the equation is malformed or does not fit the inputs' ranks. Source: Einsum-28.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f"equation {equation!r} has {len(terms)} terms for {len(shapes)} inputs")
    spread = _axes_of_the_ellipsis(equation, terms, shapes)
    inputs = [_labels(equation, term, spread) for term in terms]
    for labels, shape in zip(inputs, shapes, strict=True):
        if len(labels) != len(shape):
            raise ValueError(f"a term of {equation!r} has {len(labels)} labels for the shape {shape_text(shape)}")
    if not arrow:
        return inputs, _implicit_output(inputs, spread)
    output = _labels(equation, right, spread)
    for label in output:
        if output.count(label) > 1:
            raise ValueError(f"the output of {equation!r} has the label {label!r} twice")
        if not any(label in labels for labels in inputs):
            raise ValueError(f"the label {label!r} in the output of {equation!r} is in no input")
    return inputs, output


def _axes_of_the_ellipsis(equation: str, terms: list[str], shapes: list[tuple[int, ...]]) -> int:
    """How many axes each ellipsis stands for: the same number in every term."""
    counts = {
        len(shape) - len(term.replace("...", "")) for term, shape in zip(terms, shapes, strict=True) if "..." in term
    }
    if len(counts) > 1 or any(count < 0 for count in counts):
        ranks = [len(shape) for shape in shapes]
        raise ValueError(f"the ellipses of {equation!r} stand for {sorted(counts)} axes of inputs of ranks {ranks}")
    return counts.pop() if counts else 0


def _labels(equation: str, term: str, spread: int) -> Labels:
    match = _TERM.fullmatch(term)
    if match is None:
        raise ValueError(f"the term {term!r} of {equation!r} is not made of letters and at most one ellipsis")
    before, ellipsis, after = match.groups()
    return (*before, *(str(axis) for axis in range(spread) if ellipsis), *(after or ""))


def _implicit_output(inputs: list[Labels], spread: int) -> Labels:
    """The ellipsis, then the letters that occur once, in the order of ASCII."""
    letters = [label for labels in inputs for label in labels if label.isalpha()]
    return (*map(str, range(spread)), *sorted(label for label in letters if letters.count(label) == 1))


def label_sizes(inputs: list[Labels], xs: tuple[Tensor, ...]) -> dict[str, int]:
    """The size each label runs over. An axis of size 1 stretches to what another input says.

    Raises ValueError where two sizes contradict each other.
    """
    sizes: dict[str, int] = {}
    for labels, x in zip(inputs, xs, strict=True):
        for label, size in zip(labels, x.shape, strict=True):
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                what = f"axis {label} of the ellipsis" if label.isdigit() else f"label {label!r}"
                raise ValueError(f"{what} has the sizes {known} and {size}")
    return sizes
