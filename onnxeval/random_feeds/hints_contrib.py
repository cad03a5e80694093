"""Hints for onnxruntime's operators: token and segment numbers, masks, lengths, positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnxeval.random_feeds.looking import Looked
from onnxeval.random_feeds.wishes import TRUTH, Wish, between

Wishes = Mapping[int, Wish]

_SCALE = Wish(low=0.02, high=0.1)


def _embedded(node: Looked) -> Wishes:
    """Tokens, segments, a mask, and positions, each a row of its own table."""
    tables = {0: 2, 1: 4, 8: 3}
    return {7: TRUTH, **{place: between(0, node.size(table, 0) - 1) for place, table in tables.items()}}


def _scales(*places: int) -> Callable[[Looked], Wishes]:
    return lambda _node: dict.fromkeys(places, _SCALE)


def _mask(place: int) -> Callable[[Looked], Wishes]:
    return lambda _node: {place: TRUTH}


def _gathered(node: Looked) -> Wishes:
    return {1: between(0, node.size(0, node.attribute("gather_axis", 0)) - 1), 2: _SCALE}


def _rotated(node: Looked) -> Wishes:
    return {1: between(0, max(node.size(2, 0) - node.size(0, -2), 0))}


HINTS: dict[tuple[str, str], Callable[[Looked], Wishes]] = {
    ("com.microsoft", "Attention"): _mask(3),
    ("com.microsoft", "EmbedLayerNormalization"): _embedded,
    ("com.microsoft", "GatherBlockQuantized"): _gathered,
    ("com.microsoft", "MultiHeadAttention"): _mask(4),
    ("com.microsoft", "QAttention"): _mask(5),
    ("com.microsoft", "QLinearAdd"): _scales(1, 4, 6),
    ("com.microsoft", "QLinearMul"): _scales(1, 4, 6),
    ("com.microsoft", "QLinearLeakyRelu"): _scales(1, 3),
    ("com.microsoft", "QLinearSigmoid"): _scales(1, 3),
    ("com.microsoft", "QLinearGlobalAveragePool"): _scales(1, 3),
    ("com.microsoft", "QuantizeLinear"): _scales(1),
    ("com.microsoft", "DequantizeLinear"): _scales(1),
    ("com.microsoft", "RotaryEmbedding"): _rotated,
}
