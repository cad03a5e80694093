"""BatchNormalization in inference by itself, of 16-bit floats with parameters of float32 too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import Binder, replaces
from onnxeval.fast._checks import FLOAT32, HALVES, is_float32
from onnxeval.fast.elementwise import by_itself
from onnxeval.fast.halves import converted
from onnxeval.ops.nn.batch_norm import (
    batch_normalization,
    batch_normalization_by_outputs,
    batch_normalization_by_outputs_and_features,
    batch_normalization_is_test,
)
from onnxeval.registry import Kernel


def _by_itself(readable: Kernel) -> Binder:
    bind_wide = by_itself(readable)

    def bind(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
        wide = bind_wide(constants, attributes)
        if wide is None:
            return None

        def normalised(x: Tensor, *parameters: Tensor, **given: Any) -> Any:
            if type(x) is not np.ndarray or x.dtype not in HALVES or not all(map(is_float32, parameters)):
                return wide(x, *parameters, **given)
            results = wide(converted(x, FLOAT32), *parameters, **given)
            if type(results) is tuple:
                return (converted(results[0], x.dtype), *results[1:])
            return converted(results, x.dtype)

        vars(normalised).update(vars(wide))  # whether it is replayable, as well
        return normalised

    return bind


for _kernel in (
    batch_normalization,
    batch_normalization_by_outputs,
    batch_normalization_by_outputs_and_features,
    batch_normalization_is_test,
):
    replaces(_kernel, rounded=1)(_by_itself(_kernel))
