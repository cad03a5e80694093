"""The whole model as the rules look at it, and its functions.

Nothing here judges or refuses: a view exists of every model that can be parsed, however wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from onnx import FunctionProto, ModelProto

from onnxeval.checks.imports import Imports
from onnxeval.checks.views import LateRead, Node, Scope
from onnxeval.external import Files
from onnxeval.schema import canonical_domain


class Function:
    """A function of the model's own."""

    def __init__(self, proto: FunctionProto, model: Model, ordinal: int) -> None:
        self.proto = proto
        self.model = model
        self.ordinal = ordinal
        self.key = (canonical_domain(proto.domain), proto.name, proto.overload)
        self.label = ":".join(str(part) for part in (proto.domain or "ai.onnx", proto.name, proto.overload) if part)
        self.where = f"function[{self.label}]"
        self.scope = Scope(proto, self.where, model, imports=Imports(proto.opset_import, self.where))
        for scope in self.scope.all_scopes():
            scope.function = self

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The names of its attributes, with and without a default."""
        return frozenset((*self.proto.attribute, *(a.name for a in self.proto.attribute_proto)))

    def calls(self) -> Iterator[tuple[Node, Function]]:
        """The functions of the model that its nodes call, at any depth of nesting."""
        for scope in self.scope.all_scopes():
            for node in scope.nodes:
                if (called := node.called) is not None:
                    yield node, called


class Model:
    """The whole. ``source`` is what messages call it."""

    def __init__(self, proto: ModelProto, source: str, folders: tuple[Path, ...]) -> None:
        self.proto = proto
        self.source = source
        self.folders = folders
        self.has_functions = len(proto.functions) > 0
        self.imports = Imports(proto.opset_import, "model", {"": 1} if 0 < proto.ir_version < 3 else None)
        self.functions_by_key: dict[tuple[str, str, str], Function] = {}
        self.functions: list[Function] = []
        for ordinal, function in enumerate(proto.functions):
            view = Function(function, self, ordinal)
            self.functions.append(view)
            self.functions_by_key.setdefault(view.key, view)
        self.graph = Scope(proto.graph, "graph", self)
        self.training = [
            Scope(getattr(info, field), f"training_info[{place}]/{field}", self, self.graph)
            for place, info in enumerate(proto.training_info)
            for field in ("initialization", "algorithm")
            if info.HasField(field)
        ]

    @cached_property
    def files(self) -> Files:
        """Where its external data lies."""
        return Files(self.folders)

    @cached_property
    def importers(self) -> Mapping[str, tuple[str, Imports]]:
        """Who binds each domain for the whole model: the model itself, or else the first function that imports it."""
        found: dict[str, tuple[str, Imports]] = {}
        for where, imports in (("the model", self.imports), *((f.where, f.scope.imports) for f in self.functions)):
            for domain in imports.versions:
                found.setdefault(domain, (where, imports))
        return found

    @cached_property
    def called(self) -> frozenset[Function]:
        """Its functions that nodes call."""
        if not self.functions:
            return frozenset()
        called = (node.called for scope in self.scopes() for node in scope.nodes)
        return frozenset(function for function in called if function is not None)

    @cached_property
    def late_reads(self) -> Mapping[Scope, list[LateRead]]:
        """What is read before it is made, by the scope that makes it."""
        late: dict[Scope, list[LateRead]] = defaultdict(list)
        for scope in self.scopes():
            for read in scope.unmade.values():
                if (found := scope.maker_of(read.name)) is not None:
                    maker_scope, maker = found
                    late[maker_scope].append(LateRead(read, _place_in(maker_scope, read.node), maker))
        return late

    def scopes(self) -> Iterator[Scope]:
        """Every graph and every function body, outer ones first."""
        yield from self.graph.all_scopes()
        for function in self.functions:
            yield from function.scope.all_scopes()
        for scope in self.training:
            yield from scope.all_scopes()


def _place_in(scope: Scope, node: Node) -> int:
    """The place in ``scope`` of a node, or of the node there that holds it."""
    while node.scope is not scope and node.scope.owner is not None:
        node = node.scope.owner
    return node.place
