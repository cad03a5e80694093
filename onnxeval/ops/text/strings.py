"""StringConcat, StringSplit and StringNormalizer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import STRING, Tensor
from onnxeval.registry import op

_CHANGES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
#: Languages whose i or dots change case by rules of their own.
_SPECIAL_CASING = frozenset({"tr", "az", "lt"})


@op("StringConcat", versions=(20,))
def string_concat(x: Tensor, y: Tensor) -> Tensor:
    """The strings of ``x`` with those of ``y`` after them; the shapes broadcast. Source: StringConcat-20."""
    return np.asarray(np.add(x, y), STRING)


@op("StringSplit", versions=(20,))
def string_split(x: Tensor, *, delimiter: str | None, maxsplit: int | None) -> tuple[Tensor, Tensor]:
    """The parts of each string between ``delimiter``, on a new last axis that "" fills up, and their number (int64).

    Without a delimiter, or with an empty one, runs of whitespace separate, and what stands at either end of a string is
    dropped. After ``maxsplit`` splits the rest of the string is the last part. ValueError where that is negative.
    Source: StringSplit-20.
    """
    if maxsplit is not None and maxsplit < 0:
        raise ValueError(f"maxsplit {maxsplit} is negative")
    limit = -1 if maxsplit is None else maxsplit
    if delimiter:
        parts = [text.split(delimiter, limit) for text in x.reshape(-1)]
    else:
        parts = [text.strip().split(None, limit) for text in x.reshape(-1)]
    counts = np.array([len(one) for one in parts], np.int64)
    width = int(counts.max(initial=0))
    substrings = np.empty((len(parts), width), STRING)
    for row, one in zip(substrings, parts, strict=True):
        row[:] = one + [""] * (width - len(one))
    return substrings.reshape(*x.shape, width), counts.reshape(x.shape)


@op("StringNormalizer", versions=(10,))
def string_normalizer(
    x: Tensor,
    *,
    stopwords: tuple[str, ...] | None,
    is_case_sensitive: int,
    case_change_action: str,
    locale: str | None,
) -> Tensor:
    """The strings of ``x``, (C,) or (1, C), less the stop words, then in the wanted case; one "" where none is left.

    Case is Unicode's, which is that of every ``locale`` but the Turkish, Azerbaijani and Lithuanian: those are a
    ValueError, and so are other shapes and an unknown ``case_change_action``. Source: StringNormalizer-10.
    """
    if x.ndim not in (1, 2) or (x.ndim == 2 and len(x) != 1):
        raise ValueError(f"the input is of shape {list(x.shape)}, expected [C] or [1, C]")
    if case_change_action not in _CHANGES:
        raise ValueError(f"case_change_action {case_change_action!r} is none of {', '.join(map(repr, _CHANGES))}")
    if locale and locale[:2].lower() in _SPECIAL_CASING and (not is_case_sensitive or case_change_action != "NONE"):
        raise ValueError(f"the locale {locale!r} has casing rules of its own, which are not supported")
    change = _CHANGES[case_change_action]
    same = _CHANGES["NONE" if is_case_sensitive else "LOWER"]
    dropped = {same(word) for word in stopwords or ()}
    kept = [change(text) for text in x.reshape(-1) if same(text) not in dropped]
    normalised = np.array(kept or [""], STRING)
    return normalised if x.ndim == 1 else normalised[np.newaxis]
