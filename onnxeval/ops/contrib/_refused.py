"""Operators that are known by name and not run here, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from onnxeval.ops.contrib._typed import MICROSOFT

_DEVICE = "it is written for a device and its memory layout, onnxruntime itself has no CPU kernel"
_SEARCH = "it is a whole generation loop around a decoder, export the decoder itself"
_PAGES = "its key and value cache is updated in place, in pages that a serving engine hands out"
_ORDERED = "its codes lie in the order of a GPU's matrix units, onnxruntime itself has no CPU kernel"
_SPECULATION = "it keeps the books of a serving engine that guesses several words at a time, export the decoder itself"
_PACKED = "its weights are packed for one library's kernels, use MatMulNBits"
_UNWRITTEN = "no exporter or optimiser writes it"

#: A reason and the operators of com.microsoft that it holds for.
_GROUPS = (
    (
        _DEVICE,
        "DecoderAttention DequantizeBFP DynamicSparseAttention GemmFloat8 LongformerAttention "
        "MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight MatMulNBitsQLoRA MatMulPacked MoEPacked "
        "PackedSparseAttentionIndexer PackedSparseAttentionIndexerMerge QuantizeBFP RMSNormRotary ReduceSumInteger "
        "RouterGateUpProj SparseAttentionIndexer",
    ),
    (
        _ORDERED,
        "DequantizeWithOrder QOrderedAttention QOrderedGelu QOrderedLayerNormalization QOrderedLongformerAttention "
        "QOrderedMatMul QuantizeWithOrder",
    ),
    (_PAGES, "PagedAttention SparsePagedAttention"),
    (_SEARCH, "BeamSearch BifurcationDetector GreedySearch Sampling WhisperBeamSearch"),
    (
        _SPECULATION,
        "ConvStateReplay GatedDeltaNetStateReplay Mamba2Verify SpeculativePrefixCommit VarlenNGramHashMapping",
    ),
    (_PACKED, "GatherPacked MatMulFpQ4"),
    (_UNWRITTEN, "AttnLSTM MaxpoolWithMask WordConvEmbedding"),
    ("its first input is a sparse tensor, which no other operator makes", "SparseToDenseMatMul"),
    (
        "it holds a graph that an execution provider compiled for its device, use the model before that",
        "EPContext Snpe",
    ),
    (f"{_DEVICE}, export without the fusion or use GroupNormalization-21", "GroupNorm"),
    (f"{_DEVICE}, export without the fusion or use Add and GroupNormalization-21", "SkipGroupNorm"),
)
_REFUSED: Mapping[str, str] = MappingProxyType({name: reason for reason, names in _GROUPS for name in names.split()})

#: The same of whole domains.
_DOMAINS: Mapping[str, str] = MappingProxyType(
    {
        "ai.onnx.contrib": "it is a custom operator of onnxruntime-extensions, in compiled code",
        "com.ms.internal.nhwc": "it is laid out for an execution provider, save the model with the CPU provider alone",
        "org.pytorch.aten": "it calls a function of PyTorch by name, export without the fallback to ATen",
    }
)


def why_refused(domain: str, op_type: str) -> str:
    """Why an operator is not run, "" where it is none of those."""
    reason = _REFUSED.get(op_type, "") if domain == MICROSOFT else _DOMAINS.get(domain, "")
    return f"{domain}.{op_type} is not run: {reason}" if reason else ""
