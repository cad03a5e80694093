"""Derivatives of BatchNormalization, in inference and in training, and of the losses of classes."""

from __future__ import annotations

import numpy as np

from onnxeval.ops.nn._moments import accumulator
from onnxeval.ops.training._algebra import cast, mean, reshape, root, total, where
from onnxeval.ops.training._definitions import definition
from onnxeval.ops.training._tape import Variable, apply

# BatchNormalization


@definition("BatchNormalization", 15)
def _batch_normalization(
    *tensors: Variable, training_mode: int, momentum: float, epsilon: float, n_outputs: int
) -> tuple[Variable, ...]:
    return _normalised(tensors, momentum, epsilon, training=bool(training_mode))[:n_outputs]


@definition("BatchNormalization", 9)
def _by_outputs(*tensors: Variable, momentum: float, epsilon: float, n_outputs: int) -> tuple[Variable, ...]:
    return _normalised(tensors, momentum, epsilon, training=n_outputs > 1)


@definition("BatchNormalization", 7)
def _by_outputs_and_features(
    *tensors: Variable, spatial: int, momentum: float, epsilon: float, n_outputs: int
) -> tuple[Variable, ...]:
    return _normalised(tensors, momentum, epsilon, training=n_outputs > 1, spatial=bool(spatial))


@definition("BatchNormalization", 6)
def _by_is_test(
    *tensors: Variable, is_test: int, spatial: int, momentum: float, epsilon: float, **_: int
) -> tuple[Variable, ...]:
    return _normalised(tensors, momentum, epsilon, training=not is_test, spatial=bool(spatial))


def _normalised(
    tensors: tuple[Variable, ...], momentum: float, epsilon: float, *, training: bool, spatial: bool = True
) -> tuple[Variable, ...]:
    """(result, running mean, running variance, batch mean, batch variance); the first alone outside training."""
    x, *given = tensors
    dtype = accumulator(x.dtype, given[0].dtype, given[2].dtype)
    scale, bias, running_mean, running_variance = (_shaped(cast(each, dtype), x, spatial) for each in given)
    wide = cast(x, dtype)
    if not training:
        return (cast((wide - running_mean) * (scale / root(running_variance + epsilon)) + bias, x.dtype),)
    axes = [axis for axis in range(x.ndim) if axis != 1] if spatial else [0]
    average = mean(wide, axes)
    deviation = wide - average
    variance = mean(deviation * deviation, axes)
    result = deviation / root(variance + epsilon) * scale + bias
    pairs = ((running_mean, average), (running_variance, variance))
    running = (old * momentum + new * (1 - momentum) for old, new in pairs)
    shape, stored = given[2].shape, given[2].dtype
    return cast(result, x.dtype), *(cast(reshape(each, shape), stored) for each in (*running, average, variance))


def _shaped(parameter: Variable, x: Variable, spatial: bool) -> Variable:
    """In a shape that goes with (N, C, D1, ..., Dn), or with (N)."""
    if x.ndim == 1:
        return parameter
    return reshape(parameter, (1, x.shape[1], *(1,) * (x.ndim - 2)) if spatial else (1, *x.shape[1:]))


# Losses


@definition("NegativeLogLikelihoodLoss", 22)
def _negative_log_likelihood_loss(
    x: Variable, target: Variable, weight: Variable | None, *, ignore_index: int | None, reduction: str
) -> Variable:
    classes = target.value
    ignored = np.zeros(classes.shape, bool) if ignore_index is None else np.asarray(classes == ignore_index)
    chosen = np.where(ignored, 0, classes)
    weights = (
        x.tape.constant(np.ones(classes.shape, x.dtype)) if weight is None else apply("Gather", weight, chosen, axis=0)
    )
    weights = where(ignored, 0, weights)
    picked = reshape(apply("GatherElements", x, np.expand_dims(chosen, 1), axis=1), classes.shape)
    losses = where(ignored, 0, -picked * weights)
    if reduction == "none":
        return losses
    summed = total(losses, range(losses.ndim), keepdims=False)
    return summed if reduction == "sum" else summed / total(weights, range(losses.ndim), keepdims=False)


@definition("SoftmaxCrossEntropyLoss", 13)
def _softmax_cross_entropy_loss(
    scores: Variable, labels: Variable, weights: Variable | None, *, ignore_index: int | None, reduction: str
) -> tuple[Variable, Variable]:
    log_prob = apply("LogSoftmax", scores, axis=1)
    loss = _negative_log_likelihood_loss(log_prob, labels, weights, ignore_index=ignore_index, reduction=reduction)
    return loss, log_prob
