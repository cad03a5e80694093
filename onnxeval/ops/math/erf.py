"""Erf. Version 9 takes integers too, version 13 floating-point types alone."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor, is_integer
from onnxeval.ops._precision import in_float32
from onnxeval.ops.math._error_function import erf
from onnxeval.registry import op


@op("Erf", versions=(9, 13))
@in_float32
def error_function(x: Tensor) -> Tensor:
    """The error function. Of integers it is computed in float64 and truncated, as Cast does. Source: Erf-9, Erf-13."""
    return erf(x.astype(np.float64)).astype(x.dtype) if is_integer(x.dtype) else erf(x)
