"""Operators that are known by name and not run here, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from onnxeval.ops.contrib._typed import MICROSOFT

_DEVICE = "it is written for a device and its memory layout, onnxruntime itself has no CPU kernel"
_SEARCH = "it is a whole generation loop around a decoder, export the decoder itself"

_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "EPContext": "it holds a graph that an execution provider compiled for its device, use the model before that",
        "PagedAttention": "its key and value cache is updated in place, in pages that a serving engine hands out",
        "SparsePagedAttention": "its key and value cache is updated in place, in pages that a serving engine hands out",
        "GroupNorm": f"{_DEVICE}, export without the fusion or use GroupNormalization-21",
        "SkipGroupNorm": f"{_DEVICE}, export without the fusion or use Add and GroupNormalization-21",
        "BeamSearch": _SEARCH,
        "GreedySearch": _SEARCH,
        "Sampling": _SEARCH,
        "WhisperBeamSearch": _SEARCH,
    }
)


def why_refused(domain: str, op_type: str) -> str:
    """Why an operator is not run, "" where it is none of those."""
    if domain == MICROSOFT and op_type in _REFUSED:
        return f"{domain}.{op_type} is not run: {_REFUSED[op_type]}"
    if domain == "ai.onnx.contrib":
        return f"{domain}.{op_type} is not run: it is a custom operator of onnxruntime-extensions, in compiled code"
    return ""
