"""Types and shapes, node by node: a fault in one node leaves the rest to be judged with what is known.

The walk brings the parts that the rules of `types` and `shapes` look at; what those find nothing in goes to
the standard's own inference, one node at a time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import onnx.shape_inference
from onnx import NodeProto

from onnxeval.checks.constants import carried, constant, constant_tensor
from onnxeval.checks.known import ABSENT, UNKNOWN, Known, KnownTable, guessed_outputs
from onnxeval.checks.nested import Bindings, bound, formal_types, refers, summarised
from onnxeval.checks.rules import Finding, judge
from onnxeval.checks.shapes import equal_sizes
from onnxeval.checks.symbols import Naming, Requirement, Symbols
from onnxeval.checks.types import Declaration, Outcome, Refusal, Taken, Typed, negative_shape, slots_of
from onnxeval.checks.values import Valued
from onnxeval.checks.views import Holder, Node, Scope
from onnxeval.checks.whole import Function, Model
from onnxeval.dtypes import BY_ELEMENT_TYPE
from onnxeval.errors import ModelError
from onnxeval.functions import function_body
from onnxeval.graph import order_graph
from onnxeval.schema import Schema
from onnxeval.values import TensorType

#: Functions that call functions are followed this deep, and as often as this in one model.
_MOST_DEPTH = 60
_MOST_CALLS = 5000
#: Operators whose last input is a list of sizes: its length is the rank of what they make.
_OF_SIZES = frozenset({"ConstantOfShape", "Expand", "Reshape"})


class Types(dict[str, Known]):
    """What is known of the values of a scope; of others the scope around it knows."""

    def __init__(self, outer: Types | None = None) -> None:
        super().__init__({"": ABSENT})
        self.outer = outer

    def __missing__(self, name: str) -> Known:
        return UNKNOWN if self.outer is None else self.outer[name]


class Inference:
    """One walk over a model. ``faulty`` holds the nodes and initializers in which other rules found errors.

    Of those in ``doubtful`` inference is asked all the same, but what it refuses has been told already.
    """

    def __init__(self, model: Model, faulty: Collection[Holder], doubtful: Collection[Node] = ()) -> None:
        self.findings: list[Finding] = []
        #: What is known of the main graph's values.
        self.values = Types()
        self._model = model
        self._faulty = faulty
        self._doubtful = doubtful
        self._table = KnownTable()
        self._calls: dict[Any, list[Known]] = {}
        self._bodies: dict[Schema, Function | None] = {}
        #: The calls around the scope that is walked, outermost first, and how many are within a schema's own body.
        self._callers: list[Node] = []
        self._muted = 0
        self._told: set[tuple[str, str]] = set()
        #: What was known and declared of values of the main graph, where both agree and the former says all.
        self._agreeing: set[tuple[Known, Known]] = set()
        #: The named dimensions of the main graph: as its nodes need them, and as declarations name them.
        self._required, self._named = Symbols(), Symbols()
        self._open = _open_symbols(model)

    def run(self) -> list[Finding]:
        """Walk the main graph and the functions it calls."""
        self._walk_graph(self._model.graph, self.values)
        return self.findings

    def _tell(self, findings: Iterable[Finding]) -> bool:
        """Keep findings; those inside a function are told for its first call. Returns whether there were any."""
        found = False
        for finding in findings:
            found = True
            if self._muted or (self._callers and (finding.rule, finding.where) in self._told):
                continue
            if self._callers:
                self._told.add((finding.rule, finding.where))
                message = f"{finding.message} (called from {self._callers[0].where})"
                finding = Finding(finding.rule, finding.severity, finding.where, message, finding.hint)
            self.findings.append(finding)
        return found

    # Scopes

    def _walk_graph(self, scope: Scope, types: Types, bindings: Bindings | None = None) -> None:
        """Walk a graph whose inputs' types, as far as the node around it tells them, stand in ``types``."""
        graph = scope.graph
        assert graph is not None
        of_proto = self._table.of_proto
        for value in graph.input:
            types[value.name] = self._table.merged(of_proto(value.type), types.get(value.name, UNKNOWN))
        self._read_initializers(scope, types)
        declared = {
            value.name: (role, place, known)
            for role in ("value_info", "output")
            for (given, data), values in scope.declarations.items()
            if given == role and (known := self._table.of_bytes(data)) is not None
            for place, value in values
        }
        self._walk_nodes(scope, types, bindings, declared)
        for place, value in enumerate(graph.output):
            if scope.makers.get(value.name) == -1:
                where = f'{scope.where}/output[{place}] "{value.name}"'
                declared_type, known = of_proto(value.type), types[value.name]
                if not self._tell(judge(Declaration(where, "output", declared_type, known, "the value"))):
                    self._note_names(scope, where, declared_type, known)

    def _read_initializers(self, scope: Scope, types: Types) -> None:
        graph = scope.graph
        assert graph is not None
        for tensor in graph.initializer:
            dtype = BY_ELEMENT_TYPE.get(tensor.data_type)
            if dtype is not None:
                is_sound = (scope, tensor.name) not in self._faulty
                known = self._table.of_tensor(tensor, dtype) if is_sound else self._table.of_type(TensorType(dtype))
                self._read_initializer(scope, types, tensor.name, known)
        for sparse in graph.sparse_initializer:
            dtype = BY_ELEMENT_TYPE.get(sparse.values.data_type)
            if dtype is not None and (scope, sparse.values.name) not in self._faulty:
                known = self._table.of_type(TensorType(dtype, tuple(sparse.dims)))
                self._read_initializer(scope, types, sparse.values.name, known)

    def _read_initializer(self, scope: Scope, types: Types, name: str, known: Known) -> None:
        if (declared := types.get(name)) is None:
            types[name] = known
        else:  # the input's declaration counts: another value may be fed
            where = f'{scope.where}/input[{scope.inputs.index(name)}] "{name}"' if name in scope.inputs else scope.where
            contradicts = self._tell(judge(Declaration(where, "input", declared, known, "its initializer")))
            data = None if contradicts else known.data
            types[name] = known if declared is UNKNOWN else self._table.of_type(declared.type, data)

    def _walk_nodes(
        self,
        scope: Scope,
        types: Types,
        bindings: Bindings | None,
        declared: Mapping[str, tuple[str, int, Known]],
    ) -> None:
        inferred = scope.imports.inferred
        for node in self._in_order(scope):
            inputs = tuple([types[name] for name in node.inputs])
            outputs = inferred.get((node.signature, inputs))
            if outputs is None:
                outputs = self._outputs(node, inputs, types, bindings)
            for name, known in zip(node.outputs, outputs, strict=True):
                if name in declared:
                    known = self._settled(scope, node, name, known, *declared[name])
                types[name] = known
            types[""] = ABSENT
            self._walked(node, inputs, types, bindings)

    def _walked(self, node: Node, inputs: tuple[Known, ...], types: Types, bindings: Bindings | None) -> None:
        """What a walk does besides with each node, when its outputs are in ``types``: nothing."""

    def _in_order(self, scope: Scope) -> Iterable[Node]:
        """The nodes in the file's order, or in one that can run where the file's cannot."""
        if scope in self._model.late_reads and scope.graph is not None:
            try:
                return [scope.nodes[place] for place in order_graph(scope.graph).nodes]
            except ModelError:
                pass  # there is a cycle, or a name is made twice: other rules tell
        return scope.nodes

    def _settled(
        self, scope: Scope, node: Node, name: str, known: Known, role: str, place: int, declared: Known
    ) -> Known:
        """What is known of a value that is also declared."""
        if known is declared or (known, declared) in self._agreeing:
            return known
        if known is UNKNOWN or declared is UNKNOWN:
            return declared if known is UNKNOWN else known
        where = f'{scope.where}/{role}[{place}] "{name}"'
        if self._tell(judge(Declaration(where, role, declared, known, f"what {node.where} makes"))):
            return known
        self._note_names(scope, where, declared, known)
        merged = self._table.merged(known, declared)
        if merged is known and scope is self._model.graph:
            self._agreeing.add((known, declared))
        return merged

    def _note_names(self, scope: Scope, where: str, declared: Known, known: Known) -> None:
        """Note what a declaration, which fits otherwise, says of named dimensions of the main graph."""
        if scope is self._model.graph and declared.shape is not None and known.shape is not None:
            for name, size, earlier in self._named.equal(zip(declared.shape, known.shape, strict=True), where):
                self._tell(judge(Naming(where, name, size, earlier)))

    def _note_requirements(self, typed: Typed) -> None:
        """Note which dimensions of the main graph's inputs a node needs to be equal, or of one size."""
        if typed.node.scope is self._model.graph and not self._callers:
            pairs = (p for p in equal_sizes(typed) if all(not isinstance(d, str) or d in self._open for d in p))
            for name, size, earlier in self._required.equal(pairs, typed.node.where):
                self._tell(judge(Requirement(typed.node.where, name, size, earlier)))

    # Nodes

    def _outputs(
        self, node: Node, inputs: tuple[Known, ...], types: Types, bindings: Bindings | None
    ) -> Sequence[Known]:
        """What a node makes; remembered for nodes like it where nothing was found."""
        has_references = bindings is not None and refers(node.proto)
        proto = bound(node.proto, bindings) if has_references and bindings is not None else node.proto
        results = [self._results(sub, node, inputs, types, bindings) for sub in node.subs]
        schema = node.schema
        if schema is None:
            if (kernel := node.kernel) is not None and node not in self._faulty:
                self._tell(judge(Taken(node, node.operator, slots_of(kernel), inputs)))
            function = node.called
            return self._call(function, node, proto, inputs) if function else [UNKNOWN] * len(node.outputs)
        told = len(self.findings)
        if has_references and self._tell(judge(Valued(node.where, schema, proto.attribute))):
            return guessed_outputs(schema, inputs, len(node.outputs), self._table)
        outputs = self._standard_outputs(node, proto, schema, inputs, results)
        if node.signature is not None and not has_references and len(self.findings) == told and not self._muted:
            node.scope.imports.inferred[node.signature, inputs] = outputs
        return outputs

    def _results(
        self, sub: Scope, node: Node, inputs: Sequence[Known], types: Types, bindings: Bindings | None
    ) -> list[Known]:
        """Walk a sub-graph; what it gives."""
        inner = Types(types)
        for name, known in zip(sub.inputs, formal_types(node, inputs, self._table), strict=False):
            inner[name] = UNKNOWN if known is ABSENT else known
        self._walk_graph(sub, inner, bindings)
        return [inner[name] for name in sub.outputs]

    def _standard_outputs(
        self,
        node: Node,
        proto: NodeProto,
        schema: Schema,
        inputs: tuple[Known, ...],
        results: Sequence[Sequence[Known]],
    ) -> Sequence[Known]:
        count = len(node.outputs)
        names_are_text = all(isinstance(name, str) for name in (*node.inputs, *node.outputs))
        typed = Typed(node, proto, schema, inputs)
        taken = Taken(node, schema.label, schema.inputs, inputs)
        if node in self._faulty or not names_are_text or self._tell((*judge(taken), *judge(typed))):
            return guessed_outputs(schema, inputs, count, self._table)
        self._note_requirements(typed)
        if schema.deprecated:
            return guessed_outputs(schema, inputs, count, self._table)
        try:
            outputs = self._inferred(node, summarised(proto, results) if results else proto, schema, inputs)
        except Exception as error:  # whatever onnx's C++ raises is its verdict on this node
            is_told = node in self._doubtful
            if not is_told and UNKNOWN not in inputs and not any(UNKNOWN in result for result in results):
                self._tell(judge(_refusal(node, schema, inputs, error)))
            return guessed_outputs(schema, inputs, count, self._table)
        if not schema.definition.has_type_and_shape_inference_function and any(o.shape is None for o in outputs):
            outputs = self._outputs_of_body(node, proto, schema, inputs, outputs)
        if count == 1 and (elements := self._elements(proto, schema, inputs)) is not None:
            outputs = [elements]
        return outputs

    def _inferred(self, node: Node, proto: NodeProto, schema: Schema, inputs: tuple[Known, ...]) -> list[Known]:
        by_name = {name: known for name, known in zip(node.inputs, inputs, strict=True) if known is not ABSENT}
        if len(by_name) < len(set(filter(None, node.inputs))):  # a function's input that its call leaves out
            proto = NodeProto.FromString(proto.SerializeToString())
            proto.input[:] = [name if name in by_name else "" for name in node.inputs]
        types = {name: known.proto for name, known in by_name.items()}
        if schema.key.op_type in _OF_SIZES and node.inputs[-1] in by_name:
            types[node.inputs[-1]] = by_name[node.inputs[-1]].as_sizes
        outputs = onnx.shape_inference.infer_node_outputs(
            schema.definition,
            proto,
            types,
            {name: known.data for name, known in by_name.items() if known.data is not None},
            ir_version=max(self._model.proto.ir_version, 0),
        )
        for place, name in enumerate(node.outputs):
            if name in outputs and (sizes := negative_shape(outputs[name])) and not node.scope.is_branch:
                self._tell(judge(Outcome(node, place, sizes, schema, inputs)))
        return [self._table.of_proto(outputs[name]) if name in outputs else UNKNOWN for name in node.outputs]

    def _elements(self, proto: NodeProto, schema: Schema, inputs: tuple[Known, ...]) -> Known | None:
        """The one output with its elements; None where they are not known."""
        if (tensor := constant_tensor(schema, proto.attribute)) is not None:
            dtype = BY_ELEMENT_TYPE.get(tensor.data_type)
            return None if dtype is None else self._table.of_tensor(tensor, dtype)
        array = carried(schema, inputs, proto.attribute) if inputs else constant(schema, proto.attribute)
        return None if array is None else self._table.of_array(array)

    # Calls

    def _call(self, function: Function, node: Node, proto: NodeProto, inputs: Sequence[Known]) -> list[Known]:
        """What a function makes of these inputs; its body is judged with their types."""
        key = call_key(function, proto, inputs)
        if key in self._calls:
            return self._calls[key]
        self._calls[key] = outputs = [UNKNOWN] * len(node.outputs)
        if len(self._callers) < _MOST_DEPTH and len(self._calls) < _MOST_CALLS:
            given = {a.name: a for a in proto.attribute}
            defaults = {a.name: a for a in function.proto.attribute_proto}
            types = Types()
            for place, name in enumerate(function.scope.inputs):
                types[name] = inputs[place] if place < len(inputs) else ABSENT
            self._callers.append(node)
            self._walk_nodes(function.scope, types, {**defaults, **given}, {})
            self._callers.pop()
            for place, name in enumerate(function.scope.outputs[: len(outputs)]):
                outputs[place] = types[name]
        return outputs

    def _outputs_of_body(
        self, node: Node, proto: NodeProto, schema: Schema, inputs: Sequence[Known], inferred: Sequence[Known]
    ) -> list[Known]:
        """What the schema's own function body tells of an operator that the standard has no inference for."""
        if schema not in self._bodies:
            body = function_body(schema, node.version or schema.key.since_version)
            self._bodies[schema] = None if body is None else Function(body, self._model, -1)
        function = self._bodies[schema]
        if function is None:
            return list(inferred)
        self._muted += 1
        outputs = self._call(function, node, proto, inputs)
        self._muted -= 1
        return [self._table.merged(one, other) for one, other in zip(outputs, inferred, strict=True)]


def call_key(function: Function, proto: NodeProto, inputs: Sequence[Known]) -> Any:
    """What calls have in common of which a function makes the same."""
    attributes = tuple(sorted(attribute.SerializeToString() for attribute in proto.attribute))
    return function, tuple(inputs), attributes, len(proto.output)


def _refusal(node: Node, schema: Schema, inputs: Sequence[Known], error: Exception) -> Refusal:
    text = " ".join(str(error).split())
    reason = re.sub(r"^\[\w+\] ?|\(op_type:[^)]*\): ?", "", text) or type(error).__name__
    return Refusal(node, schema, inputs, reason, about_shape=text.startswith("[ShapeInferenceError]"))


def _open_symbols(model: Model) -> frozenset[str]:
    """The names of dimensions that inputs of the main graph declare, and no value that is made inside it."""
    of_inputs: set[str] = set()
    of_values: set[str] = set()
    for (role, _), values in model.graph.declarations.items():
        names = {dim.dim_param for dim in values[0][1].type.tensor_type.shape.dim if dim.dim_param}
        if role == "input":
            of_inputs |= names
        elif role == "value_info" and any(model.graph.makers.get(value.name) != -1 for _, value in values):
            of_values |= names
    return frozenset(of_inputs - of_values)
