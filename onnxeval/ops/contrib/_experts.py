"""Mixtures of experts: who is asked for a token, how answers are weighed, and the activations within an expert."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.contrib import _curves as curves
from onnxeval.values import shape_text

_CURVES: Mapping[str, curves.Curve] = MappingProxyType(
    {
        "relu": lambda x: np.maximum(x, 0),
        "relu2": lambda x: np.square(np.maximum(x, 0)),
        "gelu": curves.gelu,
        "silu": curves.silu,
        "identity": lambda x: x,
    }
)
_OF_TWO = ("swiglu", "geglu")


def mixed(
    x: Tensor,
    router_probs: Tensor,
    router_weights: Tensor | None,
    answer: Callable[[Tensor, int], Tensor],
    *,
    experts: int,
    k: int,
    normalize: int,
) -> Tensor:
    """Tokens (..., H), logits (tokens, E) -> (..., H): the sum of the weighed answers of the ``k`` best experts.

    ``answer(tokens, expert)`` is asked for the tokens that choose an expert. Answers are weighed by softmax(logits), or
    by ``router_weights`` (tokens, E); these add up to 1 for a token with ``normalize``. Of equal logits the first
    count. Raises ValueError where shapes do not fit together.
    """
    if x.ndim not in (2, 3):
        raise ValueError(f"tokens have shape {shape_text(x.shape)}, expected [tokens, H] or [B, S, H]")
    tokens = x.reshape(-1, x.shape[-1]) if x.shape[-1] else np.zeros((0, 0), x.dtype)
    for name, given in (("router_probs", router_probs), ("router_weights", router_weights)):
        if given is not None and given.shape != (len(tokens), experts):
            raise ValueError(f"{name} have shape {shape_text(given.shape)}, expected [{len(tokens)}, {experts}]")
    if not 1 <= k <= experts:
        raise ValueError(f"k {k} is outside [1, {experts}], the number of experts")
    powers = np.exp(router_probs - router_probs.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    chosen = np.argsort(-probabilities, axis=1, kind="stable")[:, :k]
    weights = np.take_along_axis(probabilities if router_weights is None else router_weights, chosen, axis=1)
    if normalize:
        weights = weights / weights.sum(axis=1, keepdims=True)
    result = np.zeros_like(tokens)
    for expert in range(experts):
        rows, rank = np.nonzero(chosen == expert)
        if not len(rows):
            continue
        said = answer(tokens[rows], expert)
        if said.shape[1] != tokens.shape[1]:
            raise ValueError(f"fc2 gives {said.shape[1]} features, the tokens have {tokens.shape[1]}")
        result[rows] += weights[rows, rank, np.newaxis] * said
    return result.reshape(x.shape)


class Activation:
    """What stands between an expert's first and second product."""

    def __init__(
        self, kind: str, alpha: float, beta: float, fusion: int, limit: float | None, limit_after: bool
    ) -> None:
        if kind not in (*_CURVES, *_OF_TWO):
            raise ValueError(f"activation_type {kind!r} is none of {', '.join((*_CURVES, *_OF_TWO))}")
        if fusion not in (0, 1, 2):
            raise ValueError(f"swiglu_fusion {fusion} is none of 0, 1, 2")
        self.kind, self.alpha, self.beta = kind, alpha, beta
        self.fusion, self.limit_after = fusion, limit_after
        self.limit = np.inf if limit is None else limit

    def alone(self, x: Tensor) -> Tensor:
        """Of what fc1 gives."""
        if self.kind in _CURVES:
            return _CURVES[self.kind](x)
        if not self.fusion or x.shape[1] % 2:
            raise ValueError(f"{self.kind} needs fc3, or fc1 of twice the size and swiglu_fusion 1 or 2")
        half = x.shape[1] // 2
        gate, value = (x[:, 0::2], x[:, 1::2]) if self.fusion == 1 else (x[:, :half], x[:, half:])
        return self._of_two(gate, value)

    def gated(self, gate: Tensor, value: Tensor) -> Tensor:
        """Of what fc1 and fc3 give."""
        if gate.shape != value.shape or self.fusion:
            raise ValueError(f"fc1 and fc3 give {shape_text(gate.shape)} and {shape_text(value.shape)} features apart")
        return _CURVES[self.kind](gate) * value if self.kind in _CURVES else self._of_two(gate, value)

    def _of_two(self, gate: Tensor, value: Tensor) -> Tensor:
        if self.kind == "geglu":
            return curves.gelu(gate, "tanh") * value
        value = np.clip(value, -self.limit, self.limit) + self.beta
        if self.limit_after:
            return np.asarray(np.minimum(gate * curves.sigmoid(self.alpha * gate), self.limit) * value)
        gate = np.minimum(gate, self.limit)
        return np.asarray(gate * curves.sigmoid(self.alpha * gate) * value)
