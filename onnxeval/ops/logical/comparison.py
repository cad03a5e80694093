"""Equal, Greater, Less, GreaterOrEqual and LessOrEqual.

A comparison with NaN is false. Version 1 has `axis` and `broadcast` instead of NumPy's broadcasting; the others differ
in types alone (Equal takes strings since 19).
"""

from __future__ import annotations

import numpy as np

from onnxeval.ops._broadcast import with_axis_attribute
from onnxeval.ops._elementwise import of_two
from onnxeval.registry import op

for _name, _versions, _ufunc in (
    ("Equal", (7, 11, 13, 19), np.equal),
    ("Greater", (7, 9, 13), np.greater),
    ("Less", (7, 9, 13), np.less),
    ("GreaterOrEqual", (12, 16), np.greater_equal),
    ("LessOrEqual", (12, 16), np.less_equal),
):
    _kernel = of_two(_ufunc)
    op(_name, versions=_versions)(_kernel)
    if _name in ("Equal", "Greater", "Less"):
        op(_name, versions=(1,))(with_axis_attribute(_kernel))
