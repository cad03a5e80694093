"""MatMulNBits several times of one input, with the norm before and the gate after, as onnxruntime fuses them."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops.contrib import _curves as curves
from onnxeval.ops.contrib._typed import FLOATS, UINT8, microsoft_op
from onnxeval.ops.contrib.layer_norm import simplified_layer_normalization, skip_simplified_layer_normalization
from onnxeval.ops.contrib.matmul_nbits import matmul_nbits


@microsoft_op("MatMulNBitsMlp", "TTTBTTBTT", outputs=2, T=FLOATS, B=(UINT8,))
def matmul_nbits_mlp(
    a: Tensor,
    skip: Tensor | None,
    norm_scale: Tensor | None,
    gate_B: Tensor,
    gate_scales: Tensor,
    gate_bias: Tensor | None,
    up_B: Tensor,
    up_scales: Tensor,
    up_bias: Tensor | None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,  # noqa: ARG001  allows less precision than there is
    activation: str,
    bits: int = 4,
    block_size: int,
    epsilon: float = 1e-5,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """(silu(gate) * up, sum) of two `matmul_nbits` of ``a``, normed before where there is a ``norm_scale`` (K,).

    The norm is that of SkipSimplifiedLayerNormalization, with the sum of a and ``skip``, or without it that of
    SimplifiedLayerNormalization. Raises ValueError where shapes do not fit together, for other activations than "silu",
    and where the sum is asked for without a skip. Source: com.microsoft.MatMulNBitsMlp-1.
    """
    if activation != "silu":
        raise ValueError(f"activation {activation!r} is not 'silu'")
    normed, total = _normed(a, skip, norm_scale, epsilon, want_sum=n_outputs > 1)
    how = {"K": K, "N": N, "bits": bits, "block_size": block_size}
    gate = matmul_nbits(normed, gate_B, gate_scales, None, None, gate_bias, **how).astype(np.float32)
    up = matmul_nbits(normed, up_B, up_scales, None, None, up_bias, **how).astype(np.float32)
    return (convert(curves.silu(gate) * up, a.dtype), *total)


@microsoft_op("MatMulNBitsQkv", "TTTBTTBTTBTT", outputs=4, T=FLOATS, B=(UINT8,))
def matmul_nbits_qkv(
    a: Tensor,
    skip: Tensor | None,
    norm_scale: Tensor,
    q_B: Tensor,
    q_scales: Tensor,
    q_bias: Tensor | None,
    k_B: Tensor,
    k_scales: Tensor,
    k_bias: Tensor | None,
    v_B: Tensor,
    v_scales: Tensor,
    v_bias: Tensor | None,
    *,
    K: int,
    Nkv: int,
    Nq: int,
    accuracy_level: int = 0,  # noqa: ARG001  allows less precision than there is
    bits: int = 4,
    block_size: int,
    epsilon: float = 1e-6,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """(queries, keys, values, sum): three `matmul_nbits` of ``a``, normed before as in `matmul_nbits_mlp`.

    Raises ValueError where shapes do not fit together, and where the sum is asked for without a skip.
    Source: com.microsoft.MatMulNBitsQkv-1.
    """
    normed, total = _normed(a, skip, norm_scale, epsilon, want_sum=n_outputs > 3)
    weights = ((Nq, q_B, q_scales, q_bias), (Nkv, k_B, k_scales, k_bias), (Nkv, v_B, v_scales, v_bias))
    results = [
        matmul_nbits(normed, codes, scales, None, None, bias, K=K, N=n, bits=bits, block_size=block_size)
        for n, codes, scales, bias in weights
    ]
    return (*results, *total)


def _normed(
    a: Tensor, skip: Tensor | None, scale: Tensor | None, epsilon: float, *, want_sum: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """(the input of the products, the sum where that is asked for)."""
    if skip is None and want_sum:
        raise ValueError("input_skip_bias_sum needs a skip, which is absent")
    if scale is None:
        if skip is not None:
            raise ValueError("a skip needs norm_scale, which is absent")
        return a, ()
    if skip is None:
        return simplified_layer_normalization(a, scale, epsilon=epsilon)[0], ()
    normed, _, _, total = skip_simplified_layer_normalization(a, skip, scale, None, epsilon=epsilon)
    return normed, (total,) if want_sum else ()
