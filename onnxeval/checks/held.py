"""The tensors that a model holds, each with its place: initializers, and those in attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from onnx import AttributeProto, SparseTensorProto, TensorProto

from onnxeval.checks.views import Holder, Node, Scope
from onnxeval.checks.whole import Model


class Tensor(NamedTuple):
    """A tensor that the model holds: an initializer, or an attribute's."""

    where: str
    proto: TensorProto
    model: Model
    holder: Holder


class SparseTensor(NamedTuple):
    """A sparse tensor that the model holds."""

    where: str
    proto: SparseTensorProto
    model: Model
    holder: Holder


def tensors_of(scope: Scope) -> Iterator[Tensor | SparseTensor]:
    """The tensors of a scope: its initializers and those in its nodes' attributes, not those in sub-graphs."""
    model = scope.model
    if (graph := scope.graph) is not None:
        for place, tensor in enumerate(graph.initializer):
            where = f'{scope.where}/initializer[{place}] "{tensor.name}"'
            yield Tensor(where, tensor, model, (scope, tensor.name))
        for place, sparse in enumerate(graph.sparse_initializer):
            where = f'{scope.where}/sparse_initializer[{place}] "{sparse.values.name}"'
            yield from _sparse(where, sparse, model, (scope, sparse.values.name))
    for node in scope.bulky_nodes:
        for attribute in node.attributes:
            yield from _tensors_in(attribute, f'{node.where} attribute "{attribute.name}"', node)


def _tensors_in(attribute: AttributeProto, where: str, node: Node) -> Iterator[Tensor | SparseTensor]:
    model = node.scope.model
    if attribute.HasField("t"):
        yield Tensor(where, attribute.t, model, node)
    if attribute.HasField("sparse_tensor"):
        yield from _sparse(where, attribute.sparse_tensor, model, node)
    for place, tensor in enumerate(attribute.tensors):
        yield Tensor(f"{where}[{place}]", tensor, model, node)
    for place, sparse in enumerate(attribute.sparse_tensors):
        yield from _sparse(f"{where}[{place}]", sparse, model, node)


def _sparse(where: str, sparse: SparseTensorProto, model: Model, holder: Holder) -> Iterator[Tensor | SparseTensor]:
    yield SparseTensor(where, sparse, model, holder)
    yield Tensor(f"{where} values", sparse.values, model, holder)
    if sparse.HasField("indices"):
        yield Tensor(f"{where} indices", sparse.indices, model, holder)
