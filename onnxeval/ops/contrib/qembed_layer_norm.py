"""QEmbedLayerNormalization: EmbedLayerNormalization whose tables and weights are integers."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.contrib._eight_bits import EIGHT_BITS, dequantized
from onnxeval.ops.contrib._typed import FLOAT32, INT32, microsoft_op
from onnxeval.ops.contrib.embed_layer_norm import embed_layer_normalization
from onnxeval.values import shape_text


@microsoft_op("QEmbedLayerNormalization", "IIQQQQQIFFFFFQQQQQ", I=(INT32,), Q=EIGHT_BITS, F=(FLOAT32,))
def qembed_layer_normalization(
    input_ids: Tensor,
    segment_ids: Tensor | None,
    word_embedding: Tensor,
    position_embedding: Tensor,
    segment_embedding: Tensor | None,
    gamma: Tensor,
    beta: Tensor,
    mask: Tensor | None,
    word_embedding_scale: Tensor,
    position_embedding_scale: Tensor,
    segment_embedding_scale: Tensor | None,
    gamma_scale: Tensor,
    beta_scale: Tensor,
    word_embedding_zero_point: Tensor,
    position_embedding_zero_point: Tensor,
    segment_embedding_zero_point: Tensor | None,
    gamma_zero_point: Tensor,
    beta_zero_point: Tensor,
    *,
    epsilon: float = 1e-12,
) -> tuple[Tensor, Tensor]:
    """(Y (B, S, H) in float32, how many ones each row of the mask has) of words (B, S), as EmbedLayerNormalization-1.

    Raises ValueError where shapes do not fit together, for ids outside the embeddings, for a scale or a zero point that
    is not one number, and where some but not all of the inputs for segments are there.
    Source: com.microsoft.QEmbedLayerNormalization-1.
    """
    if word_embedding.ndim != 2 or input_ids.ndim != 2:
        shapes = f"{shape_text(input_ids.shape)} and {shape_text(word_embedding.shape)}"
        raise ValueError(f"input_ids and word_embedding have shapes {shapes}, expected [B, S] and [words, H]")
    if input_ids.size and not 0 <= input_ids.min() <= input_ids.max() < len(word_embedding):
        raise ValueError(
            f"ids {input_ids.min()} to {input_ids.max()} leave the {len(word_embedding)} rows of word_embedding"
        )
    words = word_embedding[input_ids.ravel()]  # a table is large, and few of its rows are needed
    segments = (segment_embedding, segment_embedding_scale, segment_embedding_zero_point)
    if any((part is None) != (segment_ids is None) for part in segments):
        raise ValueError("some of segment_ids, segment_embedding, its scale and its zero point are given, some are not")
    table, table_scale, table_zero_point = segments
    y, ones, _ = embed_layer_normalization(
        np.arange(input_ids.size, dtype=np.int32).reshape(input_ids.shape),
        segment_ids,
        dequantized(words, word_embedding_scale, word_embedding_zero_point, name="word_embedding"),
        dequantized(
            position_embedding[: input_ids.shape[1]],
            position_embedding_scale,
            position_embedding_zero_point,
            name="position_embedding",
        ),
        None
        if table is None or table_scale is None
        else dequantized(table, table_scale, table_zero_point, name="segment_embedding"),
        dequantized(gamma, gamma_scale, gamma_zero_point, name="gamma"),
        dequantized(beta, beta_scale, beta_zero_point, name="beta"),
        mask,
        None,
        epsilon=epsilon,
    )
    return y, ones
