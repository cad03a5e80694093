"""Whether two engines' results are the same: dtype and shape exactly, integers exactly, floats within a few ulps."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from differential.drawing import Strategy

from onnxeval.dtypes import STRING, Tensor, is_float, name_of
from onnxeval.values import Value


def difference(ours: Value, theirs: Value, strategy: Strategy) -> str | None:
    """What differs, in words; None where nothing does."""
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return f"a sequence of {len(theirs)} is expected"
        return next(filter(None, (difference(a, b, strategy) for a, b in zip(ours, theirs, strict=True))), None)
    if isinstance(theirs, dict) or theirs is None:
        return None if _same_plain(ours, theirs, strategy) else "values"
    if ours.dtype != theirs.dtype:
        return f"dtype {name_of(ours.dtype)} against {name_of(theirs.dtype)}"
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)} against {list(theirs.shape)}"
    return None if not strategy.values or _same_elements(ours, theirs, strategy) else "values"


def _same_plain(ours: Value, theirs: Value, strategy: Strategy) -> bool:
    if not isinstance(theirs, dict):
        return ours is theirs
    pairs = ((np.asarray(ours.get(key)), np.asarray(theirs[key])) for key in theirs)
    # onnxruntime's maps hold Python's numbers
    return ours.keys() == theirs.keys() and all(difference(a, b.astype(a.dtype), strategy) is None for a, b in pairs)


def _same_elements(ours: Tensor, theirs: Tensor, strategy: Strategy) -> bool:
    if ours.dtype == STRING:
        return ours.tolist() == theirs.tolist()
    if ours.dtype.kind == "c":
        part = np.dtype(np.float32 if ours.dtype == np.complex64 else np.float64)
        return _same_elements(*(np.ascontiguousarray(x).reshape(-1).view(part) for x in (ours, theirs)), strategy)
    if not is_float(ours.dtype):
        return np.array_equal(ours, theirs)
    return _close(ours, theirs, strategy)


def _close(ours: Tensor, theirs: Tensor, strategy: Strategy) -> bool:
    info = ml_dtypes.finfo(np.float32 if strategy.single and ours.dtype == np.float64 else ours.dtype)
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(all="ignore"):
        if strategy.ulps == 0:
            same = np.signbit(a) == np.signbit(b)
            return bool(np.all(np.isnan(a) & np.isnan(b) | (a == b) & same))
        # subnormal results may be flushed to zero
        magnitude = np.maximum(np.abs(b), float(info.smallest_normal) / float(info.eps))
        if strategy.scaled:
            magnitude = np.maximum(magnitude, np.max(np.abs(b), initial=0, where=np.isfinite(b)))
        allowed = (strategy.ulps * magnitude + strategy.absolute) * float(info.eps)
        return bool(np.all((np.abs(a - b) <= allowed) | (a == b) | np.isnan(a) & np.isnan(b)))
