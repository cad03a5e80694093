"""RegexFullMatch: which strings a pattern describes as a whole."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.text._re2 import compiled
from onnxeval.registry import op


@op("RegexFullMatch", versions=(20,))
def regex_full_match(x: Tensor, *, pattern: str | None) -> Tensor:
    """Whether each string matches ``pattern`` from its beginning to its end, bool. Source: RegexFullMatch-20.

    The syntax is that of RE2, and as in RE2 the time is linear in the length of the strings. ValueError where the
    pattern is missing or invalid, and for the two classes that `_re2_syntax` leaves out.
    """
    if pattern is None:
        raise ValueError("the attribute pattern is missing")
    matches = compiled(pattern).full_match
    return np.array([matches(text) for text in x.reshape(-1)], bool).reshape(x.shape)
