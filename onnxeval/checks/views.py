"""Graphs and functions as the rules look at them: scopes of nodes, with what they read and make.

Nothing here judges or refuses: a view exists of every model that can be parsed, however wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, ValueInfoProto

from onnxeval.checks.imports import Imports
from onnxeval.graph import constants_of
from onnxeval.registry import Kernel
from onnxeval.schema import Schema, canonical_domain

if TYPE_CHECKING:
    from onnxeval.checks.whole import Function, Model

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
#: The Gradient of this domain names values in these attributes.
_TRAINING = "ai.onnx.preview.training"
_NAMING = ("xs", "zs", "y")
#: Constants of no more elements than this are recognised by them.
_SMALL = 64
#: Attributes that may be large, or that hold nodes of their own: no node is recognised by them.
_BULKY = frozenset(
    {
        *_GRAPHS,
        AttributeProto.TENSOR,
        AttributeProto.TENSORS,
        AttributeProto.SPARSE_TENSOR,
        AttributeProto.SPARSE_TENSORS,
    }
)


class Node:
    """One node. ``signature`` is equal for nodes that differ in names alone, None where that is not told."""

    __slots__ = ("attributes", "domain", "inputs", "op_type", "outputs", "place", "proto", "scope", "signature", "subs")

    def __init__(self, proto: NodeProto, scope: Scope, place: int) -> None:
        self.proto = proto
        self.scope = scope
        self.place = place
        self.op_type = op_type = proto.op_type
        domain = proto.domain
        if domain and (canonical := canonical_domain(domain)) != domain:
            scope.spelled_long.append(self)
            domain = canonical
        self.domain = domain
        self.inputs: list[str] = proto.input[:]
        self.outputs: list[str] = proto.output[:]
        self.attributes: Sequence[AttributeProto] = ()
        self.subs: Sequence[Scope] = ()
        self.signature: Any = (domain, op_type, len(self.inputs), len(self.outputs))
        if domain or scope.model.has_functions:
            self.signature += (proto.overload,)
        if "" in self.inputs or "" in self.outputs:
            self.signature += (tuple(map(bool, self.inputs)), tuple(map(bool, self.outputs)))
        if proto.attribute:
            self._read_attributes()

    def _read_attributes(self) -> None:
        self.attributes = self.proto.attribute[:]
        for attribute in self.attributes:
            if attribute.type in _BULKY or self.domain == _TRAINING:
                self.scope.bulky_nodes.append(self)
                self.subs = [sub for a in self.attributes if a.type in _GRAPHS for sub in self._read_graphs(a)]
                self.signature = _signature_of_constant(self)
                return
            self.signature += (attribute.SerializeToString(),)

    def _read_graphs(self, attribute: AttributeProto) -> Iterator[Scope]:
        where = f"{self.where} {attribute.name}"
        if attribute.HasField("g"):
            yield Scope(attribute.g, where, self.scope.model, self.scope, self)
        for place, graph in enumerate(attribute.graphs):
            yield Scope(graph, f"{where}[{place}]", self.scope.model, self.scope, self)

    @property
    def operator(self) -> str:
        """``Conv``; outside the domain ai.onnx with the domain before it."""
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type

    @property
    def reads(self) -> Iterator[str]:
        """The names of its scope that it reads: its inputs, what its sub-graphs capture, what it names."""
        yield from filter(None, self.inputs)
        for sub in self.subs:
            yield from sub.captures
        yield from self.named

    @property
    def where(self) -> str:
        name = f' "{self.proto.name}"' if self.proto.name else ""
        return f"{self.scope.where}/node[{self.place}] ({self.op_type}{name})"

    def input_where(self, place: int) -> str:
        return f'{self.where} input {place} "{self.inputs[place]}"'

    def output_where(self, place: int) -> str:
        return f'{self.where} output {place} "{self.outputs[place]}"'

    @property
    def named(self) -> Iterator[str]:
        """The values that it names in attributes, as a Gradient does."""
        if self.domain == _TRAINING:
            for attribute in self.attributes:
                if attribute.name in _NAMING:
                    yield from (text.decode(errors="replace") for text in (*attribute.strings, attribute.s) if text)

    @property
    def label(self) -> str:
        """The node's name, or its operator and place: what a cycle is told by."""
        return f"{self.proto.name} ({self.op_type})" if self.proto.name else f"node[{self.place}] ({self.op_type})"

    @property
    def schema(self) -> Schema | None:
        return self.scope.imports.schema(self.domain, self.op_type)

    @property
    def kernel(self) -> Kernel | None:
        """What runs it here, where the standard does not describe its operator."""
        return self.scope.imports.kernel(self.domain, self.op_type)

    @property
    def version(self) -> int | None:
        """The opset that its domain is imported at; None where it is not."""
        return self.scope.imports.versions.get(self.domain)

    @property
    def function(self) -> Function | None:
        """The model's function of this name, whether or not the standard has an operator of that name, too."""
        return self.scope.model.functions_by_key.get((self.domain, self.op_type, self.proto.overload))

    @property
    def called(self) -> Function | None:
        """The model's function that runs it: the standard's operators come first, and those that onnxeval has."""
        return None if self.schema is not None or self.kernel is not None else self.function


#: A name, a type and the tensor.
_PLAIN_FIELDS = 3


def _signature_of_constant(node: Node) -> Any:
    """What a node that gives a small constant tensor is recognised by; None for all other nodes."""
    if len(node.attributes) != 1 or node.inputs or node.domain:
        return None
    attribute = node.attributes[0]
    tensor = attribute.t
    dims = tensor.dims[:]
    if (
        attribute.type != AttributeProto.TENSOR
        or len(attribute.ListFields()) > _PLAIN_FIELDS
        or attribute.ref_attr_name
        or tensor.data_location
        or len(dims) > 1
        or max(dims, default=0) > _SMALL
    ):
        return None
    data = tensor.raw_data if tensor.HasField("raw_data") else tensor.SerializeToString()
    return *node.signature, attribute.name, tensor.data_type, *dims, data


#: What holds a tensor: a node, or a scope and the name of its initializer.
Holder: TypeAlias = "Node | tuple[Scope, str]"


class Read(NamedTuple):
    """An input that names nothing made before its node."""

    node: Node
    place: int
    name: str


class LateRead(NamedTuple):
    """An input that names what a later node makes. ``reader`` is the place of its node, or of the node around it."""

    read: Read
    reader: int
    maker: int


class Redefinition(NamedTuple):
    """An output of a node that takes a name which is taken: by ``where``."""

    node: Node
    place: int
    name: str
    where: str


class Scope:
    """A graph, or a function's body: a list of nodes and the names they may read.

    ``owner`` is the node around a sub-graph, ``makers`` maps each name to the place of the node that makes it,
    -1 for inputs and initializers.
    """

    def __init__(
        self,
        proto: GraphProto | FunctionProto,
        where: str,
        model: Model,
        parent: Scope | None = None,
        owner: Node | None = None,
        imports: Imports | None = None,
    ) -> None:
        self.proto = proto
        self.where = where
        self.model = model
        self.parent = parent
        self.owner = owner
        self.imports: Imports = imports or (parent.imports if parent else model.imports)
        self.function: Function | None = parent.function if parent else None
        graph = proto if isinstance(proto, GraphProto) else None
        self.inputs: list[str] = [v.name for v in graph.input] if graph else list(proto.input)
        self.outputs: list[str] = [v.name for v in graph.output] if graph else list(proto.output)
        self.constants: list[str] = list(constants_of(graph)) if graph else []
        self.makers: dict[str, int] = dict.fromkeys((*self.inputs, *self.constants), -1)
        self.makers.pop("", None)
        self.unmade: dict[tuple[int, str], Read] = {}
        self.redefined: list[Redefinition] = []
        #: The nodes that hold tensors, graphs, or names of values.
        self.bulky_nodes: list[Node] = []
        #: The nodes that spell the domain "" as ``ai.onnx``.
        self.spelled_long: list[Node] = []
        #: Names read from around this scope, by its own nodes or by scopes in them.
        self.captures: set[str] = set()
        self.nodes: list[Node] = []
        self._read_nodes()

    def _read_nodes(self) -> None:
        makers, nodes = self.makers, self.nodes
        for place, proto in enumerate(self.proto.node):
            node = Node(proto, self, place)
            nodes.append(node)
            for name in node.inputs:
                if name not in makers and name:
                    self._read_from_around(node, name)
            for name in node.outputs:
                if name in makers or self.parent is not None:
                    self._note_redefinition(node, name)
                makers.setdefault(name, place)
        makers.pop("", None)
        for sub in (sub for node in nodes for sub in node.subs):
            self.captures.update(name for name in sub.captures if name not in makers)

    def _read_from_around(self, node: Node, name: str) -> None:
        self.captures.add(name)
        if self.parent is None or not self.parent.sees(name):
            self.unmade[node.place, name] = Read(node, node.inputs.index(name), name)

    def _note_redefinition(self, node: Node, name: str) -> None:
        if not name:
            return
        maker = self.maker_of(name)
        if maker is not None:
            scope, place = maker
            by = scope.nodes[place].where if place >= 0 else f"the inputs and initializers of {scope.where}"
            last = len(node.outputs) - 1 - node.outputs[::-1].index(name)
            self.redefined.append(Redefinition(node, last, name, by))

    def sees(self, name: str) -> bool:
        """Whether a name is made here or around; while a scope is being read, whether it is made before."""
        return name in self.makers or (self.parent is not None and self.parent.sees(name))

    def maker_of(self, name: str) -> tuple[Scope, int] | None:
        """The scope, here or around, that makes a name, and the place of the node that does."""
        if (place := self.makers.get(name)) is not None:
            return self, place
        return self.parent.maker_of(name) if self.parent is not None else None

    @cached_property
    def declarations(self) -> Mapping[tuple[str, bytes], list[tuple[int, ValueInfoProto]]]:
        """The declared values with their places, by role (input, output, value_info) and type."""
        alike: dict[tuple[str, bytes], list[tuple[int, ValueInfoProto]]] = defaultdict(list)
        if (graph := self.graph) is not None:
            for role, values in (("input", graph.input), ("output", graph.output), ("value_info", graph.value_info)):
                for place, value in enumerate(values):
                    alike[role, value.type.SerializeToString()].append((place, value))
        return alike

    @cached_property
    def node_names(self) -> list[str]:
        """The nodes' own names, in order; "" where one has none."""
        return [proto.name for proto in self.proto.node]

    @cached_property
    def read_from_outside(self) -> set[str]:
        """The names that others than its nodes read: its outputs, training, quantisation annotations."""
        names = set(self.outputs)
        if (graph := self.graph) is not None:
            for annotation in graph.quantization_annotation:
                names.add(annotation.tensor_name)
                names.update(entry.value for entry in annotation.quant_parameter_tensor_names)
        if self is self.model.graph:
            for training in self.model.training:
                names.update(training.captures, (name for node in training.nodes for name in node.named))
            for info in self.model.proto.training_info:
                for binding in (*info.initialization_binding, *info.update_binding):
                    names.update((binding.key, binding.value))
        return names

    @cached_property
    def reads(self) -> set[str]:
        """Every name that anybody reads here: its nodes, scopes in them, and others."""
        names = set(self.read_from_outside)
        for node in self.nodes:
            names.update(node.inputs)
        for node in self.bulky_nodes:
            names.update(node.reads)
        return names

    def known_names(self) -> Iterator[str]:
        """Every name that is made here or around."""
        yield from self.makers
        if self.parent is not None:
            yield from self.parent.known_names()

    def all_scopes(self) -> Iterator[Scope]:
        """Itself and all scopes in its nodes."""
        yield self
        for node in self.nodes:
            for sub in node.subs:
                yield from sub.all_scopes()

    @property
    def is_branch(self) -> bool:
        """Whether this is, or lies in, a branch of an If: it may be written for shapes that never come here."""
        if self.owner is None:
            return False
        return self.owner.op_type == "If" or self.owner.scope.is_branch

    @property
    def graph(self) -> GraphProto | None:
        """The graph; None for a function's body."""
        return self.proto if isinstance(self.proto, GraphProto) else None
