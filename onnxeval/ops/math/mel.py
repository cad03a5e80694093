"""MelWeightMatrix."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor, dtype_of
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._cast import convert
from onnxeval.ops._scalar import scalar
from onnxeval.registry import op


@op("MelWeightMatrix", versions=(17,))
def mel_weight_matrix(
    num_mel_bins: Tensor,
    dft_length: Tensor,
    sample_rate: Tensor,
    lower_edge_hertz: Tensor,
    upper_edge_hertz: Tensor,
    *,
    output_datatype: int,
    allocate: Allocate,
) -> Tensor:
    """(dft_length // 2 + 1, num_mel_bins): for each band a triangle of height 1 over the bins of a spectrum.

    The corners are ``num_mel_bins`` + 2 equal steps up the mel scale from the lower edge, the last step short of the
    upper edge, moved down to whole bins: the text leaves this to the conformance case. Raises ValueError for sizes
    and rates that are not positive and for edges out of order. Source: MelWeightMatrix-17.
    """
    bands, length = scalar(num_mel_bins, name="num_mel_bins"), scalar(dft_length, name="dft_length")
    rate = scalar(sample_rate, name="sample_rate")
    if bands < 0 or length < 1 or rate < 1:
        raise ValueError(f"num_mel_bins {bands}, dft_length {length} and sample_rate {rate} must be positive")
    lowest = float(scalar(lower_edge_hertz, name="lower_edge_hertz"))
    highest = float(scalar(upper_edge_hertz, name="upper_edge_hertz"))
    if not 0 <= lowest <= highest < np.inf:
        raise ValueError(f"the edges {lowest} and {highest} hertz are not two frequencies in rising order")
    weights = allocate((length // 2 + 1, bands), np.float64)
    low, high = 2595 * np.log10(1 + np.array([lowest, highest]) / 700)
    mels = low + np.arange(bands + 2) * (high - low) / (bands + 2)
    corners = np.floor((length + 1) * 700 * (10 ** (mels / 2595) - 1) / rate)
    lower, centre, upper = corners[:-2], corners[1:-1], corners[2:]
    bins = np.arange(length // 2 + 1)[:, None]
    rising, falling = (bins - lower) / (centre - lower), (upper - bins) / (upper - centre)
    weights[:] = np.where(bins < centre, rising, falling)
    weights[bins == centre] = 1
    weights[(bins < lower) | (bins > np.maximum(upper, centre))] = 0
    return convert(weights, dtype_of(output_datatype))
