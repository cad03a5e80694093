"""The domain com.microsoft.nchwc: convolutions and pools of channels in blocks (see `_blocks`).

onnxruntime puts them into models that it saves at its highest level of optimisation, and gives them weights in an order
of their own. Apart from the order they are the operators of the standard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._neighbours import Neighbours
from onnxeval.ops.contrib._blocks import block_size, in_blocks, in_rows, kernels_in_rows, require_images
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT32, K, typed
from onnxeval.ops.contrib.fused_conv import fused_conv
from onnxeval.registry import op

_DOMAIN = "com.microsoft.nchwc"


def nchwc_op(op_type: str) -> Callable[[K], K]:
    """Register an operator of the domain, whose inputs are all float32."""

    def register(kernel: K) -> K:
        return op(op_type, domain=_DOMAIN, versions=(1,))(typed("T", T=(FLOAT32,))(kernel))

    return register


@nchwc_op("ReorderInput")
def reorder_input(x: Tensor, *, channels_last: int = 0, neighbours: Neighbours) -> Tensor:
    """(N, C, H, W), or (N, H, W, C) with ``channels_last``, in blocks; the last one is filled up with zeros.

    Source: com.microsoft.nchwc.ReorderInput-1.
    """
    require_images(x)
    return in_blocks(np.moveaxis(x, -1, 1) if channels_last else x, block_size(neighbours))


@nchwc_op("ReorderOutput")
def reorder_output(x: Tensor, *, channels: int = 0, channels_last: int = 0, neighbours: Neighbours) -> Tensor:
    """From blocks to (N, ``channels``, H, W), or (N, H, W, ``channels``) with ``channels_last``.

    Raises ValueError unless just the last block holds channels too many. Source: com.microsoft.nchwc.ReorderOutput-1.
    """
    block = block_size(neighbours)
    rows = in_rows(x, block)
    if not 0 <= rows.shape[1] - channels < block:
        raise ValueError(f"{channels} channels do not take the {rows.shape[1]} of blocks of {block}")
    return np.moveaxis(rows[:, :channels], 1, -1) if channels_last else rows[:, :channels]


@nchwc_op("Conv")
def conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    z: Tensor | None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    allocate: Allocate,
    neighbours: Neighbours,
) -> Tensor:
    """The activation of Conv(x, w, b) + z, in blocks as z is.

    So is x, unless it has fewer channels than a block. Raises ValueError where z has not the shape of the result.
    Source: com.microsoft.nchwc.Conv-1.
    """
    block = block_size(neighbours)
    require_images(x)
    y = fused_conv(
        x if x.shape[1] < block else in_rows(x, block),
        kernels_in_rows(w, block),
        b,
        None if z is None else in_rows(z, block),
        activation=activation,
        activation_params=activation_params,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
        allocate=allocate,
    )
    return in_blocks(y, block)


@nchwc_op("MaxPool")
def max_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
    allocate: Allocate,
    neighbours: Neighbours,
) -> Tensor:
    """MaxPool in blocks, without indices. Source: com.microsoft.nchwc.MaxPool-1."""
    block = block_size(neighbours)
    (maxima,) = standard("nn", "MaxPool", 22)(
        in_rows(x, block),
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        kernel_shape=kernel_shape,
        pads=pads,
        storage_order=storage_order,
        strides=strides,
        n_outputs=1,
        allocate=allocate,
    )
    return in_blocks(maxima, block)


@nchwc_op("AveragePool")
def average_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    allocate: Allocate,
    neighbours: Neighbours,
) -> Tensor:
    """AveragePool in blocks. Source: com.microsoft.nchwc.AveragePool-1."""
    block = block_size(neighbours)
    means = standard("nn", "AveragePool", 22)(
        in_rows(x, block),
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        dilations=dilations,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
        allocate=allocate,
    )
    return in_blocks(means, block)


def _global_pool(op_type: str) -> Callable[..., Tensor]:
    def kernel(x: Tensor, *, neighbours: Neighbours) -> Tensor:
        """GlobalMaxPool or GlobalAveragePool in blocks. Source: com.microsoft.nchwc.GlobalMaxPool-1."""
        block = block_size(neighbours)
        return in_blocks(standard("nn", op_type, 22)(in_rows(x, block)), block)

    return kernel


for _op_type in ("GlobalMaxPool", "GlobalAveragePool"):
    nchwc_op(_op_type)(_global_pool(_op_type))


@nchwc_op("Upsample")
def upsample(
    x: Tensor,
    *,
    coordinate_transformation_mode: str = "asymmetric",
    mode: str = "nearest",
    scales: Sequence[int],
    allocate: Allocate,
    neighbours: Neighbours,
) -> Tensor:
    """Resize in blocks by whole numbers, ``nearest`` or ``linear``; ``scales`` has one for each of the four axes.

    The nearest element is the one below. Source: com.microsoft.nchwc.Upsample-1.
    """
    block = block_size(neighbours)
    if any(scale < 1 for scale in scales) or tuple(scales[:2]) != (1, 1):
        raise ValueError(f"scales {list(scales)} are not 1, 1 and two positive numbers")
    if mode == "nearest" and coordinate_transformation_mode != "asymmetric":
        raise ValueError(f"mode 'nearest' has no coordinate_transformation_mode {coordinate_transformation_mode!r}")
    resized = standard("tensor", "Resize", 13)(
        in_rows(x, block),
        None,
        np.array(scales, np.float32),
        None,
        mode=mode,
        nearest_mode="floor",
        coordinate_transformation_mode=coordinate_transformation_mode,
        cubic_coeff_a=-0.75,
        exclude_outside=0,
        extrapolation_value=0.0,
        allocate=allocate,
    )
    return in_blocks(resized, block)
