"""What `onnxeval check --fix` mends: faults whose mending is safe, loses nothing and changes no result.

Each step rewrites the message in place and says what it did. Nothing is removed from a model that has other errors:
what seems unused may be what an error cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, ValueInfoProto

from onnxeval.checks.checker import Check
from onnxeval.checks.held import Tensor, tensors_of
from onnxeval.checks.unused import needed_places
from onnxeval.checks.views import Scope
from onnxeval.checks.whole import Model
from onnxeval.errors import ModelError
from onnxeval.graph import order_function, order_graph
from onnxeval.loader import Loaded
from onnxeval.schema import canonical_domain

#: Errors that are mended here, or that leave no doubt about who reads what.
_HARMLESS = frozenset({"graph/order", "graph/no-type", "graph/no-shape", "graph/unnamed"})


def mend(loaded: Loaded) -> list[str]:
    """Mend a model's message in place; what was done, a line each, with its place."""
    done = [line for step in _STEPS for line in step(_view(loaded))]
    done += _declare_outputs(loaded)
    errors = (finding for finding in Check(loaded).run() if finding.severity == "error")
    if all(error.rule in _HARMLESS for error in errors):
        while removed := [line for step in _REMOVALS for line in step(_view(loaded))]:
            done += removed
    return done


def has_external_data(loaded: Loaded) -> bool:
    """Whether a tensor's data lies in another file."""
    held = (tensor for scope in _view(loaded).scopes() for tensor in tensors_of(scope) if isinstance(tensor, Tensor))
    return any(tensor.proto.data_location == TensorProto.EXTERNAL for tensor in held)


def _view(loaded: Loaded) -> Model:
    return Model(loaded.proto, loaded.source, loaded.folders)


def _inside_out(model: Model) -> Iterator[Scope]:
    """Every scope, inner ones first: they are copied with the nodes they stand in."""
    yield from reversed(list(model.scopes()))


# Spelling and order


def _spell_domains(model: Model) -> Iterator[str]:
    for scope in model.scopes():
        if scope.spelled_long:
            for node in scope.spelled_long:
                node.proto.domain = ""
            yield f'{scope.where}: wrote the domain "ai.onnx" as "" in {_count(len(scope.spelled_long), "node")}'


def _merge_imports(model: Model) -> Iterator[str]:
    importers: list[tuple[str, ModelProto | FunctionProto]] = [("model", model.proto)]
    for where, proto in (*importers, *((function.where, function.proto) for function in model.functions)):
        for place, entry in reversed(list(enumerate(proto.opset_import))):
            domain = canonical_domain(entry.domain)
            before = ((canonical_domain(e.domain), e.version) for e in proto.opset_import[:place])
            if (domain, entry.version) in before:
                yield f'{where}: removed the second import of "{domain or "ai.onnx"}" at version {entry.version}'
                del proto.opset_import[place]


def _name_graphs(model: Model) -> Iterator[str]:
    for scope in model.scopes():
        if isinstance(scope.proto, GraphProto) and not scope.proto.name and model.proto.HasField("graph"):
            scope.proto.name = "graph"
            yield f'{scope.where}: named it "graph"'


def _sort_nodes(model: Model) -> Iterator[str]:
    for scope in _inside_out(model):
        proto = scope.proto
        try:
            order = order_graph(proto) if isinstance(proto, GraphProto) else order_function(proto, ())
        except ModelError:
            continue  # there is a cycle, or a name is made twice
        if list(order.nodes) != sorted(order.nodes):
            nodes = [proto.node[place] for place in order.nodes]
            copies = type(proto)(node=nodes)
            del proto.node[:]
            proto.node.extend(copies.node)
            yield f"{scope.where}: sorted the nodes, each after those whose values it reads"


def _rename_nodes(model: Model) -> Iterator[str]:
    for scope in model.scopes():
        taken = set(scope.node_names)
        seen: set[str] = {""}
        for node, name in zip(scope.nodes, scope.node_names, strict=True):
            if name in seen and name:
                number = 1
                while f"{name}_{number}" in taken:
                    number += 1
                node.proto.name = f"{name}_{number}"
                taken.add(node.proto.name)
                yield f'{scope.where}/node[{node.place}] ({node.op_type}): renamed "{name}" to "{node.proto.name}"'
            seen.add(name)


def _declare_outputs(loaded: Loaded) -> Iterator[str]:
    """Types and shapes that outputs of the main graph lack, as far as inference tells them."""
    outputs = loaded.proto.graph.output
    if not any(map(_lacks, outputs)):
        return
    walk = Check(loaded)
    walk.run()
    for place, value in enumerate(outputs):
        known = walk.values[value.name]
        if _lacks(value) and not _lacks(ValueInfoProto(type=known.proto)):
            value.type.CopyFrom(known.proto)
            yield f'graph/output[{place}] "{value.name}": declared {known}'


def _lacks(value: ValueInfoProto) -> bool:
    kind = value.type.WhichOneof("value")
    tensor = value.type.tensor_type
    return kind is None or (kind == "tensor_type" and not (tensor.elem_type and tensor.HasField("shape")))


# What nobody needs


def _remove_nodes(model: Model) -> Iterator[str]:
    for scope in _inside_out(model):
        needed = needed_places(scope)
        unneeded = [node for node in scope.nodes if node.place not in needed]
        names = {name for node in unneeded for name in node.outputs if name}
        if isinstance(scope.proto, GraphProto):
            _forget(scope.proto, names)
        for node in reversed(unneeded):
            yield f"{node.where}: removed, no output needs it"
            del scope.proto.node[node.place]


def _forget(graph: GraphProto, names: set[str]) -> None:
    """Drop the declarations of values that are no more."""
    for place in range(len(graph.value_info) - 1, -1, -1):
        if names and graph.value_info[place].name in names:
            del graph.value_info[place]


def _remove_initializers(model: Model) -> Iterator[str]:
    """One that is the default of an input stays: without it the input would have to be fed."""
    for scope in model.scopes():
        graph = scope.proto
        if isinstance(graph, GraphProto):
            kept = {*scope.reads, *scope.inputs, ""}
            unread = set(scope.constants).difference(kept)
            for place in range(len(graph.initializer) - 1, -1, -1):
                if (name := graph.initializer[place].name) in unread:
                    del graph.initializer[place]
                    yield f'{scope.where}/initializer "{name}": removed, nobody reads it'
            for place in range(len(graph.sparse_initializer) - 1, -1, -1):
                if (name := graph.sparse_initializer[place].values.name) in unread:
                    del graph.sparse_initializer[place]
                    yield f'{scope.where}/sparse_initializer "{name}": removed, nobody reads it'
            _forget(graph, unread)


def _remove_functions(model: Model) -> Iterator[str]:
    for function in reversed(model.functions):
        if function not in model.called:
            del model.proto.functions[function.ordinal]
            yield f"{function.where}: removed, no node calls it"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


_Step = Callable[[Model], Iterator[str]]
_STEPS: tuple[_Step, ...] = (_spell_domains, _merge_imports, _name_graphs, _sort_nodes, _rename_nodes)
_REMOVALS: tuple[_Step, ...] = (_remove_nodes, _remove_initializers, _remove_functions)
