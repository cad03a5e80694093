"""InstanceNormalization and GroupNormalization: each instance is standardised by channels or groups of channels.

GroupNormalization-18 has a scale and a bias per group, since 21 they are per channel; 21 also says which precision the
first stage has.
"""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops._precision import in_float32
from onnxeval.ops.nn._moments import per_channel, standardised, stash_dtype
from onnxeval.registry import op


@op("InstanceNormalization", versions=(1, 6, 22))
@in_float32
def instance_normalization(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float) -> Tensor:
    """(N, C, D1, ..., Dn) standardised over D1 to Dn, then scaled and shifted per channel.

    Source: InstanceNormalization-22.
    """
    if x.ndim < 3:
        raise ValueError(f"the input has rank {x.ndim}, expected at least 3 (N, C, D1, ..., Dn)")
    factor, offset = (per_channel(p, name, x.shape[1], x.ndim) for name, p in (("scale", scale), ("B", bias)))
    return factor * standardised(x, tuple(range(2, x.ndim)), epsilon) + offset


@op("GroupNormalization", versions=(21,))
def group_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float, stash_type: int
) -> Tensor:
    """(N, C, D1, ..., Dn) standardised over groups of channels in the precision of ``stash_type``.

    Scale (C) and bias (C) are applied afterwards, in the type of ``x``. Raises ValueError where ``num_groups`` does not
    divide C. Source: GroupNormalization-21.
    """
    groups = convert(_grouped(x, num_groups), stash_dtype(stash_type))
    normal = convert(standardised(groups, (2,), epsilon), x.dtype).reshape(x.shape)
    factor, offset = (per_channel(p, name, x.shape[1], x.ndim) for name, p in (("scale", scale), ("bias", bias)))
    result: Tensor = factor * normal + offset
    return result


@op("GroupNormalization", versions=(18,))
@in_float32
def group_normalization_per_group(x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float) -> Tensor:
    """As version 21, with a scale (num_groups) and a bias (num_groups). Source: GroupNormalization-18."""
    groups = _grouped(x, num_groups)
    factor, offset = (per_channel(p, name, num_groups, 3) for name, p in (("scale", scale), ("bias", bias)))
    return np.asarray(factor * standardised(groups, (2,), epsilon) + offset).reshape(x.shape)


def _grouped(x: Tensor, num_groups: int) -> Tensor:
    """(N, C, D1, ..., Dn) -> (N, num_groups, C / num_groups * D1 * ... * Dn)."""
    if x.ndim < 2:
        raise ValueError(f"the input has rank {x.ndim}, expected at least 2 (N, C, D1, ..., Dn)")
    batch, channels, *spatial = x.shape
    if num_groups < 1 or channels % num_groups:
        raise ValueError(f"num_groups {num_groups} does not divide the {channels} channels")
    return x.reshape(batch, num_groups, channels // num_groups * math.prod(spatial))
