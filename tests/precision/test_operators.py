"""Every operator that rounds numbers of float32 is drawn, or here is why it is not."""

import onnx
from precision import drawn

#: They move numbers, choose among them or compare them: what comes out went in.
EXACT = frozenset(
    [
        "BitCast",
        "Cast",
        "CastLike",
        "CenterCropPad",
        "Compress",
        "Concat",
        "ConcatFromSequence",
        "Constant",
        "ConstantOfShape",
        "DepthToSpace",
        "Dropout",
        "Expand",
        "EyeLike",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Hardmax",
        "Identity",
        "If",
        "Loop",
        "MaxUnpool",
        "OneHot",
        "OptionalGetElement",
        "Pad",
        "Reshape",
        "ReverseSequence",
        "Scan",
        "Scatter",
        "ScatterElements",
        "ScatterND",
        "SequenceAt",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "TensorScatter",
        "Tile",
        "TopK",
        "Transpose",
        "Trilu",
        "Unique",
        "Unsqueeze",
        "Where",
    ]
)
RANDOM = frozenset(["Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"])
#: Their texts know no float64, or onnxruntime 1.32 has not what they are made of.
NOT_COMPARABLE = frozenset(["CausalConvWithState", "LinearAttention", "SwiGLU"])
#: Sums of few weights, and what the cases of the standard hold well enough.
BY_CASES = frozenset(["DynamicQuantizeLinear", "MelWeightMatrix", "TfIdfVectorizer", "Upsample"])


def test_all_are_there():
    rounding = {
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if not schema.domain and any("tensor(float)" in output.types for output in schema.outputs)
    }
    assert {node.op_type for node in drawn.ALL} == rounding - EXACT - RANDOM - NOT_COMPARABLE - BY_CASES
