"""Elements carried through shape arithmetic, by the operators' own kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, TensorProto

from onnxeval.checks.known import ABSENT, Known
from onnxeval.dtypes import DType, Tensor
from onnxeval.errors import ModelError
from onnxeval.fitting import attribute_values
from onnxeval.registry import STANDARD, signature_of
from onnxeval.schema import Schema
from onnxeval.values import TensorType

_MOST_ELEMENTS = 1024
#: Operators that look at the shape of their input alone.
_OF_SHAPE = frozenset({"Shape", "Size"})


def constant(schema: Schema, attributes: Iterable[AttributeProto]) -> Tensor | None:
    """What a Constant with a number or a list of numbers gives; None for all others."""
    if schema.key[:2] == ("", "Constant"):
        for attribute in attributes:
            if attribute.type in (AttributeProto.INT, AttributeProto.INTS):
                return np.array(attribute.i if attribute.type == AttributeProto.INT else attribute.ints, np.int64)
            if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS):
                return np.array(attribute.f if attribute.type == AttributeProto.FLOAT else attribute.floats, np.float32)
    return None


def constant_tensor(schema: Schema, attributes: Iterable[AttributeProto]) -> TensorProto | None:
    """The tensor that a Constant gives; None for all others."""
    if schema.key[:2] == ("", "Constant"):
        return next((attribute.t for attribute in attributes if attribute.type == AttributeProto.TENSOR), None)
    return None


def carried(schema: Schema, inputs: Sequence[Known], attributes: Iterable[AttributeProto]) -> Tensor | None:
    """The elements of a node's one output; None where they are not known.

    The standard itself says which operators carry elements: those whose schemas propagate data.
    """
    if not schema.definition.has_data_propagation_function or len(schema.outputs) != 1:
        return None
    return evaluated(schema, inputs, attributes)


def evaluated(schema: Schema, inputs: Sequence[Known], attributes: Iterable[AttributeProto]) -> Tensor | None:
    """What the kernel of a node with one output makes of elements that are known; None where they are not."""
    kernel = STANDARD.find(schema.key, schema.section)
    if kernel is None or not (signature := signature_of(kernel)).injected <= {"allocate"}:
        return None
    try:
        arrays = [_shaped(known) if schema.key.op_type in _OF_SHAPE else known.array for known in inputs]
        if not arrays or any(a is None and known is not ABSENT for a, known in zip(arrays, inputs, strict=True)):
            return None
        padding = [None] * (0 if signature.variadic else len(signature.positional) - len(arrays))
        with np.errstate(all="ignore"):
            injected = dict.fromkeys(signature.injected, _allocate)
            return np.asarray(kernel(*arrays, *padding, **attribute_values(attributes, schema), **injected))
    except (ModelError, ValueError, TypeError, IndexError, ArithmeticError):
        return None  # what is wrong with the numbers shows when the model runs


def _allocate(shape: Sequence[int], dtype: DType) -> Tensor:
    """Room for elements that are worth to be carried. Raises ValueError for more."""
    if math.prod(shape) > _MOST_ELEMENTS:
        raise ValueError(f"{math.prod(shape)} elements are not carried")
    return np.empty(shape, dtype)


def _shaped(known: Known) -> Tensor | None:
    """An array of a known shape that takes no memory."""
    if not isinstance(known.type, TensorType) or known.type.shape is None:
        return None
    sizes: list[Any] = [size for size in known.type.shape if isinstance(size, int)]
    if len(sizes) < len(known.type.shape):
        return None
    return np.broadcast_to(np.zeros((), np.int8), sizes)
