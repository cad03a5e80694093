"""onnxeval/kernels.txt: which kernel file registers which operators, for `onnxeval.registry` to import only those.

``python tests/ops/kernel_files.py`` writes it anew.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

from onnxeval import registry


def text() -> str:
    """Asks each file for what it registers, in a process that has imported none of them."""
    operators: dict[str, set[str]] = {}
    register = registry.op

    def noted(op_type: str, **described: Any) -> Callable[[Any], Any]:
        frame = sys._getframe(1)
        while frame.f_code.co_name != "<module>":
            frame = cast("FrameType", frame.f_back)
        file = frame.f_globals["__name__"].removeprefix("onnxeval.ops.")
        operators.setdefault(file, set()).add(op_type)
        return register(op_type, **described)

    registry.op = noted
    registry.Registry.standard()
    return "".join(f"{file} {' '.join(sorted(found))}\n" for file, found in sorted(operators.items()))


if __name__ == "__main__":
    registry.KEPT.write_text(text(), "ascii")
