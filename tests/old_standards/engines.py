"""Other engines behind one function each: (model, feeds by name) -> the outputs in order."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto
from onnx.reference import ReferenceEvaluator

from onnxeval.dtypes import BY_ELEMENT_TYPE, is_integer


def run_reference(model: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [_as_array(value) for value in ReferenceEvaluator(model).run(None, feeds)]


def run_onnxruntime(model: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """What NumPy has no type for goes in as an initializer and comes out cast to int8 or float32."""
    onnxruntime = pytest.importorskip("onnxruntime")
    onnxruntime.set_default_logger_severity(4)
    session_model = ModelProto()
    session_model.CopyFrom(model)
    graph = session_model.graph
    foreign = {name for name, value in feeds.items() if _is_foreign(getattr(value, "dtype", None))}
    graph.initializer.extend(onnx.numpy_helper.from_array(feeds[name], name) for name in sorted(foreign))
    for output in graph.output:
        dtype = BY_ELEMENT_TYPE.get(output.type.tensor_type.elem_type)
        if dtype is not None and _is_foreign(dtype):
            holder = TensorProto.INT8 if is_integer(dtype) else TensorProto.FLOAT
            graph.node.add(op_type="Cast", input=[output.name], output=[f"{output.name} cast"]).attribute.append(
                onnx.helper.make_attribute("to", holder)
            )
            output.name = f"{output.name} cast"
            output.type.tensor_type.elem_type = holder
    session = onnxruntime.InferenceSession(session_model.SerializeToString(), providers=["CPUExecutionProvider"])
    results = session.run(None, {name: value for name, value in feeds.items() if name not in foreign})
    return [_as_array(value) for value in results]


def _is_foreign(dtype: Any) -> bool:
    """Whether `ml_dtypes` brings this dtype."""
    return dtype is not None and dtype.isbuiltin == 2


def _as_array(value: Any) -> Any:
    """Arrays and not NumPy's scalars, strings in object arrays; lists as they are."""
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind == "U" else array
