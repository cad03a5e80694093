"""The standard's own kernels, for operators that repeat them under another name."""

from __future__ import annotations

from onnxeval.registry import STANDARD, Kernel, OpKey


def standard(section: str, op_type: str, version: int) -> Kernel:
    """The kernel of a version of an operator of ai.onnx; its file is imported where it is not yet."""
    return STANDARD.require(OpKey("", op_type, version), section)
