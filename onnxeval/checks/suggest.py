"""Hints: the name that was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

#: Comparing names takes time; among more than this many no suggestion is looked for.
_MOST = 3000


def closest(name: object, candidates: Iterable[object]) -> str:
    """``did you mean "conv1"?``, or "" where nothing is near."""
    near = nearest(name, candidates)
    return f'did you mean "{near}"?' if near else ""


def nearest(name: object, candidates: Iterable[object]) -> str:
    """The candidate most like a name, case aside; "" where none is."""
    if not isinstance(name, str) or not 0 < len(name) < 200:
        return ""
    folded = {c.lower(): c for c in islice(candidates, _MOST) if isinstance(c, str) and abs(len(c) - len(name)) < 4}
    near = get_close_matches(name.lower(), folded, 1, 0.7)
    return folded[near[0]] if near else ""
