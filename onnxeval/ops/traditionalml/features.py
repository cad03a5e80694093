"""Operators that prepare features: picking, scaling, filling in, encoding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import STRING, Tensor, is_integer
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.traditionalml._lookup import ML, as_rows, only_one, positions
from onnxeval.registry import op


@op("ArrayFeatureExtractor", domain=ML, versions=(1,))
def array_feature_extractor(x: Tensor, y: Tensor) -> Tensor:
    """The elements of the last axis that the indices ``y`` name, in their order; a row (1, K) for a 1-D ``x``.

    ValueError where ``x`` is a scalar and where an index is not in [0, size). Source: ArrayFeatureExtractor-1.
    """
    if x.ndim < 1:
        raise ValueError("the input is a scalar, it has no axis to pick from")
    indices, size = y.reshape(-1), x.shape[-1]
    outside = (indices < 0) | (indices >= size)
    if outside.any():
        raise ValueError(f"index {indices[outside][0]} is outside [0, {size - 1}]")
    picked = x.take(indices, -1)
    return picked[np.newaxis] if x.ndim == 1 else picked


@op("Binarizer", domain=ML, versions=(1,))
def binarizer(x: Tensor, *, threshold: float) -> Tensor:
    """1 where an element is above ``threshold``, else 0. Source: Binarizer-1."""
    whole = is_integer(x.dtype) and math.isfinite(threshold)
    return np.asarray(x > (math.floor(threshold) if whole else threshold), x.dtype)


@op("FeatureVectorizer", domain=ML, versions=(1,))
def feature_vectorizer(*xs: Tensor, inputdimensions: tuple[int, ...] | None) -> Tensor:
    """The float32 columns of all inputs side by side; (C) is a row. Source: FeatureVectorizer-1.

    ValueError where the numbers of rows differ, or those of columns from ``inputdimensions``.
    """
    tables = [as_rows(x) for x in xs]
    if len({table.shape[0] for table in tables}) != 1:
        raise ValueError(f"the inputs have {[table.shape[0] for table in tables]} rows")
    columns = [table.shape[1] for table in tables]
    if inputdimensions and columns != list(inputdimensions):
        raise ValueError(f"the inputs have {columns} columns, inputdimensions says {list(inputdimensions)}")
    return np.hstack(tables).astype(np.float32)


@op("Imputer", domain=ML, versions=(1,))
def imputer(
    x: Tensor,
    *,
    replaced_value_float: float,
    replaced_value_int64: int,
    imputed_value_floats: tuple[float, ...] | None,
    imputed_value_int64s: tuple[int, ...] | None,
) -> Tensor:
    """``x`` with one value, NaN among them, replaced: by one other, or by one for each place of the last axis.

    ValueError where the imputed values are not of the kind of ``x``, do not fit its type or its last axis.
    Source: Imputer-1.
    """
    imputed = only_one(imputed_value_floats=imputed_value_floats, imputed_value_int64s=imputed_value_int64s)
    whole = is_integer(x.dtype)
    if whole != is_integer(imputed.dtype):
        raise ValueError(f"the imputed values are {imputed.dtype}, the input is {x.dtype}")
    features = x.shape[-1] if x.ndim else 1
    if imputed.size not in (1, features):
        raise ValueError(f"{imputed.size} imputed values for {features} features, expected 1 or {features}")
    filling = imputed.astype(x.dtype)
    if whole and (filling != imputed).any():
        raise ValueError(f"imputed value {imputed[filling != imputed][0]} does not fit {x.dtype}")
    replaced = replaced_value_int64 if whole else replaced_value_float
    missing = np.isnan(x) if not whole and math.isnan(replaced) else x == replaced
    return np.where(missing, filling if x.ndim else filling[0], x)


@op("Normalizer", domain=ML, versions=(1,))
def normalizer(x: Tensor, *, norm: str) -> Tensor:
    """float32 (N, C), or (C): each row over its maximum, its L1 or its L2 norm; as it is if that is 0.

    The formulas of the text are loose where elements are negative: the norms it names are meant, of absolute values,
    and an element keeps its sign. Source: Normalizer-1.
    """
    if x.ndim not in (1, 2):
        raise ValueError(f"the input has rank {x.ndim}, expected 2 (N, C) or 1 (C)")
    if norm not in ("MAX", "L1", "L2"):
        raise ValueError(f"norm {norm!r} is none of 'MAX', 'L1', 'L2'")
    wide = x.astype(np.float64)
    if norm == "MAX":
        divisor = wide.max(-1, keepdims=True) if x.shape[-1] else np.ones((*x.shape[:-1], 1))
    elif norm == "L1":
        divisor = np.abs(wide).sum(-1, keepdims=True)
    else:
        divisor = np.sqrt((wide * wide).sum(-1, keepdims=True))
    return np.asarray(wide / np.where(divisor == 0, 1, divisor), np.float32)


@op("OneHotEncoder", domain=ML, versions=(1,))
def one_hot_encoder(
    x: Tensor,
    *,
    cats_int64s: tuple[int, ...] | None,
    cats_strings: tuple[str, ...] | None,
    zeros: int,
    allocate: Allocate,
) -> Tensor:
    """float32 with one more axis, a 1 at the place of each element's category; numbers are cut to integers.

    An element of no category is all zeros, or a ValueError where ``zeros`` is false. Source: OneHotEncoder-1.
    """
    categories = only_one(cats_int64s=cats_int64s, cats_strings=cats_strings)
    if (x.dtype == STRING) != (categories.dtype == STRING):
        raise ValueError(f"the categories are {categories.dtype}, the input is {x.dtype}")
    if x.dtype == STRING:
        at = positions(x, categories)
    else:
        whole = np.trunc(x)
        within = (whole >= -(2.0**63)) & (whole < 2.0**63)
        at = np.where(within, positions(np.where(within, whole, 0).astype(np.int64), categories), -1)
    if not zeros and (at < 0).any():
        raise ValueError(f"{x[at < 0][0]!r} is none of the categories, and zeros is false")
    encoded = allocate((*x.shape, categories.size), np.dtype(np.float32))
    encoded[...] = at[..., np.newaxis] == np.arange(categories.size)
    return encoded


@op("Scaler", domain=ML, versions=(1,))
def scaler(x: Tensor, *, offset: tuple[float, ...] | None, scale: tuple[float, ...] | None) -> Tensor:
    """float32 ``(x - offset) * scale``, each of one number or of one for each place of the last axis.

    ValueError where a length is neither, or the two differ. Source: Scaler-1.
    """
    if offset and scale and len(offset) != len(scale):
        raise ValueError(f"{len(offset)} offsets and {len(scale)} scales, expected the same length")
    shift, factor = (_each_feature(name, x, given) for name, given in (("offset", offset), ("scale", scale)))
    moved = x.astype(np.float64) if shift is None else x - shift
    return np.asarray(moved if factor is None else moved * factor, np.float32)


def _each_feature(name: str, x: Tensor, given: Sequence[float] | None) -> Tensor | None:
    features = x.shape[-1] if x.ndim else 1
    if not given:
        return None
    if len(given) not in (1, features):
        raise ValueError(f"{name} has {len(given)} elements for {features} features, expected 1 or {features}")
    return np.array(given if x.ndim else given[0], np.float64)
