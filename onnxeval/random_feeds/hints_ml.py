"""Hints for classical machine learning: categories that are known, columns that are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnxeval.dtypes import STRING
from onnxeval.random_feeds.looking import Looked
from onnxeval.random_feeds.wishes import Wish, between

Wishes = Mapping[int, Wish]


def _columns(node: Looked) -> Wishes:
    return {1: between(0, node.size(0, -1) - 1)}


def _categories(node: Looked) -> Wishes:
    names = ("cats_strings",) if node.dtype(0) == STRING else ("cats_int64s",)
    return _chosen(node, names)


def _labels(node: Looked) -> Wishes:
    names = ("keys_strings", "classes_strings") if node.dtype(0) == STRING else ("keys_int64s", "keys_floats")
    if (keys := node.attribute("keys_tensor")) is not None:
        return {0: Wish(choices=tuple(keys.reshape(-1).tolist()))}
    if node.dtype(0) != STRING and (classes := node.attribute("classes_strings")):
        return {0: between(0, len(classes) - 1)}
    return _chosen(node, names)


def _mapped(node: Looked) -> Wishes:
    return _chosen(node, ("cats_strings",) if node.dtype(0) == STRING else ("cats_int64s",))


def _vocabulary(node: Looked) -> Wishes:
    return _chosen(node, ("string_vocabulary", "int64_vocabulary"))


def _chosen(node: Looked, names: tuple[str, ...]) -> Wishes:
    for name in names:
        if values := node.attribute(name):
            return {0: Wish(choices=tuple(values))}
    return {}


HINTS: dict[tuple[str, str], Callable[[Looked], Wishes]] = {
    ("ai.onnx.ml", "ArrayFeatureExtractor"): _columns,
    ("ai.onnx.ml", "CategoryMapper"): _mapped,
    ("ai.onnx.ml", "DictVectorizer"): _vocabulary,
    ("ai.onnx.ml", "LabelEncoder"): _labels,
    ("ai.onnx.ml", "OneHotEncoder"): _categories,
}
