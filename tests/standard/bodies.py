"""Random nodes for operators with a function body, and where kernel and body may part, each with its reason.

Nodes are drawn as those for the comparison with other engines are (`differential.drawing`), with what only function
bodies know added: attributes, FlexAttention, sub-graphs over several inputs.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from differential.cases import OLDEST_OPSET, Node
from differential.drawing import STRATEGIES, Drawing, Strategy, element_of, type_bindings
from ml_dtypes import finfo
from onnx import GraphProto, TensorProto, helper

from onnxeval.dtypes import BY_NAME, ELEMENT_TYPES, is_integer
from onnxeval.functions import has_typed_function_body
from onnxeval.registry import OpKey
from onnxeval.schema import Schema, all_schemas, known_versions
from onnxeval.values import Sequence, TensorType

for _path in sorted((Path(__file__).parents[1] / "differential").glob("of_*.py")):
    importlib.import_module(f"differential.{_path.stem}")

SCHEMAS = {str(s.key): s for s in all_schemas() if s.definition.has_function or has_typed_function_body(s)}

FLOAT, FLOAT16, DOUBLE, BFLOAT16 = (
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.DOUBLE,
    TensorProto.BFLOAT16,
)

#: Attributes that other engines do not know, or not with these values.
FURTHER: dict[str, dict[str, tuple[Any, ...]]] = {
    "Attention": {
        "softmax_precision": (FLOAT, FLOAT16, DOUBLE, BFLOAT16),
        "left_window_size": (0, 1),
        "right_window_size": (0, 1),
    },
    "GroupNormalization": {"stash_type": (FLOAT, DOUBLE)},
    "LayerNormalization": {"stash_type": (FLOAT, DOUBLE)},
    "LinearAttention": {"chunk_size": (1, 64), "scale": (0.5,)},
    "RMSNormalization": {"stash_type": (FLOAT, DOUBLE)},
    "Range": {"stash_type": (FLOAT, DOUBLE)},
}


def opsets(schema: Schema) -> list[int]:
    """A version's own opset, and those at which another body comes into force for it."""
    domain, op_type, version = schema.key
    end = min((later for later in known_versions(domain, op_type) if later > version), default=10**6)
    definition = schema.definition
    bodies = {*definition.function_opset_versions, *definition.context_dependent_function_opset_versions}
    own = max(version, OLDEST_OPSET) if not domain else version
    return [own, *sorted(body for body in bodies if own < body < end)]


def strategy_of(schema: Schema) -> Strategy:
    return OWN.get(schema.key.op_type) or STRATEGIES[schema.key[:2]]


def nodes(schema: Schema, per_binding: int, total: int) -> Iterator[Node]:
    """About ``total`` nodes of a version, at least ``per_binding`` for each binding of its type variables."""
    strategy = strategy_of(schema)
    bindings = list(type_bindings(schema, strategy.tied, strategy.bindings))
    for place, types in enumerate(bindings):
        for seed in range(max(per_binding, -(-total // len(bindings)))):
            rng = random.Random(1000 * place + seed)
            node = strategy.draw(Drawing(rng.randint, schema, types, strategy.palettes))
            further = {
                name: rng.choice(values)
                for name, values in FURTHER.get(schema.key.op_type, {}).items()
                if name in schema.attributes and rng.random() < 0.4
            }
            yield replace(node, attributes={**node.attributes, **further})


# Strategies of their own


def graph(name: str, inputs: list[tuple[str, Any]], outputs: list[str], text: list[tuple[str, ...]]) -> GraphProto:
    """A graph of nodes written as (operator, output, input, ...); inputs come with their dtypes."""
    return helper.make_graph(
        [helper.make_node(op_type, list(given), [output]) for op_type, output, *given in text],
        name,
        [helper.make_tensor_value_info(x, ELEMENT_TYPES[np.dtype(dtype)], None) for x, dtype in inputs],
        [helper.make_tensor_value_info(x, ELEMENT_TYPES[np.dtype(inputs[0][1])], None) for x in outputs],
    )


def flex_attention(d: Drawing) -> Node:
    batch, heads, size = d.integer(1, 2), d.integer(1, 2), d.integer(1, 3)
    q = d.tensor(0, (batch, heads * d.integer(1, 2), d.integer(1, 3), size))
    length = d.integer(1, 4)
    k, v = d.tensor(1, (batch, heads, length, size)), d.tensor(2, (batch, heads, length, d.integer(1, 3)))
    precision = d.one_of(None, FLOAT, DOUBLE, FLOAT16, BFLOAT16)
    wide = np.float64 if q.dtype == np.float64 else np.float32
    inner = {None: wide, FLOAT: np.float32, DOUBLE: np.float64, FLOAT16: np.float16, BFLOAT16: BY_NAME["bfloat16"]}
    changed = graph(
        "change", [("x", inner[precision])], ["y"], [("Mul", "squared", "x", "x"), ("Add", "y", "squared", "x")]
    )
    attributes = d.some(scale=0.25, score_mod=changed, prob_mod=changed)
    return d.node(q, k, v, softmax_precision=precision, **attributes)


def sequence_map(d: Drawing) -> Node:
    """A body over the elements of one or two sequences, and a tensor that each run gets whole."""
    dtype = element_of(d.type_of(0))
    length, shape = d.size(0, 3), d.shape(0, 2)
    first, second = (Sequence([d.array(dtype, shape) for _ in range(length)], TensorType(dtype)) for _ in range(2))
    whole, two = d.array(dtype, d.shape(1, 2)), d.flag()
    names = ["x", "whole", *["other"] * two]
    text = [("Identity", "y", names[-1] if two else "x"), ("Shape", "n", "x"), ("Expand", "z", "x", "n")]
    text.append(("Identity", "w", "whole"))
    body = graph("body", [(name, dtype) for name in names], ["y", "z", "w"], text)
    return d.node(first, whole, *[second] * two, wanted=(True, True, True), body=body)


#: What stands in for the shared strategies, or is missing there.
OWN = {
    "FlexAttention": Strategy(flex_attention, ulps=64, scaled=True, single=True, palettes=("plain",)),
    "SequenceMap": Strategy(sequence_map),
}


# Where kernel and body part


@dataclass(frozen=True)
class Parting:
    """Nodes of these operators where the body refuses, the kernel refuses, or their results differ, and why."""

    what: Literal["body refuses", "kernel refuses", "values"]
    op_types: tuple[str, ...]
    when: Callable[[Node], bool]
    reason: str
    versions: tuple[int, ...] = ()

    def concerns(self, key: OpKey) -> bool:
        return key.op_type in self.op_types and (not self.versions or key.since_version in self.versions)

    def covers(self, what: str, node: Node) -> bool:
        return what == self.what and self.concerns(node.schema.key) and self.when(node)


def always(_: Node) -> bool:
    return True


def first_is(*names: str) -> Callable[[Node], bool]:
    return lambda node: dtype_of(node) in {BY_NAME[name] for name in names}


def dtype_of(node: Node, place: int = 0) -> Any:
    return getattr(node.input(place), "dtype", None)


def is_whole(node: Node) -> bool:
    return is_integer(dtype_of(node))


def hides(node: Node) -> bool:
    """Whether an Attention hides keys beside those that its mask hides."""
    windows = (node.attribute(name) for name in ("left_window_size", "right_window_size"))
    return node.attribute("is_causal") == 1 or node.input(6) is not None or any(w not in (None, -1) for w in windows)


PARTINGS = (
    Parting(
        "body refuses",
        ("CenterCropPad",),
        lambda n: dtype_of(n, 1) == np.int32,
        "Max is given int32 and int64",
    ),
    Parting(
        "body refuses", ("Clip",), lambda n: len(n.inputs) > 1 and first_is("bfloat16")(n), "Where-9 takes no bfloat16"
    ),
    Parting(
        "body refuses",
        ("MeanVarianceNormalization",),
        lambda n: dtype_of(n) != np.float32,
        "its constants are float32, whatever the input is",
    ),
    Parting(
        "body refuses",
        ("RMSNormalization",),
        lambda n: dtype_of(n) != dtype_of(n, 1),
        "Mul is given the types of input and scale",
    ),
    Parting("body refuses", ("Range",), first_is("int16"), "Sub-7 takes no int16", (11,)),
    Parting("body refuses", ("ReduceLogSum",), is_whole, "Log takes no integers", (18,)),
    Parting("body refuses", ("Shrink",), first_is("uint8", "uint16", "uint32", "uint64"), "Neg takes no unsigned ones"),
    Parting(
        "body refuses",
        ("SoftmaxCrossEntropyLoss",),
        first_is("bfloat16"),
        "NegativeLogLikelihoodLoss-13 takes no bfloat16",
        (13,),
    ),
    Parting(
        "body refuses",
        ("AffineGrid",),
        lambda n: n.input(0).shape[:2] == (1, 2),
        "Squeeze takes the batch away too where it is 1",
    ),
    Parting(
        "values",
        ("AffineGrid",),
        lambda n: n.attribute("align_corners") == 1 and 1 in n.input(1)[2:],
        "an axis of one element has no corners: the body divides by 0, or begins at -1",
    ),
    Parting(
        "values",
        ("BlackmanWindow",),
        lambda n: n.attribute("output_datatype") not in (FLOAT, FLOAT16, DOUBLE, BFLOAT16),
        "a number just below 1, for rounding in float32, becomes 0",
    ),
    Parting(
        "values",
        ("CastLike",),
        lambda n: n.attribute("round_mode") != "up" and dtype_of(n, 1) == BY_NAME["float8e8m0"],
        "the body does not hand round_mode on",
        (24, 25),
    ),
    Parting("values", ("Celu",), lambda n: n.input(0).ndim == 0, "alpha, of shape [1], gives scalars an axis", (12,)),
    Parting(
        "values",
        ("Celu",),
        lambda n: n.attribute("alpha") < 0,
        "the text's formula and the body's, alpha Elu(x / alpha), are the same for positive alpha alone",
    ),
    Parting(
        "values",
        ("Attention",),
        lambda n: is_integer(dtype_of(n, 3) or np.dtype(bool)) and hides(n),
        "the body makes the minus infinity of hidden keys a number of the type of the mask",
    ),
    Parting("values", ("ReduceL2",), first_is("double"), "the body takes doubles through float32"),
    Parting("values", ("ReduceL2", "ReduceLogSumExp"), is_whole, "the body rounds, or wraps, on the way", (18,)),
    Parting(
        "kernel refuses",
        ("ReduceL2", "ReduceLogSumExp"),
        is_whole,
        "the result, or the logarithm of 0, is no number of the type",
        (18,),
    ),
    Parting(
        "values",
        ("SwiGLU",),
        lambda n: dtype_of(n).itemsize == 2 and bool(np.any(np.abs(n.input(0)) < 4 * finfo(dtype_of(n)).tiny)),
        "the body rounds subnormal numbers before it makes them great",
    ),
)
