"""CastMap, DictVectorizer and ZipMap: between maps and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._cast import convert
from onnxeval.ops.traditionalml._lookup import ML, as_rows, only_one
from onnxeval.registry import op
from onnxeval.values import MapType, Sequence, TensorType

CAST_TO: dict[str, DType] = {
    "TO_FLOAT": np.dtype(np.float32),
    "TO_INT64": np.dtype(np.int64),
    "TO_STRING": STRING,
}


@op("CastMap", domain=ML, versions=(1,))
def cast_map(x: dict[int, Any], *, cast_to: str, map_form: str, max_map: int, allocate: Allocate) -> Tensor:
    """The values in the order of their keys, 1-D; SPARSE: each at its key, among ``max_map`` zeros or "".

    ValueError where a key of a SPARSE map is not in [0, max_map), or a string is no number. Source: CastMap-1.
    """
    if cast_to not in CAST_TO:
        raise ValueError(f"cast_to {cast_to!r} is none of {', '.join(map(repr, CAST_TO))}")
    if map_form not in ("DENSE", "SPARSE"):
        raise ValueError(f"map_form {map_form!r} is neither 'DENSE' nor 'SPARSE'")
    keys = sorted(x)
    values = convert(_values([x[key] for key in keys]), CAST_TO[cast_to])
    if map_form == "DENSE":
        return values
    outside = [key for key in keys if not 0 <= key < max_map]
    if outside or max_map < 0:
        raise ValueError(f"key {outside[0] if outside else None} is outside [0, {max_map - 1}] (max_map {max_map})")
    sparse = allocate((max_map,), values.dtype)
    sparse[:] = "" if values.dtype == STRING else 0
    sparse[keys] = values
    return sparse


@op("DictVectorizer", domain=ML, versions=(1,))
def dict_vectorizer(
    x: dict[Any, Any], *, int64_vocabulary: tuple[int, ...] | None, string_vocabulary: tuple[str, ...] | None
) -> Tensor:
    """1-D, as long as the vocabulary: each value at the place of its key, 0 or "" elsewhere; float32 for no values.

    ValueError where a key is not in the vocabulary. Source: DictVectorizer-1.
    """
    vocabulary = only_one(int64_vocabulary=int64_vocabulary, string_vocabulary=string_vocabulary).tolist()
    place = {key: at for at, key in enumerate(vocabulary)}
    if strangers := [key for key in x if key not in place]:
        raise ValueError(f"key {strangers[0]!r} is not in the vocabulary")
    values = _values(list(x.values()))
    vector = np.full(len(vocabulary), "" if values.dtype == STRING else 0, values.dtype)
    vector[[place[key] for key in x]] = values
    return vector


@op("ZipMap", domain=ML, versions=(1,))
def zip_map(
    x: Tensor, *, classlabels_int64s: tuple[int, ...] | None, classlabels_strings: tuple[str, ...] | None
) -> Sequence:
    """One map for each row of ``x``, from the labels to its columns. Source: ZipMap-1.

    ValueError where there are not as many columns as labels.
    """
    labels = only_one(classlabels_int64s=classlabels_int64s, classlabels_strings=classlabels_strings)
    table = as_rows(x)
    if table.shape[1] != labels.size:
        raise ValueError(f"{table.shape[1]} columns for {labels.size} labels")
    keys = labels.tolist()
    maps = (dict(zip(keys, row, strict=True)) for row in table)
    return Sequence(maps, MapType(labels.dtype, TensorType(x.dtype)))


def _values(values: list[Any]) -> Tensor:
    if values and isinstance(values[0], str):
        return np.array(values, STRING)
    return np.array(values) if values else np.zeros(0, np.float32)
