"""QAttention: Attention whose input and weights are integers."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._quantized import by_column
from onnxeval.ops._scalar import scalar
from onnxeval.ops.contrib._eight_bits import EIGHT_BITS, distances
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, INT32, microsoft_op
from onnxeval.ops.contrib.attention import attended
from onnxeval.values import shape_text


@microsoft_op("QAttention", "XWFFFIXWF", outputs=2, X=EIGHT_BITS, W=EIGHT_BITS, F=(FLOAT32, FLOAT16), I=(INT32,))
def qattention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor,
    x_scale: Tensor,
    w_scale: Tensor,
    mask_index: Tensor | None,
    x_zero_point: Tensor | None,
    w_zero_point: Tensor | None,
    past: Tensor | None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """(Y, present): the input (B, S, E) times the weights (E, 3 D), plus the bias, attends to itself as in Attention-1.

    The sums of products are exact. The scale and the zero point of the weights are one number or one a column. Y and
    present are of the type of the scales. Raises ValueError where shapes do not fit together, and for a shared buffer,
    for no input tells how much of it is filled. Source: com.microsoft.QAttention-1.
    """
    width = weights.shape[-1] if weights.ndim == 2 else 0
    if x.ndim != 3 or not width or weights.shape[0] != x.shape[2] or width % 3 or bias.shape != (width,):
        shapes = ", ".join(shape_text(each.shape) for each in (x, weights, bias))
        raise ValueError(f"input, weights and bias have shapes {shapes}, expected [B, S, E], [E, 3 D] and [3 D]")
    if past_present_share_buffer and past is not None:
        raise ValueError("past_present_share_buffer is set, but nothing tells how much of past is filled")
    left = distances(x, None if x_zero_point is None else scalar(x_zero_point, name="input_zero_point"))
    start = None if w_zero_point is None else by_column(w_zero_point, weights, name="weight_zero_point")
    step = float(scalar(x_scale, name="input_scale")) * by_column(w_scale, weights, name="weight_scale").astype(float)
    product = (left @ distances(weights, start) * step + bias.astype(float)).astype(np.float32)
    results = attended(
        np.split(product, 3, axis=2),
        mask_index,
        past,
        None,
        None,
        do_rotary=do_rotary,
        mask_filter_value=mask_filter_value,
        num_heads=num_heads,
        rotary_embedding_dim=0,
        scale=scale,
        unidirectional=unidirectional,
        n_outputs=n_outputs,
    )
    return tuple(result.astype(x_scale.dtype) for result in results)
