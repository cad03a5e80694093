"""What inference knows of every node, those inside sub-graphs and functions included."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import NodeProto

from onnxeval.attributes import attribute_value
from onnxeval.checks.checker import Check
from onnxeval.checks.constants import evaluated
from onnxeval.checks.inference import Inference, Types, call_key
from onnxeval.checks.known import UNKNOWN, Known, contradict
from onnxeval.checks.nested import Bindings, bound, refers
from onnxeval.checks.rules import Finding
from onnxeval.checks.views import Holder, Node, Scope
from onnxeval.checks.whole import Function, Model
from onnxeval.errors import ModelError
from onnxeval.loader import Loaded
from onnxeval.memory import uncollected
from onnxeval.schema import Schema
from onnxeval.values import TensorType

_MOST_ELEMENTS = 1024
#: Operators whose schemas infer no shape, though each element of the result is made of one of the first input.
_LIKE_THEIR_INPUT = frozenset(
    ("ai.onnx.ml", name) for name in ("Binarizer", "CategoryMapper", "Imputer", "LabelEncoder", "Normalizer", "Scaler")
)


@dataclass(frozen=True, eq=False)
class Record:
    """A node as it is walked once: what is known of its inputs and outputs.

    ``proto`` has the attributes of the call in the place of references to them. ``inner`` are the nodes of its
    sub-graphs, or of the function that it calls.
    """

    node: Node
    proto: NodeProto
    inputs: tuple[Known, ...]
    outputs: tuple[Known, ...]
    inner: Sequence[Record]

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes that are no graphs, defaults filled in as the schema has them."""
        schema = self.node.schema
        given = {} if schema is None else {a.name: a.default for a in schema.attributes.values()}
        for attribute in self.proto.attribute:
            if not attribute.HasField("g") and not attribute.graphs and not attribute.ref_attr_name:
                with suppress(ModelError):  # one that cannot be read tells nothing
                    given[attribute.name] = attribute_value(attribute)
        return given

    def within(self, scope: Scope) -> list[Record]:
        """Those of ``inner`` that stand in this scope itself."""
        return [record for record in self.inner if record.node.scope is scope]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A model, the nodes of its main graph in the order walked, what is known of its values, and what is wrong."""

    model: Model
    records: Sequence[Record]
    values: Types
    findings: Sequence[Finding]


def record(loaded: Loaded) -> Recorded:
    """Walk a model. What is wrong with it leaves what depends on that unknown."""
    with uncollected():
        check = Check(loaded, _Recorder)
        findings = check.run()
    assert isinstance(check.walk, _Recorder)
    return Recorded(check.model, check.walk.records, check.values, findings)


def branch_taken(node: Node, inputs: Sequence[Known]) -> Scope | None:
    """The branch that an If takes; None where its condition is not known, and for all other nodes."""
    if node.op_type != "If" or node.domain or not inputs or (condition := inputs[0].array) is None:
        return None
    if condition.size != 1:
        return None
    name = "then_branch" if condition.reshape(-1)[0] else "else_branch"
    return next((sub for sub in node.subs if sub.where == f"{node.where} {name}"), None)


def _is_small(known: Known) -> bool:
    """Whether a value is known to be small enough to be computed in passing."""
    shape = known.shape
    sizes = [size for size in shape or () if isinstance(size, int)]
    return shape is not None and len(sizes) == len(shape) and math.prod(sizes) <= _MOST_ELEMENTS


class _Recorder(Inference):
    def __init__(self, model: Model, faulty: Collection[Holder], doubtful: Collection[Node] = ()) -> None:
        super().__init__(model, faulty, doubtful)
        self.records: list[Record] = []
        self._levels = [self.records]
        self._inner: list[Record] = []
        self._inside: dict[Any, list[Record]] = {}

    def _outputs(
        self, node: Node, inputs: tuple[Known, ...], types: Types, bindings: Bindings | None
    ) -> Sequence[Known]:
        self._levels.append([])
        outputs = super()._outputs(node, inputs, types, bindings)
        self._inner = self._levels.pop()
        if (branch := branch_taken(node, inputs)) is not None:
            return self._of_branch(branch, types, outputs)
        return outputs

    def _standard_outputs(
        self,
        node: Node,
        proto: NodeProto,
        schema: Schema,
        inputs: tuple[Known, ...],
        results: Sequence[Sequence[Known]],
    ) -> Sequence[Known]:
        """With the elements of what is small, whether or not the standard's inference carries them."""
        outputs = super()._standard_outputs(node, proto, schema, inputs, results)
        if outputs and outputs[0].shape is None and schema.key[:2] in _LIKE_THEIR_INPUT and inputs[0].shape is not None:
            dtype = outputs[0].type.dtype if isinstance(outputs[0].type, TensorType) else np.dtype(np.float32)
            return [self._table.of_type(TensorType(dtype, inputs[0].shape)), *outputs[1:]]
        if len(outputs) == 1 and outputs[0].data is None and inputs and not node.subs and _is_small(outputs[0]):
            array = evaluated(schema, inputs, proto.attribute)
            if array is not None and not contradict(TensorType(array.dtype, array.shape), outputs[0].type):
                return [self._table.of_array(array)]
        return outputs

    def _of_branch(self, branch: Scope, types: Types, outputs: Sequence[Known]) -> list[Known]:
        """What an If gives whose condition is known: what the branch gives, as far as that is known."""
        made = {
            name: known
            for record in self._inner
            if record.node.scope is branch
            for name, known in zip(record.node.outputs, record.outputs, strict=True)
        }
        results = [made.get(name, UNKNOWN if name in branch.makers else types[name]) for name in branch.outputs]
        taken = [
            known if of_branch is UNKNOWN else of_branch for of_branch, known in zip(results, outputs, strict=False)
        ]
        return [*taken, *outputs[len(taken) :]]

    def _walked(self, node: Node, inputs: tuple[Known, ...], types: Types, bindings: Bindings | None) -> None:
        proto = bound(node.proto, bindings) if bindings is not None and refers(node.proto) else node.proto
        outputs = tuple([types[name] for name in node.outputs])
        self._levels[-1].append(Record(node, proto, inputs, outputs, self._inner))
        self._inner = []

    def _call(self, function: Function, node: Node, proto: NodeProto, inputs: Sequence[Known]) -> list[Known]:
        outputs = super()._call(function, node, proto, inputs)
        level = self._levels[-1]
        if self._muted:  # the standard's own body of an operator: its nodes are none of the model's
            level.clear()
        elif level:
            self._inside[call_key(function, proto, inputs)] = list(level)
        else:
            level.extend(self._inside.get(call_key(function, proto, inputs), ()))
        return outputs
