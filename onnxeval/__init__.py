"""Run, check and explain ONNX models: every operator at every opset, as the standard says.

import onnxeval

    model = onnxeval.load("model.onnx")
    outputs = model.run({"x": array})
    findings = onnxeval.check("model.onnx")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxeval.checks import Finding as Finding
    from onnxeval.checks import check as check
    from onnxeval.errors import InputError as InputError
    from onnxeval.errors import MissingExtra as MissingExtra
    from onnxeval.errors import ModelError as ModelError
    from onnxeval.errors import NodeError as NodeError
    from onnxeval.errors import OnnxEvalError as OnnxEvalError
    from onnxeval.errors import OutputError as OutputError
    from onnxeval.errors import ResourceLimitError as ResourceLimitError
    from onnxeval.errors import UnsupportedOperators as UnsupportedOperators
    from onnxeval.extracting import extract as extract
    from onnxeval.limits import Limits as Limits
    from onnxeval.model import Model as Model
    from onnxeval.model import load as load
    from onnxeval.registry import Registry as Registry
    from onnxeval.registry import op as op
    from onnxeval.threads import set_num_threads as set_num_threads

__version__ = "0.1.0"

#: Public name -> the module it is imported from when first asked for, so that the command line's help needs neither.
_PUBLIC = {
    "Finding": "checks",
    "InputError": "errors",
    "Limits": "limits",
    "MissingExtra": "errors",
    "Model": "model",
    "ModelError": "errors",
    "NodeError": "errors",
    "OnnxEvalError": "errors",
    "OutputError": "errors",
    "Registry": "registry",
    "ResourceLimitError": "errors",
    "UnsupportedOperators": "errors",
    "check": "checks",
    "extract": "extracting",
    "load": "model",
    "op": "registry",
    "set_num_threads": "threads",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a type checker that saw it would let every misspelt name pass

    def __getattr__(name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'onnxeval' has no attribute {name!r}")
        value = getattr(import_module(f"onnxeval.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
