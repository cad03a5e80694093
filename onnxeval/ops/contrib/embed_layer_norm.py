"""EmbedLayerNormalization: the embeddings of words, positions and segments, summed and normalised."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, INT32, microsoft_op
from onnxeval.ops.contrib.layer_norm import layer_normalization
from onnxeval.values import shape_text


@microsoft_op("EmbedLayerNormalization", "IITTTTTII", I=(INT32,), T=(FLOAT32, FLOAT16))
def embed_layer_normalization(
    input_ids: Tensor,
    segment_ids: Tensor | None,
    word_embedding: Tensor,
    position_embedding: Tensor,
    segment_embedding: Tensor | None,
    gamma: Tensor,
    beta: Tensor,
    mask: Tensor | None,
    position_ids: Tensor | None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,  # noqa: ARG001  tells what the second output is for
) -> tuple[Tensor, Tensor, Tensor]:
    """(Y (B, S, H), how many ones each row of the mask has, the sum before normalising) of words (B, S).

    Positions are 0, 1, ... unless ``position_ids`` (B or 1, S) tell others; without a mask the numbers of ones are 0.

    Raises ValueError where shapes do not fit together and for ids outside the embeddings.
    Source: com.microsoft.EmbedLayerNormalization-1.
    """
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids have shape {shape_text(input_ids.shape)}, expected [B, S]")
    batch, steps = input_ids.shape
    if position_ids is None:
        position_ids = np.arange(steps)[np.newaxis]
    elif position_ids.shape not in ((batch, steps), (1, steps)):
        raise ValueError(f"position_ids have shape {shape_text(position_ids.shape)}, expected [{batch} or 1, {steps}]")
    hidden = gamma.shape
    total = _rows(word_embedding, input_ids, "word_embedding", hidden)
    total = total + _rows(position_embedding, position_ids, "position_embedding", hidden)
    if (segment_ids is None) != (segment_embedding is None):
        raise ValueError("segment_ids and segment_embedding come together, one of them is absent")
    if segment_ids is not None and segment_embedding is not None:
        if segment_ids.shape != input_ids.shape:
            raise ValueError(f"segment_ids have shape {shape_text(segment_ids.shape)}, expected [{batch}, {steps}]")
        total = total + _rows(segment_embedding, segment_ids, "segment_embedding", hidden)
    if mask is not None and mask.shape != input_ids.shape:
        raise ValueError(f"the mask has shape {shape_text(mask.shape)}, expected [{batch}, {steps}]")
    y, _, _ = layer_normalization(total, gamma.astype(np.float32), beta.astype(np.float32), axis=-1, epsilon=epsilon)
    dtype = word_embedding.dtype
    ones = np.zeros(batch, np.int32) if mask is None else np.count_nonzero(mask == 1, axis=1).astype(np.int32)
    return y.astype(dtype), ones, total.astype(dtype)


def _rows(table: Tensor, ids: Tensor, name: str, hidden: tuple[int, ...]) -> Tensor:
    """The rows of an embedding, in float32."""
    if table.ndim != 2 or len(hidden) != 1 or table.shape[1:] != hidden:
        raise ValueError(f"{name} has shape {shape_text(table.shape)}, gamma {shape_text(hidden)}")
    if ids.size and (ids.min() < 0 or ids.max() >= len(table)):
        raise ValueError(f"ids {ids.min()} to {ids.max()} leave the {len(table)} rows of {name}")
    result: Tensor = table[ids].astype(np.float32)
    return result
