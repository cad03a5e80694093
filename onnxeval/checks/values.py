"""Rules on the values of attributes: what the text of the operator allows, whatever flows into the node."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnx import AttributeProto, TensorProto

from onnxeval.attributes import attribute_value
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.suggest import nearest
from onnxeval.dtypes import BY_ELEMENT_TYPE, name_of
from onnxeval.errors import ModelError
from onnxeval.schema import Schema

_SCALAR_OR_LIST = {
    AttributeProto.INT: AttributeProto.INT,
    AttributeProto.INTS: AttributeProto.INT,
    AttributeProto.STRING: AttributeProto.STRING,
    AttributeProto.STRINGS: AttributeProto.STRING,
}


@dataclass(frozen=True, slots=True)
class Valued:
    """The attributes of a node of the standard, where they are no references to those of a function."""

    where: str
    schema: Schema
    attributes: Sequence[AttributeProto]

    @property
    def operator(self) -> str:
        domain, op_type, _ = self.schema.key
        return f"{domain}.{op_type}" if domain else op_type

    def given(self, kind: int) -> Iterator[tuple[str, Any]]:
        """Name and value of attributes of a kind, or of lists of it, that the schema declares so."""
        for attribute in self.attributes:
            declared = self.schema.attributes.get(attribute.name)
            if declared is None or attribute.ref_attr_name or attribute.type != declared.kind:
                continue
            if _SCALAR_OR_LIST.get(attribute.type) == kind:
                try:
                    yield attribute.name, attribute_value(attribute)
                except ModelError:
                    continue  # it is not UTF-8

    def value(self, name: str, kind: int) -> Any:
        """The value of one attribute of a kind; None where it is not given so."""
        return next((value for given, value in self.given(kind) if given == name), None)

    def at(self, name: str) -> str:
        return f'{self.where} attribute "{name}"'


# Names

_PADS = "NOTSET SAME_UPPER SAME_LOWER VALID"
_COORDINATES = "half_pixel pytorch_half_pixel align_corners asymmetric tf_crop_and_resize"
_TRANSFORMS = "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT"
_ACTIVATIONS = (
    "Relu Tanh Sigmoid Affine LeakyRelu ThresholdedRelu ScaledTanh HardSigmoid Elu Softsign Softplus"  # in any case
)
#: Operators, an attribute of theirs, and the names that its text lists, by the version that first listed them so.
_NAMES: tuple[tuple[str, str, dict[int, str]], ...] = (
    ("AveragePool Conv ConvInteger ConvTranspose LpPool MaxPool QLinearConv", "auto_pad", {1: _PADS}),
    ("BitShift", "direction", {11: "LEFT RIGHT"}),
    ("Cast CastLike", "round_mode", {24: "up down nearest"}),
    ("CausalConvWithState", "activation", {27: "silu swish none"}),
    ("DepthToSpace SpaceToDepth", "mode", {11: "DCR CRD"}),
    ("GRU LSTM RNN", "activations", {1: _ACTIVATIONS}),
    ("GRU LSTM RNN", "direction", {1: "forward reverse bidirectional"}),
    ("Gelu", "approximate", {20: "none tanh"}),
    ("GridSample", "mode", {16: "bilinear nearest bicubic", 20: "linear nearest cubic"}),
    ("GridSample", "padding_mode", {16: "zeros border reflection"}),
    ("ImageDecoder", "pixel_format", {20: "RGB BGR Grayscale"}),
    ("LinearAttention", "update_rule", {27: "linear gated delta gated_delta"}),
    ("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", "reduction", {12: "none sum mean"}),
    ("Pad", "mode", {1: "constant reflect edge", 19: "constant reflect edge wrap"}),
    ("Resize", "mode", {10: "nearest linear", 11: "nearest linear cubic"}),
    ("Resize", "nearest_mode", {11: "round_prefer_floor round_prefer_ceil floor ceil"}),
    ("Resize", "keep_aspect_ratio_policy", {18: "stretch not_larger not_smaller"}),
    (
        "Resize",
        "coordinate_transformation_mode",
        {11: f"{_COORDINATES} tf_half_pixel_for_nn", 13: _COORDINATES, 19: f"{_COORDINATES} half_pixel_symmetric"},
    ),
    ("RoiAlign", "mode", {10: "avg max"}),
    ("RoiAlign", "coordinate_transformation_mode", {16: "half_pixel output_half_pixel"}),
    ("ScatterElements ScatterND", "reduction", {16: "none add mul", 18: "none add mul max min"}),
    ("StringNormalizer", "case_change_action", {10: "LOWER UPPER NONE"}),
    ("TensorScatter", "mode", {24: "linear circular"}),
    ("TfIdfVectorizer", "mode", {9: "TF IDF TFIDF"}),
    ("Upsample", "mode", {1: "nearest bilinear", 7: "nearest linear"}),
    ("CastMap", "cast_to", {1: "TO_FLOAT TO_STRING TO_INT64"}),
    ("CastMap", "map_form", {1: "DENSE SPARSE"}),
    ("LinearClassifier LinearRegressor SVMClassifier SVMRegressor", "post_transform", {1: _TRANSFORMS}),
    ("TreeEnsembleClassifier TreeEnsembleRegressor", "post_transform", {1: _TRANSFORMS}),
    ("Normalizer", "norm", {1: "MAX L1 L2"}),
    ("SVMClassifier SVMRegressor", "kernel_type", {1: "LINEAR POLY RBF SIGMOID"}),
    (
        "TreeEnsembleClassifier TreeEnsembleRegressor",
        "nodes_modes",
        {1: "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ LEAF"},
    ),
    ("TreeEnsembleRegressor", "aggregate_function", {1: "AVERAGE SUM MIN MAX"}),
    ("Momentum", "mode", {1: "nesterov standard"}),
)

#: Names that a later text dropped, and that exporters go on writing and runtimes running. onnx's own cases did.
_TOLERATED = frozenset({("Resize", "tf_half_pixel_for_nn")})


@cache
def _listed(op_type: str, attribute: str) -> Mapping[int, tuple[str, ...]]:
    """The names that an attribute may have, by the version that first listed them so; empty where any will do."""
    for operators, name, versions in _NAMES:
        if name == attribute and op_type in operators.split():
            return {since: tuple(names.split()) for since, names in versions.items()}
    return {}


@rule("value/name", "error", Valued)
def name_not_listed(valued: Valued) -> Faults:
    """An attribute that takes one of several names has none of those that the text lists at this version.

    Why: what the node should do is open; runtimes refuse it, or take a default without a word.

    Mend: write one of the listed names, letter by letter; the hint tells where a later version lists it.

    Example:
        <ir_version: 10, opset_import: ["": 18]>
        g (float[2] x, int64[2] p) => (float[N] y) { y = Pad<mode = "wrap">(x, p) }

    Instead:
        <ir_version: 10, opset_import: ["": 19]>
        g (float[2] x, int64[2] p) => (float[N] y) { y = Pad<mode = "wrap">(x, p) }
    """
    for name, text, listed in _wrong_names(valued):
        version = valued.schema.key.since_version
        later = [since for since, names in listed.items() if since > version and text in names]
        names = _in_force(listed, version)
        near = nearest(text, names)
        hint = f"opset {later[0]} brought it" if later else f'did you mean "{near}"?' if near else ""
        yield Fault(valued.at(name), f'"{text}": {valued.schema.label} takes {_either(names)}', hint)


def _wrong_names(valued: Valued) -> Iterator[tuple[str, str, Mapping[int, tuple[str, ...]]]]:
    """The attributes whose names are not listed: attribute, name, and what is listed by version."""
    _, op_type, version = valued.schema.key
    for attribute, value in valued.given(AttributeProto.STRING):
        listed = _listed(op_type, attribute)
        names = _in_force(listed, version)
        for text in value if isinstance(value, tuple) else (value,):
            in_any_case = text.lower() in map(str.lower, names) if attribute == "activations" else text in names
            is_default = text == valued.schema.attributes[attribute].default  # GRU-1 misspells its own
            if names and not is_default and not in_any_case and (op_type, text) not in _TOLERATED:
                yield attribute, text, listed


def _in_force(listed: Mapping[int, tuple[str, ...]], version: int) -> tuple[str, ...]:
    return next((listed[since] for since in sorted(listed, reverse=True) if since <= version), ())


#: What the output's shape hangs on, so that it is not known where such a name is wrong.
_ABOUT_SHAPE = frozenset({"auto_pad", "direction", "keep_aspect_ratio_policy", "pixel_format", "cast_to", "map_form"})


def shape_is_clear(valued: Valued) -> bool:
    """Whether the shape of what the node makes is known in spite of the names that are not listed."""
    wrong = {attribute for attribute, _, _ in _wrong_names(valued)}
    return wrong.isdisjoint(_ABOUT_SHAPE) and ("reduction" not in wrong or "Scatter" in valued.schema.key.op_type)


def _either(names: Sequence[object]) -> str:
    return " or ".join(filter(None, (", ".join(map(str, names[:-1])), str(names[-1]))))


# Numbers

_WINDOWED = "AveragePool Conv ConvInteger ConvTranspose DeformConv LpPool MaxPool MaxUnpool QLinearConv"
#: The least value of an attribute; operators where it is not so wherever the attribute stands.
_LEAST: dict[str, tuple[int, str]] = {
    "batch_dims": (0, ""),
    "block_size": (0, ""),
    "blocksize": (1, ""),
    "dilations": (1, ""),
    "group": (1, ""),
    "hidden_size": (1, ""),
    "kernel_shape": (1, ""),
    "kv_num_heads": (1, ""),
    "left_window_size": (-1, ""),
    "max_gram_length": (1, ""),
    "max_skip_count": (0, ""),
    "min_gram_length": (1, ""),
    "num_groups": (1, ""),
    "num_outputs": (1, ""),
    "num_scan_inputs": (1, ""),
    "offset_group": (1, ""),
    "output_height": (1, ""),
    "output_padding": (0, ""),
    "output_width": (1, ""),
    "p": (1, ""),
    "pads": (0, _WINDOWED),
    "pooled_shape": (1, ""),
    "q_num_heads": (1, ""),
    "right_window_size": (-1, ""),
    "sample_size": (1, ""),
    "sampling_ratio": (0, ""),
    "size": (1, ""),
    "split": (0, ""),
    "strides": (1, ""),
}
#: The numbers that an attribute may be; operators where it is not so wherever the attribute stands.
_ONE_OF: dict[str, tuple[range, str]] = {
    "aggregate_function": (range(4), ""),
    "batch_axis": (range(2), ""),
    "center_point_box": (range(2), ""),
    "directions": (range(2), ""),
    "fmod": (range(2), ""),
    "layout": (range(2), ""),
    "p": (range(1, 3), "LpNormalization"),
    "post_transform": (range(5), ""),
    "qk_matmul_output_mode": (range(4), ""),
    "scan_input_directions": (range(2), ""),
    "scan_output_directions": (range(2), ""),
    "storage_order": (range(2), ""),
    "time_axis": (range(2), ""),
}


@rule("value/number", "error", Valued)
def number_not_allowed(valued: Valued) -> Faults:
    """A number is none that the text allows: a size below 1, a negative count, a mode that there is not.

    Why: the node cannot work; some tools divide by such a number and end without a word.

    Mend: write a number of the range that the message names.

    Example:
        g (float[1, 4, 2, 2] x) => (float[1, 1, 4, 4] y) { y = DepthToSpace<blocksize = 0>(x) }

    Instead:
        g (float[1, 4, 2, 2] x) => (float[1, 1, 4, 4] y) { y = DepthToSpace<blocksize = 2>(x) }
    """
    op_type, label = valued.schema.key.op_type, valued.schema.label
    for name, value in valued.given(AttributeProto.INT):
        numbers = value if isinstance(value, tuple) else (value,)
        allowed, operators = _ONE_OF.get(name, (range(0), "none"))
        least, windowed = _LEAST.get(name, (0, "none"))
        if not operators or op_type in operators.split():
            if wrong := [number for number in numbers if number not in allowed]:
                yield Fault(valued.at(name), f"{wrong[0]}: {label} takes {_either(allowed)}")
        elif (not windowed or op_type in windowed.split()) and (wrong := [n for n in numbers if n < least]):
            yield Fault(valued.at(name), f"{_shown(value)}: {label} takes numbers from {least} up")


def _shown(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


#: Attributes that name an element type, and what they take, where that is not any type of the standard.
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16})
_ELEMENT_TYPES: Mapping[str, Collection[int]] = {
    **dict.fromkeys(("dtype", "output_datatype", "output_dtype", "to"), BY_ELEMENT_TYPE),
    **dict.fromkeys(("precision", "softmax_precision", "stash_type"), _FLOATS),
}


@rule("value/element-type", "error", Valued)
def no_element_type(valued: Valued) -> Faults:
    """An attribute that names an element type by its number has one that there is not, or that it does not take.

    Why: the numbers are those of ONNX's TensorProto.DataType; frameworks and their exporters number types differently.

    Mend: write the number of the type, 1 for float, 7 for int64, 10 for float16; `onnx.TensorProto` has the names.

    Example:
        g (float[2] x) => (int64[2] y) { y = Cast<to = 99>(x) }

    Instead:
        g (float[2] x) => (int64[2] y) { y = Cast<to = 7>(x) }
    """
    for name, value in valued.given(AttributeProto.INT):
        allowed = _ELEMENT_TYPES.get(name, ())
        if allowed and value not in allowed and value != valued.schema.attributes[name].default:
            names = (
                ", ".join(name_of(BY_ELEMENT_TYPE[number]) for number in sorted(allowed)) if len(allowed) < 5 else ""
            )
            hint = f"it takes: {names}" if names else "the numbers are those of onnx.TensorProto.DataType"
            yield Fault(valued.at(name), f"{value} is no element type that {valued.schema.label} takes here", hint)


@rule("value/permutation", "error", Valued, "Transpose")
def no_permutation(valued: Valued) -> Faults:
    """The `perm` of a Transpose is no permutation.

    Why: each axis of the output is one axis of the input; one that is missing or named twice leaves none.

    Mend: name each axis from 0 to rank - 1 once; negative axes are not allowed here.

    Example:
        g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Transpose<perm = [0, 2, 2]>(x) }

    Instead:
        g (float[2, 3, 4] x) => (float[2, 4, 3] y) { y = Transpose<perm = [0, 2, 1]>(x) }
    """
    perm = valued.value("perm", AttributeProto.INT)
    if perm is not None and sorted(perm) != list(range(len(perm))):
        yield Fault(valued.at("perm"), f"{_shown(perm)} is no permutation of the axes 0 to {len(perm) - 1}")


_TERM = r"[A-Za-z]*(\.\.\.[A-Za-z]*)?"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")


@rule("value/equation", "error", Valued, "Einsum")
def no_equation(valued: Valued) -> Faults:
    """The equation of an Einsum holds something else than letters, commas, ellipses and an arrow.

    Why: it has no meaning, and there are tools that never come back from reading it.

    Mend: write a term of letters for each input, then `->` and the output's; a term has at most one ellipsis.

    Example:
        g (float[2, 3] x) => (float[3, 2] y) { y = Einsum<equation = "a-b">(x) }

    Instead:
        g (float[2, 3] x) => (float[3, 2] y) { y = Einsum<equation = "ab -> ba">(x) }
    """
    text = valued.value("equation", AttributeProto.STRING)
    if text is not None and not _EQUATION.fullmatch(text.replace(" ", "")):
        message = f"{text!r} is not made of terms of letters, each with at most one ellipsis"
        yield Fault(valued.at("equation"), message)


@rule("value/padding", "error", Valued, *_NAMES[0][0].split())
def padded_twice(valued: Valued) -> Faults:
    """`pads` are given together with an `auto_pad` that says how to pad.

    Why: the text allows one of the two; runtimes differ in which they follow. Pads that are all zero pass.

    Mend: leave `auto_pad` out, or NOTSET, and keep the pads; or the other way round.

    Example:
        g (float[1, 1, 5, 5] x) => (float[1, 1, 5, 5] y) {
            y = MaxPool<kernel_shape = [3, 3], auto_pad = "SAME_UPPER", pads = [1, 1, 1, 1]>(x)
        }

    Instead:
        g (float[1, 1, 5, 5] x) => (float[1, 1, 5, 5] y) {
            y = MaxPool<kernel_shape = [3, 3], auto_pad = "SAME_UPPER">(x)
        }
    """
    auto_pad = valued.value("auto_pad", AttributeProto.STRING)
    pads = valued.value("pads", AttributeProto.INT)
    if pads is not None and any(pads) and auto_pad in _PADS.split()[1:]:
        yield Fault(
            valued.where, f"auto_pad is {auto_pad}, and pads are {_shown(pads)}", "one of the two says how to pad"
        )
