"""One node in every engine that is installed: what the examples of differences.md call."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import onnxeval
from onnxeval.dtypes import BY_NAME  # noqa: F401  # for the examples
from onnxeval.tensors import type_proto
from onnxeval.values import MapType, TensorType, ValueType, type_of

Engine = Callable[[ModelProto, dict[str, Any]], list[Any]]


def _onnxeval(model: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    return list(onnxeval.load(model).run(feeds).values())


def _onnxruntime(model: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    import onnxruntime

    def start() -> Any:
        return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])

    onnxruntime.set_default_logger_severity(4)
    # what NumPy has no type for is fed as an initializer and fetched as float32
    foreign = {name: value for name, value in feeds.items() if getattr(value, "dtype", np.dtype(bool)).isbuiltin == 2}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in foreign.items())
    for output, found in zip(model.graph.output, start().get_outputs(), strict=True):
        if "float8" in found.type:
            model.graph.node.append(
                helper.make_node("Cast", [output.name], [f"{output.name} wide"], to=TensorProto.FLOAT)
            )
            output.name += " wide"
    results: list[Any] = start().run(None, {name: value for name, value in feeds.items() if name not in foreign})
    return results


def _reference(model: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    return list(ReferenceEvaluator(model).run(None, feeds))


ENGINES: dict[str, Engine] = {"onnxeval": _onnxeval, "onnxruntime": _onnxruntime, "reference": _reference}


def show(op_type: str, *inputs: Any, opset: int, outputs: int = 1, domain: str = "", **attributes: Any) -> None:
    """Print what each engine makes of one node.

    Inputs are arrays or what becomes one: floats are float32, integers int64; None leaves an input out, a dict is a map
    from int64 to float32. ``opset`` is the version of ``domain``.
    """
    values = {f"x{i}": _value(x) for i, x in enumerate(inputs) if x is not None}
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, domain=domain, **attributes)],
        "example",
        [helper.make_value_info(name, type_proto(_type(value))) for name, value in values.items()],
        [helper.make_empty_tensor_value_info(name) for name in results],
    )
    opsets = [helper.make_opsetid(domain, opset), *([helper.make_opsetid("", 21)] if domain else [])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=13)
    for name, engine in ENGINES.items():
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                told = "  ".join(map(_text, engine(copy.deepcopy(model), values)))
        except ImportError:
            continue
        except Exception:
            # each engine has errors of its own
            told = "refuses"
        print(f"# {name:<12} {told}")


def _value(x: Any) -> Any:
    if isinstance(x, dict):
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        return np.asarray(x)
    array = np.array(x)
    if array.dtype.kind == "U":
        return array.astype(object)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _type(value: Any) -> ValueType:
    """Maps are taken to hold float32, as Python's floats do not tell."""
    return MapType(np.dtype(np.int64), TensorType(np.dtype(np.float32))) if isinstance(value, dict) else type_of(value)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_text(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    array = np.asarray(value)
    if array.size == 0:
        return f"empty {list(array.shape)}"
    return _nested(array.tolist())


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    if not isinstance(value, float):
        return repr(value)
    text = f"{value:.6g}"
    return text if any(mark in text for mark in ".en") else f"{text}.0"
