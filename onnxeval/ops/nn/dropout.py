"""Dropout: silence elements at random and scale up the rest, in training; outside it, a copy.

Versions 1 and 6 train unless ``is_test``; 7 and 10 have no way to ask for training; since 12 ``ratio`` and
``training_mode`` are inputs. The mask has the type of the data up to version 7, since 10 it is bool.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import DType, Tensor
from onnxeval.ops._cast import convert
from onnxeval.registry import op

# The text of the input, since version 12: "if not specified it will default to 0.5".
_DEFAULT_RATIO = 0.5


@op("Dropout", versions=(12, 13, 22))
def dropout(
    data: Tensor, ratio: Tensor | None, training_mode: Tensor | None, *, seed: int | None, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """(data, all True) outside training; else (data * mask / (1 - ratio), mask).

    A ``seed`` starts NumPy's legacy generator, whose stream is fixed for good: equal seeds give equal masks. Raises
    ValueError where ``ratio`` is outside [0, 1). Source: Dropout-22.
    """
    rate = _scalar(ratio, "ratio", _DEFAULT_RATIO)
    if not _scalar(training_mode, "training_mode", False):
        return data, np.ones(data.shape, np.bool_)
    return _dropped(data, rate, _uniform(data.shape, seed, rng))


@op("Dropout", versions=(10,))
def dropout_inference(data: Tensor, *, ratio: float) -> tuple[Tensor, Tensor]:  # noqa: ARG001  nothing is dropped
    """(data, all True). Source: Dropout-10, which cannot ask for training."""
    return data, np.ones(data.shape, np.bool_)


@op("Dropout", versions=(7,))
def dropout_inference_typed_mask(data: Tensor, *, ratio: float) -> tuple[Tensor, Tensor]:  # noqa: ARG001  as above
    """(data, ones of the type of data). Source: Dropout-7."""
    return data, np.ones(data.shape, data.dtype)


@op("Dropout", versions=(1, 6))
def dropout_is_test(data: Tensor, *, ratio: float, is_test: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """(data, ones) where ``is_test``, else dropped as in version 12; the mask has the type of data.

    Source: Dropout-6.
    """
    if is_test:
        return data, np.ones(data.shape, data.dtype)
    result, kept = _dropped(data, ratio, rng.random(data.shape))
    return result, kept.astype(data.dtype)


def _dropped(data: Tensor, ratio: float, uniform: Tensor) -> tuple[Tensor, Tensor]:
    if not 0 <= ratio < 1:
        raise ValueError(f"ratio {ratio} is outside [0, 1)")
    kept = uniform >= ratio
    wide: DType = data.dtype if data.dtype == np.float64 else np.dtype(np.float32)
    scaled = data.astype(wide) * (1 / (1 - ratio))
    return convert(np.where(kept, scaled, np.zeros((), wide)), data.dtype), kept


def _uniform(shape: tuple[int, ...], seed: int | None, rng: np.random.Generator) -> Tensor:
    if seed is None:
        return rng.random(shape)
    # The legacy generator takes words of 32 bits.
    words = seed if 0 <= seed < 2**32 else [seed % 2**32, seed >> 32 & (2**32 - 1)]
    return np.asarray(np.random.RandomState(words).uniform(size=shape))


def _scalar(value: Tensor | None, name: str, default: float) -> float:
    if value is None:
        return default
    if value.size != 1:
        raise ValueError(f"{name} has shape {list(value.shape)}, expected a scalar")
    return float(value.item())
