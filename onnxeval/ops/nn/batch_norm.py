"""BatchNormalization: standardise each channel by the statistics of a batch, or by those that training left.

Which of the two is asked for is said in three ways: by ``is_test`` in versions 1 and 6, by the number of outputs in 7
and 9, by ``training_mode`` since 14. Up to version 9 training also gives back the statistics of the batch, and
``spatial=0`` (up to 7) normalises each element of (C, D1, ..., Dn) by itself. Variances are the population's
throughout; the text says so since version 14.
"""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops.nn._moments import accumulator, centred
from onnxeval.registry import op


@op("BatchNormalization", versions=(14, 15))
def batch_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    training_mode: int,
    momentum: float,
    epsilon: float,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """(N, C, D1, ..., Dn) or (N) standardised per channel, and when training the new running mean and variance.

    The result has the type of ``x``, the statistics that of ``mean``; all is computed in float32, or float64 where
    an input is that. Raises ValueError where more than one output is asked for outside training.
    Source: BatchNormalization-15.
    """
    if not training_mode:
        return (_inference(x, scale, bias, mean, variance, epsilon, n_outputs),)
    return _training(x, scale, bias, mean, variance, momentum, epsilon)[:3]


@op("BatchNormalization", versions=(9,))
def batch_normalization_by_outputs(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    momentum: float,
    epsilon: float,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """Inference where the node lists one output, training where it lists more.

    Training gives the result, the running mean and variance, and the batch's own mean and variance.
    Source: BatchNormalization-9.
    """
    if n_outputs == 1:
        return (_inference(x, scale, bias, mean, variance, epsilon, n_outputs),)
    return _training(x, scale, bias, mean, variance, momentum, epsilon)


@op("BatchNormalization", versions=(7,))
def batch_normalization_by_outputs_and_features(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    spatial: int,
    momentum: float,
    epsilon: float,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """As version 9; unless ``spatial``, each element of (C, D1, ..., Dn) is a feature. Source: BatchNormalization-7."""
    if n_outputs == 1:
        return (_inference(x, scale, bias, mean, variance, epsilon, n_outputs, spatial),)
    return _training(x, scale, bias, mean, variance, momentum, epsilon, spatial)


@op("BatchNormalization", versions=(1, 6))
def batch_normalization_is_test(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    is_test: int,
    spatial: int,
    momentum: float,
    epsilon: float,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """Training unless ``is_test``; the outputs are those of version 9. Source: BatchNormalization-6."""
    if is_test:
        return (_inference(x, scale, bias, mean, variance, epsilon, n_outputs, spatial),)
    return _training(x, scale, bias, mean, variance, momentum, epsilon, spatial)


def _inference(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    epsilon: float,
    n_outputs: int,
    spatial: int = 1,
) -> Tensor:
    if n_outputs > 1:
        raise ValueError(f"the node lists {n_outputs} outputs; outside training there is only one")
    dtype = accumulator(x.dtype, scale.dtype, mean.dtype)
    parameters = {"scale": scale, "B": bias, "mean": mean, "var": variance}
    scale, bias, mean, variance = (
        _shaped(parameter, name, x, spatial).astype(dtype) for name, parameter in parameters.items()
    )
    result: Tensor = np.subtract(x, mean, dtype=dtype)
    result *= scale / np.sqrt(variance + epsilon)
    result += bias
    return convert(result, x.dtype)


def _training(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    epsilon: float,
    spatial: int = 1,
) -> tuple[Tensor, ...]:
    """(result, running mean, running variance, batch mean, batch variance)."""
    dtype = accumulator(x.dtype, scale.dtype, mean.dtype)
    factor, offset = (_shaped(p, name, x, spatial).astype(dtype) for name, p in (("scale", scale), ("B", bias)))
    running = [_shaped(p, name, x, spatial).astype(dtype) for name, p in (("mean", mean), ("var", variance))]
    axes = tuple(axis for axis in range(x.ndim) if axis != 1) if spatial else (0,)
    deviation, *batch = centred(x.astype(dtype), axes)
    result = deviation / np.sqrt(batch[1] + epsilon) * factor + offset
    updated = [old * momentum + new * (1 - momentum) for old, new in zip(running, batch, strict=True)]
    statistics = (convert(value.reshape(mean.shape), mean.dtype) for value in (*updated, *batch))
    return (convert(result, x.dtype), *statistics)


def _shaped(parameter: Tensor, name: str, x: Tensor, spatial: int) -> Tensor:
    """A parameter shaped to broadcast against ``x``: (1, C, 1, ...), or (1, C, D1, ..., Dn) where not spatial.

    An input of rank 1 has one channel. A parameter that is not spatial may also be given flat.
    """
    if x.ndim == 0:
        raise ValueError("the input is a scalar, expected (N, C, D1, ..., Dn)")
    features = x.shape[1:] or (1,)
    expected = features[:1] if spatial else features
    flat = (math.prod(expected),)
    if parameter.shape not in (expected, flat):
        raise ValueError(f"{name} has shape {list(parameter.shape)}, expected {list(expected)}")
    return parameter if x.ndim == 1 else parameter.reshape(1, *expected, *(1,) * (x.ndim - 1 - len(expected)))
