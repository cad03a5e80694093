"""Tokenizer: strings cut at separators, or into what an expression matches."""

from __future__ import annotations

from collections.abc import Sequence

from onnxeval.dtypes import STRING, Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.contrib._typed import microsoft_op
from onnxeval.ops.text._re2 import Pattern, compiled
from onnxeval.values import shape_text

_START, _END = "\x02", "\x03"


@microsoft_op("Tokenizer", "S", S=(STRING,))
def tokenizer(
    x: Tensor,
    *,
    mark: int,
    mincharnum: int,
    pad_value: str,
    separators: Sequence[str] = (),
    tokenexp: str = "",
    allocate: Allocate,
) -> Tensor:
    """(C,) or (N, C) strings -> the same with one more axis, as long as the most tokens that a string has.

    Tokens are what stands between matches of the ``separators``, which cut one after the other, or the matches of
    ``tokenexp``; the first match counts, as long as it can be, and one of no character skips a character. The separator
    "" alone and the expression "." make each character a token. Tokens of fewer than ``mincharnum`` characters are
    dropped. With ``mark`` each row begins with U+0002 and has U+0003 after its tokens; ``pad_value`` fills it up. Where
    no string has a token the new axis is empty, and there is none where there are no strings.

    Raises ValueError for other ranks, for both or neither of the ways to cut, and for expressions that are none.
    Source: com.microsoft.Tokenizer-1.
    """
    if x.ndim not in (1, 2):
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected [C] or [N, C]")
    if bool(separators) == bool(tokenexp):
        raise ValueError("one of separators and tokenexp is needed, not both")
    if mincharnum < 1:
        raise ValueError(f"mincharnum {mincharnum} is not positive")
    if not x.size:
        return x
    whole = list(separators) == [""] or tokenexp == "."
    if whole and mincharnum > 1:
        raise ValueError(f"mincharnum {mincharnum} leaves no token of one character")
    if whole:
        rows = [list(text) for text in x.reshape(-1)]
    elif tokenexp:
        pattern = compiled(tokenexp)
        rows = [_matches(text, pattern, mincharnum) for text in x.reshape(-1)]
    else:
        patterns = [compiled(separator) for separator in separators]
        rows = [_between(text, patterns, mincharnum) for text in x.reshape(-1)]
    most = max(map(len, rows))
    if not most:
        return allocate((*x.shape, 0), STRING)
    if mark:
        rows = [[_START, *row, _END] for row in rows]
        most += 2
    result = allocate((x.size, most), STRING)
    result[...] = pad_value
    for target, row in zip(result, rows, strict=True):
        target[: len(row)] = row
    return result.reshape(*x.shape, most)


def _matches(text: str, pattern: Pattern, least: int) -> list[str]:
    found, place = [], 0
    while place <= len(text) and (match := pattern.search(text, place)) is not None:
        begin, end = match
        if end > begin and end - begin >= least:
            found.append(text[begin:end])
        place = max(end, begin + 1)
    return found


def _between(text: str, patterns: Sequence[Pattern], least: int) -> list[str]:
    pieces = [text]
    for pattern in patterns:
        pieces = [part for piece in pieces for part in _cut(piece, pattern) if len(part) >= max(1, least)]
    return pieces


def _cut(text: str, pattern: Pattern) -> list[str]:
    parts, place = [], 0
    while place <= len(text) and (match := pattern.search(text, place)) is not None:
        begin, end = match
        parts.append(text[place:begin])
        place = max(end, begin + 1)
    return [*parts, text[place:]]
