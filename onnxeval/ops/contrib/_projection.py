"""The projection of an input to queries, keys and values at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.values import shape_text


def product_of(x: Tensor, weights: Tensor, bias: Tensor | None) -> Tensor:
    """The input times the weights, plus the bias, in float32."""
    product = x.astype(np.float32) @ weights.astype(np.float32)
    if bias is not None:
        product += bias.astype(np.float32)
    return product


def projected(
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    sizes: Sequence[int],
    product: Callable[[Tensor, Tensor, Tensor | None], Tensor] = product_of,
) -> list[Tensor]:
    """Queries, keys and values (B, S, D or Dv) in float32."""
    if x.ndim != 3 or weights.ndim != 2 or weights.shape[0] != x.shape[2]:
        shapes = f"{shape_text(x.shape)} and {shape_text(weights.shape)}"
        raise ValueError(f"the input and the weights have shapes {shapes}, expected [B, S, E] and [E, D + D + Dv]")
    width = weights.shape[1]
    sizes = tuple(sizes) or (width // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != width or min(sizes) < 1 or sizes[0] != sizes[1]:
        raise ValueError(f"weights of {width} columns do not hold queries, keys and values of sizes {list(sizes)}")
    if bias is not None and bias.shape != (width,):
        raise ValueError(f"the bias has shape {shape_text(bias.shape)}, expected [{width}]")
    whole, keys, values = product(x, weights, bias), sizes[0], sizes[0] + sizes[1]
    return [whole[:, :, :keys], whole[:, :, keys:values], whole[:, :, values:]]
