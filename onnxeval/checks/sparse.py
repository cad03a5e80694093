"""Rules on sparse tensors: values, the dims they lie in, and the indices that say where."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxeval.checks.held import SparseTensor
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.dtypes import Tensor as Array
from onnxeval.errors import ModelError
from onnxeval.tensors import array_from


def _indices(sparse: SparseTensor) -> Array | None:
    """The indices as a table, a row a value; None where other rules find fault with them."""
    proto = sparse.proto
    count = proto.values.dims[0] if len(proto.values.dims) == 1 else -1
    if not _fits(sparse, count) or any(size <= 0 for size in proto.dims):
        return None
    try:
        return array_from(proto.indices, sparse.model.files).reshape(count, -1) if count else None
    except ModelError:
        return None


def _fits(sparse: SparseTensor, count: int) -> bool:
    shape = tuple(sparse.proto.indices.dims)
    return sparse.proto.indices.data_type == TensorProto.INT64 and shape in ((count,), (count, len(sparse.proto.dims)))


@rule("tensor/sparse-shape", "error", SparseTensor)
def sparse_shape(sparse: SparseTensor) -> Faults:
    """A sparse tensor's values are not a list, its dims are not positive, or its indices do not fit both.

    Why: where its values belong cannot be told.

    Mend: give values `[NNZ]`, and indices of int64, `[NNZ]` counted through all elements or `[NNZ, rank]`.

    Example:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.sparse_initializer.add(dims=[2])
        >>> w.values.MergeFrom(TensorProto(name="w", data_type=1, dims=[1], float_data=[1]))
        >>> w.indices.MergeFrom(TensorProto(data_type=7, dims=[2], int64_data=[0, 1]))

    Instead:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.sparse_initializer.add(dims=[2])
        >>> w.values.MergeFrom(TensorProto(name="w", data_type=1, dims=[1], float_data=[1]))
        >>> w.indices.MergeFrom(TensorProto(data_type=7, dims=[1], int64_data=[0]))
    """
    proto = sparse.proto
    if len(proto.values.dims) != 1:
        yield Fault(sparse.where, f"the values have dims {list(proto.values.dims)}, expected one dimension")
        return
    if not proto.dims or min(proto.dims) <= 0:
        yield Fault(sparse.where, f"dims {list(proto.dims)} must be there and positive")
    count = proto.values.dims[0]
    if proto.HasField("indices"):
        if not _fits(sparse, count):
            given = f"{_type_name(proto.indices.data_type)}{list(proto.indices.dims)}"
            message = f"{count} values in dims {list(proto.dims)} have indices {given}"
            yield Fault(sparse.where, message, f"expected INT64[{count}] or INT64[{count}, {len(proto.dims)}]")
    elif count:
        yield Fault(sparse.where, f"{count} values have no indices")


def _type_name(number: int) -> str:
    return TensorProto.DataType.Name(number) if number in TensorProto.DataType.values() else str(number)


@rule("tensor/sparse-index", "error", SparseTensor)
def sparse_index(sparse: SparseTensor) -> Faults:
    """An index of a sparse tensor lies outside its dims.

    Why: there is no such element.

    Mend: correct the index or the dims.

    Example:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.sparse_initializer.add(dims=[2])
        >>> w.values.MergeFrom(TensorProto(name="w", data_type=1, dims=[1], float_data=[1]))
        >>> w.indices.MergeFrom(TensorProto(data_type=7, dims=[1], int64_data=[2]))

    Instead:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.sparse_initializer.add(dims=[2])
        >>> w.values.MergeFrom(TensorProto(name="w", data_type=1, dims=[1], float_data=[1]))
        >>> w.indices.MergeFrom(TensorProto(data_type=7, dims=[1], int64_data=[1]))
    """
    if (table := _indices(sparse)) is not None:
        outside = (table < 0) | (table >= _bounds(sparse, table))
        if outside.any():
            row = int(np.argwhere(outside)[0, 0])
            yield Fault(sparse.where, f"index {row} is {table[row].tolist()}, dims are {list(sparse.proto.dims)}")


@rule("tensor/sparse-order", "error", SparseTensor)
def sparse_order(sparse: SparseTensor) -> Faults:
    """The indices of a sparse tensor do not ascend.

    Why: the standard wants them in order, so that none comes twice.

    Mend: sort the indices, and the values with them.

    Example:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.sparse_initializer.add(dims=[2])
        >>> w.values.MergeFrom(TensorProto(name="w", data_type=1, dims=[2], float_data=[1, 2]))
        >>> w.indices.MergeFrom(TensorProto(data_type=7, dims=[2], int64_data=[1, 0]))

    Instead:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.sparse_initializer.add(dims=[2])
        >>> w.values.MergeFrom(TensorProto(name="w", data_type=1, dims=[2], float_data=[1, 2]))
        >>> w.indices.MergeFrom(TensorProto(data_type=7, dims=[2], int64_data=[0, 1]))
    """
    if (table := _indices(sparse)) is None or len(table) < 2:
        return
    if ((table < 0) | (table >= _bounds(sparse, table))).any():
        return
    step = np.diff(table, axis=0)
    leading = step[np.arange(len(step)), (step != 0).argmax(axis=1)]
    if (leading <= 0).any():
        row = int((leading <= 0).argmax())
        yield Fault(sparse.where, f"index {row + 1} {table[row + 1].tolist()} does not follow {table[row].tolist()}")


def _bounds(sparse: SparseTensor, table: Array) -> Array:
    sizes = list(sparse.proto.dims) if table.shape[1] == len(sparse.proto.dims) else [math.prod(sparse.proto.dims)]
    return np.array([min(size, 2**63 - 1) for size in sizes], np.int64)
