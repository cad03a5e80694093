"""MatMulBnb4: a matrix product with weights of 4 bits, which are places in a table and scaled by blocks."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib._packing import require_block_size
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOATS, UINT8, microsoft_op
from onnxeval.values import shape_text

#: A float of 4 bits, the highest of them the sign, in twelfths of the largest.
_FP4 = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3], np.float64) / 12

#: The quantiles of the normal distribution that bitsandbytes calls normal float, exact in float32.
_NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
    *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)

#: By ``quant_type``: what each of the 16 codes stands for.
_TABLES = tuple(np.asarray(table, np.float32) for table in (np.concatenate([_FP4, -_FP4]), _NF4))


@microsoft_op("MatMulBnb4", "TBT", T=FLOATS, B=(UINT8,))
@in_float32
def matmul_bnb4(
    a: Tensor,
    b: Tensor,
    absmax: Tensor,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,
    training_mode: int = 0,  # noqa: ARG001  the product is the same
    transB: int = 1,
) -> Tensor:
    """(..., K) x weights (N, K) transposed -> (..., N), or (..., N) x weights -> (..., K) where ``transB`` is 0.

    ``b`` has the N * K codes of the weights, row by row, two in a byte, the first in the high bits. A code stands for a
    number of a table, FP4 (``quant_type`` 0) or NF4 (1), times the entry of ``absmax`` for its block of ``block_size``
    codes. Source: com.microsoft.MatMulBnb4-1.
    """
    require_block_size(block_size)
    if quant_type not in (0, 1):
        raise ValueError(f"quant_type {quant_type} is neither 0 (FP4) nor 1 (NF4)")
    if N < 0 or K < 0:
        raise ValueError(f"N {N} or K {K} is negative")
    count = N * K
    for name, x, size in (("B", b, -(-count // 2)), ("absmax", absmax, -(-count // block_size))):
        if x.size != size:
            raise ValueError(f"{name} has shape {shape_text(x.shape)}, weights ({N}, {K}) need {size} elements")
    codes = np.stack([b.ravel() >> 4, b.ravel() & 15], axis=-1).ravel()[:count]
    scales = absmax.ravel().repeat(min(block_size, count or 1))[:count]
    weights = (_TABLES[quant_type][codes] * scales).reshape(N, K)
    result: Tensor = standard("math", "MatMul", 13)(a, weights.T if transB else weights)
    return result
