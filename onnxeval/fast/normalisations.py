"""BatchNormalization in inference: what it does to each channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast._checks import known_float32
from onnxeval.fast.parts import Part, normalises_channels
from onnxeval.registry import Kernel

#: Where the readable kernels live, which few models need.
_HOME = "onnxeval.ops.nn.batch_norm"


class Normalisation(NamedTuple):
    """(x - mean) * factor + shift, a number each for each channel."""

    mean: Tensor
    factor: Tensor
    shift: Tensor

    def then(self, factor: Tensor | float, shift: Tensor | float) -> Normalisation | None:
        """The same, times a factor, plus a shift, in one; None where a number of it is not finite any more."""
        with np.errstate(all="ignore"):
            parts = (
                np.multiply(self.factor, factor, dtype=float),
                np.multiply(self.shift, factor, dtype=float) + shift,
            )
            found = [part.astype(np.float32) for part in parts]
        return Normalisation(self.mean, *found) if all(np.isfinite(part).all() for part in found) else None


def is_normalisation(kernel: Kernel) -> bool:
    """Whether a readable kernel is a BatchNormalization."""
    return getattr(kernel, "__module__", "") == _HOME


def normalisation_of(part: Part, constants: Sequence[Tensor | None]) -> Normalisation | None:
    """What a part does in inference, where its parameters are constant; None for any other part."""
    if not is_normalisation(part.kernel):
        return None
    attributes = part.attributes
    if not normalises_channels(attributes) or attributes.get("n_outputs", 1) != 1:
        return None
    known = [constants[source] if source >= 0 else None for source in part.sources[1:5]]
    given = [each for each in known if each is not None and known_float32(each) and each.ndim == 1]
    if len(given) < 4 or len({len(each) for each in given}) > 1:
        return None
    scale, shift, mean, variance = given
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + np.float32(attributes["epsilon"]))
    return Normalisation(*map(np.ascontiguousarray, (mean, factor, shift)))
