"""The engines that can be tested: a model and feeds to outputs, in the order of the graph."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from onnxeval.dtypes import BY_ELEMENT_TYPE, ELEMENT_TYPES, STRING, SUB_BYTE_BITS, DType
from onnxeval.tensors import from_bytes
from onnxeval.values import Value

#: A model, its path or its bytes, and feeds by name.
Engine: TypeAlias = Callable[[Any, Mapping[str, Value]], list[Value]]


def onnxeval(model: Any, feeds: Mapping[str, Value], *, fast_math: bool = False) -> list[Value]:
    """The engine of this package, with ``fast_math`` less exact where that is faster."""
    from onnxeval.model import load

    return list(load(model, fast_math=fast_math).run(feeds).values())


def reference(model: Any, feeds: Mapping[str, Value]) -> list[Value]:
    """The ReferenceEvaluator that comes with onnx."""
    session = import_module("onnx.reference").ReferenceEvaluator(model)
    return list(session.run(None, dict(feeds)))


def onnxruntime(model: Any, feeds: Mapping[str, Value]) -> list[Value]:
    """The CPU of onnxruntime, with its own defaults. What NumPy has no type for goes in and comes out as bytes."""
    runtime = import_module("onnxruntime")
    feeds = {name: np.asarray(value) if isinstance(value, np.generic) else value for name, value in feeds.items()}
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    outputs = session.get_outputs()
    names = [output.name for output in outputs]
    if not any(map(is_foreign, feeds.values())) and not any(is_foreign_name(output.type) for output in outputs):
        return [plain(value) for value in session.run(names, dict(feeds))]
    held = {name: ort_value(runtime, value) for name, value in feeds.items()}
    return [from_ort_value(value) for value in session.run_with_ort_values(names, held)]


ENGINES: dict[str, Engine] = {
    "onnxeval": onnxeval,
    "onnxeval --fast-math": partial(onnxeval, fast_math=True),
    "onnxruntime": onnxruntime,
    "reference": reference,
}


def is_foreign(value: Value) -> bool:
    """Whether `ml_dtypes` brings this array's dtype, which onnxruntime takes and gives as bytes alone."""
    return isinstance(value, np.ndarray) and value.dtype.isbuiltin == 2


def is_foreign_name(type_name: str) -> bool:
    """Whether a type, as onnxruntime writes it, is or holds one that NumPy lacks."""
    return any(part in type_name for part in ("bfloat16", "float8", "float6", "float4", "int4", "int2"))


def ort_value(runtime: Any, value: Value) -> Any:
    """A tensor in onnxruntime's own form. Raises TypeError where its Python interface takes no such thing."""
    if not isinstance(value, np.ndarray):
        raise TypeError("onnxruntime takes no sequences or maps beside types that NumPy lacks")
    if value.dtype == STRING:
        raise TypeError("onnxruntime's Python interface takes no strings beside types that NumPy lacks")
    if not is_foreign(value):
        return runtime.OrtValue.ortvalue_from_numpy(value)
    if value.dtype in SUB_BYTE_BITS:
        raise TypeError(f"onnxruntime's Python interface takes no {value.dtype.name}")
    bits = np.array(value, order="C").view(f"u{value.dtype.itemsize}")
    return runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, ELEMENT_TYPES[value.dtype])


def from_ort_value(value: Any) -> Value:
    """A tensor out of onnxruntime's own form. Raises TypeError for what is none."""
    if not value.is_tensor():
        raise TypeError("onnxruntime gives no sequences of types that NumPy lacks")
    dtype: DType = BY_ELEMENT_TYPE[value.element_type()]
    if dtype.isbuiltin != 2:
        return plain(value.numpy())
    shape = value.shape()
    size = -(-math.prod(shape) * SUB_BYTE_BITS.get(dtype, 8 * dtype.itemsize) // 8)
    raw = ctypes.string_at(value.data_ptr(), size) if size else b""
    return from_bytes(np.frombuffer(raw, np.uint8), dtype, math.prod(shape)).reshape(shape)


def plain(value: Any) -> Value:
    """What an engine gave as a value: strings come as NumPy's own type of text, single numbers as scalars."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "US":
        return value.astype(object)
    return np.asarray(value) if isinstance(value, np.generic) else value
