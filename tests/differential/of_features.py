"""Strategies of ai.onnx.ml: what prepares features, labels and maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, element_of, strategy
from differential.of_text import packed

from onnxeval.dtypes import STRING
from onnxeval.tensors import type_proto
from onnxeval.values import MapType, TensorType

ML = "ai.onnx.ml"
_WORDS = ["", "a", "b", "A", "ab", "é"]


@strategy("ArrayFeatureExtractor", domain=ML)
def extract(d: Drawing) -> Node:
    shape = d.shape(2, 3, (1, 4))
    return d.node(d.tensor(0, shape), d.integers((1, d.size(1)), 0, shape[-1] - 1))


@strategy("Binarizer", domain=ML)
def binarize(d: Drawing) -> Node:
    return d.node(d.tensor(0, d.shape(1, 3)), **d.some(threshold=d.one_of(0.5, 1.0, -0.25)))


@strategy("Scaler", ulps=4, palettes=("plain",), domain=ML)
def scale(d: Drawing) -> Node:
    features = d.size(1)
    count = d.one_of(1, features)
    numbers = {name: [d.integer(-8, 8) / 4 for _ in range(count)] for name in ("offset", "scale")}
    return d.node(d.tensor(0, (d.size(1), features)), **numbers)


@strategy("Normalizer", ulps=8, palettes=("plain",), domain=ML)
def normalize(d: Drawing) -> Node:
    shape = (d.size(1), d.size(1)) if d.flag() else (d.size(1),)
    return d.node(d.tensor(0, shape), **d.some(norm=d.one_of("MAX", "L1", "L2")))


@strategy("Imputer", domain=ML)
def impute(d: Drawing) -> Node:
    features = d.size(1)
    x = d.tensor(0, (d.size(1), features))
    count = d.one_of(1, features)
    if x.dtype.kind == "f":
        values = {"imputed_value_floats": [d.integer(-4, 4) / 2 for _ in range(count)]}
        return d.node(x, replaced_value_float=d.one_of(float("nan"), 0.0, 1.0), **values)
    return d.node(
        x, imputed_value_int64s=[d.integer(-4, 4) for _ in range(count)], replaced_value_int64=d.one_of(0, 1, -1)
    )


@strategy("FeatureVectorizer", palettes=("plain",), domain=ML)
def vectorize(d: Drawing) -> Node:
    rows, sizes = d.size(1), [d.size(1) for _ in range(d.integer(1, 3))]
    return d.node(*(d.tensor(0, (rows, n)) for n in sizes), inputdimensions=sizes)


@strategy("OneHotEncoder", palettes=("plain",), domain=ML)
def one_hot(d: Drawing) -> Node:
    x = d.tensor(0, d.shape(1, 2))
    categories = {"cats_strings": _WORDS[:4]} if x.dtype == STRING else {"cats_int64s": [1, 0, -3, 2]}
    return d.node(x, **categories, **d.some(zeros=d.integer(0, 1)))


@strategy("CategoryMapper", palettes=("plain",), domain=ML)
def map_categories(d: Drawing) -> Node:
    count = d.integer(1, 5)
    options = {"cats_strings": _WORDS[:count], "cats_int64s": d.permutation(count)}
    return d.node(d.tensor(0, d.shape()), **options, **d.some(default_string="none", default_int64=7))


_NAMES = {"int64": "int64s", "float": "floats", "string": "strings"}


@strategy("LabelEncoder", palettes=("plain",), domain=ML)
def encode_labels(d: Drawing) -> Node:
    x = d.tensor(0, d.shape(0, 3))
    if d.version == 1:
        return d.node(x, classes_strings=_WORDS[: d.integer(1, 6)], **d.some(default_string="none", default_int64=7))
    count = d.integer(1, 5)
    keys: Any = np.array(_WORDS[:count], object) if x.dtype == STRING else np.arange(count).astype(x.dtype)
    target = d.one_of("int64", "float", "string")
    values: Any = [_WORDS[d.integer(0, 5)] if target == "string" else d.integer(-9, 9) for _ in range(count)]
    defaults = d.some(default_int64=7, default_float=0.5, default_string="none")
    name = {np.dtype(np.int64): "int64s", np.dtype(np.float32): "floats", STRING: "strings"}.get(x.dtype)
    if name is None or (d.has("keys_tensor") and d.flag()):
        dtype = np.dtype(
            {"int64": np.int64, "float": x.dtype if x.dtype.kind == "f" else np.float32, "string": object}[target]
        )
        pairs = {"keys_tensor": packed("k", keys), "values_tensor": packed("v", np.array(values, dtype))}
        default = packed("d", np.array(["none"] if target == "string" else [7], dtype))
        return d.node(x, **pairs, **d.some(default_tensor=default))
    plain = [float(v) for v in values] if target == "float" else values
    return d.node(x, **{f"keys_{name}": keys.tolist(), f"values_{_NAMES[target]}": plain}, **defaults)


def mapping(d: Drawing, keys: list[Any]) -> tuple[dict[Any, Any], Any]:
    """A map from some of the keys, and its type."""
    dtype = element_of(d.type_of(0))
    chosen = [keys[i] for i in d.permutation(len(keys))[: d.integer(1, len(keys))]]
    values = d.array(dtype, (len(chosen),), "plain").tolist()
    kind = MapType(STRING if isinstance(keys[0], str) else np.dtype(np.int64), TensorType(dtype))
    return dict(zip(chosen, values, strict=True)), type_proto(kind)


@strategy("DictVectorizer", domain=ML)
def dictionary(d: Drawing) -> Node:
    textual = d.type_of(0).startswith("map(string")
    vocabulary: list[Any] = ["a", "b", "é"] if textual else [3, 1, 7]
    value, kind = mapping(d, vocabulary)
    name = "string_vocabulary" if textual else "int64_vocabulary"
    return d.node(value, declared=kind, **{name: vocabulary})


@strategy("CastMap", domain=ML)
def cast_map(d: Drawing) -> Node:
    value, kind = mapping(d, [0, 2, 5])
    if element_of(d.type_of(0)) == STRING:
        value = {key: d.one_of("1", "-2", "3.5", "1e3") for key in value}
    form = d.one_of("DENSE", "SPARSE")
    target = d.one_of("TO_FLOAT", "TO_STRING", "TO_INT64")
    return d.node(value, declared=kind, cast_to=target, map_form=form, max_map=7 if form == "SPARSE" else None)


@strategy("ZipMap", palettes=("plain",), domain=ML)
def zip_map(d: Drawing) -> Node:
    count = d.integer(1, 4)
    shape = (d.size(1), count) if d.flag() else (count,)
    labels = {"classlabels_strings": _WORDS[:count]} if d.flag() else {"classlabels_int64s": [3, 1, 7, 2][:count]}
    return d.node(d.array(np.float32, shape), **labels)
