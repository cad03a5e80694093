"""Which operators' results have shapes that follow from the types and shapes of their inputs alone."""

from __future__ import annotations

from collections.abc import Container

from onnxeval.plan import Step

#: Operators whose shapes depend on what some inputs hold -> the places of these; None where on any of them.
#: Those that only onnxruntime has are named with their domain, unless that is the standard's.
DECIDED_BY_VALUES: dict[str, tuple[int, ...] | None] = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "Compress": None,
    "ConstantOfShape": (0,),
    "DFT": (1, 2),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "ImageDecoder": None,
    "MaxUnpool": (2,),
    "MelWeightMatrix": None,
    "NonMaxSuppression": None,
    "NonZero": None,
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": None,
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "StringNormalizer": None,
    "StringSplit": None,
    "Tile": (1, 2),
    "TopK": (1,),
    "Unique": None,
    "Unsqueeze": (1,),
    "Upsample": (1,),
    **{
        f"Reduce{what}": (1,)
        for what in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    },
    "DynamicSlice": (1, 2, 3),
    **{
        f"com.microsoft.{what}": places
        for what, places in {
            "ConvTransposeWithDynamicPads": (2,),
            "CropAndResize": (3,),
            "DecoderMaskedMultiHeadAttention": (7,),  # the scores
            "DynamicTimeWarping": None,
            "ExpandDims": (1,),
            "GroupQueryAttention": (6,),
            "MultiHeadAttention": (8,),  # the scores
            "Pad": (1,),
            "Range": None,
            "RelativePositionBias": (1, 2),
            "RemovePadding": (1,),
            "Tokenizer": None,
            "Unique": None,
        }.items()
    },
}

#: Operators whose result is of the type and shape of one input, whatever the others hold -> the place of that one.
LIKE_AN_INPUT = {"Scatter": 0, "ScatterElements": 0, "ScatterND": 0, "TensorScatter": 0}

#: Beginnings of operators whose results are no tensors, or do not read them as such.
_OF_SEQUENCES = ("Sequence", "Optional", "SplitToSequence", "ConcatFromSequence")


def decided_by_shapes(step: Step, values: Container[str], shapes: Container[str]) -> tuple[bool, bool]:
    """Whether a step's results, and whether their types and shapes are decided before the run.

    ``values`` are the names of values that are, ``shapes`` of those whose types and shapes are.
    """
    operators = step.fused or (_name(step),)
    given = [(place, name) for place, name in enumerate(step.inputs) if name]
    if not _is_of_tensors(step) or "rng" in step.injected:
        return False, False
    if operators[0] in ("Shape", "Size") and step.inputs[0] in shapes:
        return True, True
    if all(name in values for _, name in given):
        return True, True
    if operators[0] in LIKE_AN_INPUT and len(operators) == 1:
        return False, step.inputs[LIKE_AN_INPUT[operators[0]]] in shapes
    for operator in operators:
        places = DECIDED_BY_VALUES.get(operator, ())
        if any(name not in values for place, name in given if places is None or place in places):
            return False, False
    return False, all(name in shapes for _, name in given)


def decided_by_types(step: Step, typed: Container[str]) -> bool:
    """Whether the element types of a step's results are decided before the run, as those of ``typed`` are."""
    return _is_of_tensors(step) and all(name in typed for name in step.inputs if name)


def _is_of_tensors(step: Step) -> bool:
    """Whether a step is of the standard, or of onnxruntime's operators, from tensors to tensors."""
    operators = step.fused or (_name(step),)
    return "" not in operators and not step.subgraphs and not operators[0].startswith(_OF_SEQUENCES)


def _name(step: Step) -> str:
    """The operator of a step that has a schema, "" for those outside ai.onnx and ai.onnx.ml."""
    known = step.schema is not None and step.schema.key.domain in ("", "ai.onnx.ml")
    return step.schema.key.op_type if step.schema is not None and known else ""
