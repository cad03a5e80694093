"""Functions of one number: rounding, roots, exponentials, trigonometry and their inverses.

Versions differ in types alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._elementwise import of_one
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op


def _tangent(x: Tensor) -> Tensor:
    """In float64: NumPy's own of float32 loses a digit near the poles."""
    result: Tensor = np.tan(x, dtype=np.float64)
    return result.astype(x.dtype, copy=False)


_Table = tuple[tuple[str, tuple[int, ...], Callable[[Tensor], Tensor]], ...]

#: Exact in every type, integers included; the least one stays as it is under Abs and Neg.
_EXACT: _Table = (
    ("Abs", (1, 6, 13), np.abs),
    ("Neg", (1, 6, 13), np.negative),
    ("Sign", (9, 13), np.sign),
    ("Ceil", (1, 6, 13), np.ceil),
    ("Floor", (1, 6, 13), np.floor),
    ("Round", (11, 22), np.rint),  # halves to even
)
_ROUNDED: _Table = (
    ("Sqrt", (1, 6, 13), np.sqrt),
    ("Reciprocal", (1, 6, 13), np.reciprocal),
    ("Exp", (1, 6, 13), np.exp),
    ("Log", (1, 6, 13), np.log),
    ("Sin", (7, 22), np.sin),
    ("Cos", (7, 22), np.cos),
    ("Tan", (7, 22), _tangent),
    ("Asin", (7, 22), np.arcsin),
    ("Acos", (7, 22), np.arccos),
    ("Atan", (7, 22), np.arctan),
    ("Sinh", (9, 22), np.sinh),
    ("Cosh", (9, 22), np.cosh),
    ("Tanh", (1, 6, 13), np.tanh),
    ("Asinh", (9, 22), np.arcsinh),
    ("Acosh", (9, 22), np.arccosh),
    ("Atanh", (9, 22), np.arctanh),
)

for _name, _versions, _ufunc in _EXACT:
    op(_name, versions=_versions)(of_one(_ufunc))
for _name, _versions, _ufunc in _ROUNDED:
    op(_name, versions=_versions)(in_float32(of_one(_ufunc)))
