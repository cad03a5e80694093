"""Both engines behind one function each: a node -> its outputs in order, or why it was refused."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from differential.cases import Node
from onnx import TensorProto, helper, numpy_helper

import onnxeval
from onnxeval.dtypes import BY_ELEMENT_TYPE, ELEMENT_TYPES, STRING, SUB_BYTE_BITS, DType
from onnxeval.tensors import array_from
from onnxeval.values import Value

ort = pytest.importorskip("onnxruntime")
ort.set_default_logger_severity(4)


@dataclass(frozen=True)
class Refusal:
    """Why an engine gave no result; ``missing`` where it has no kernel for these types."""

    text: str
    missing: bool = False


Outcome = list[Value] | Refusal


def run_onnxeval(node: Node) -> Outcome:
    try:
        return list(onnxeval.load(node.model()).run(node.feeds).values())
    except onnxeval.UnsupportedOperators as error:
        return Refusal(str(error), missing=True)
    except onnxeval.OnnxEvalError as error:
        return Refusal(str(error))


def run_onnxruntime(node: Node) -> Outcome:
    """One thread, no optimisations. What NumPy has no type for is read and written as bytes."""
    feeds = node.feeds
    packed = {name for name, value in feeds.items() if getattr(value, "dtype", None) in SUB_BYTE_BITS}
    try:
        session = start(node, packed)
        foreign = any(map(_is_foreign, feeds.values())) or any(_is_foreign_type(o.type) for o in session.get_outputs())
        if foreign and (strings := {name for name, v in feeds.items() if getattr(v, "dtype", None) == STRING}):
            packed |= strings
            session = start(node, packed)
        names = [output.name for output in session.get_outputs()]
        left = {name: value for name, value in feeds.items() if name not in packed}
        if not foreign:
            return [_plain(value) for value in session.run(names, left)]
        values = session.run_with_ort_values(names, {name: _ort_value(value) for name, value in left.items()})
        return [_from_ort_value(value) for value in values]
    except Exception as error:
        # its classes of error share no base but Exception
        text = str(error)
        return Refusal(text, missing=any(mark in text for mark in _MISSING))


def start(node: Node, packed: set[str]) -> Any:
    """A session; the inputs in ``packed``, which cannot be fed, become initializers."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = node.model()
    model.graph.initializer.extend(numpy_helper.from_array(node.feeds[name], name) for name in sorted(packed))
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


#: What onnxruntime says where it has no kernel, or no such type.
_MISSING = (
    "Could not find an implementation for",
    "NOT_IMPLEMENTED",
    "of operator (",  # Type 'tensor(x)' of input parameter (y) of operator (z) in node () is invalid.
    "Unsupported data type",
    "Unsupported value attribute datatype",
    "data type is not supported with",
    "does not support double yet",
    "is deprecated in domain_version",
    "Subgraph must have the shape set for all outputs",  # what onnxruntime asks of the Scan in a function body
    "does not match expected type",
    "must have same type as input",
    "usage of initializer in graph expects",  # an optional of a type that cannot be fed
    "it cannot be linked to C type",  # maps from integers to strings have no way in
    "bound to different types",  # a function body that the types do not fit
    "is not currently registered or supported",
)


def _is_foreign(value: Any) -> bool:
    """Whether `ml_dtypes` brings this array's dtype."""
    return isinstance(value, np.ndarray) and value.dtype.isbuiltin == 2


def _is_foreign_type(type_name: str) -> bool:
    return any(part in type_name for part in ("bfloat16", "float8", "float4", "int4", "int2", "float6"))


def _ort_value(value: Value) -> Any:
    if not isinstance(value, np.ndarray):
        raise TypeError("NOT_IMPLEMENTED: a sequence of a type that NumPy lacks")
    if not _is_foreign(value):
        return ort.OrtValue.ortvalue_from_numpy(value)
    bits = np.array(value, order="C").view({1: np.uint8, 2: np.uint16}[value.dtype.itemsize])
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, ELEMENT_TYPES[value.dtype])


def _from_ort_value(value: Any) -> Value:
    if not value.is_tensor():
        raise TypeError("NOT_IMPLEMENTED: a sequence of a type that NumPy lacks")
    dtype: DType = BY_ELEMENT_TYPE[value.element_type()]
    if dtype.isbuiltin != 2:
        return _plain(value.numpy())
    shape = value.shape()
    size = (math.prod(shape) * SUB_BYTE_BITS.get(dtype, 8 * dtype.itemsize) + 7) // 8
    raw = ctypes.string_at(value.data_ptr(), size) if size else b""
    tensor: TensorProto = helper.make_tensor("y", ELEMENT_TYPES[dtype], shape, raw, raw=True)
    return array_from(tensor)


def _plain(value: Any) -> Value:
    """onnxruntime's strings come as str or as NumPy's own string dtypes."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "US":
        return value.astype(object)
    return np.asarray(value) if isinstance(value, np.generic) else value
