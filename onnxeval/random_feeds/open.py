"""Sizes for the dimensions that a model leaves open: those given, those that given values have, and 1."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from onnxeval.feeding import Input
from onnxeval.sizes import check_names, open_sizes
from onnxeval.values import OptionalType, SequenceType, TensorType, Value, ValueType

_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


class OpenSizes:
    """``sizes`` holds all of them by name, ``assumed`` those that nobody gave."""

    def __init__(
        self, proto: Any, inputs: Iterable[Input], given: Mapping[str, Value], sizes: Mapping[str, int]
    ) -> None:
        check_names(proto.graph, sizes)
        self._known = {**_told_by(inputs, given), **sizes}
        self._open = [name for name in open_sizes(proto.graph) if name not in self._known]
        self.assume({})

    def assume(self, sizes: Mapping[str, int]) -> None:
        """Take these for the open ones, 1 for others; names that are sums of others follow from those."""
        plain = [name for name in self._open if _names_in(name) is None]
        values = {**self._known, **{name: sizes.get(name, 1) for name in plain}}
        self.assumed = {name: values[name] for name in plain}
        for name in self._open:
            if (names := _names_in(name)) is not None:
                for other in names - values.keys():
                    self.assumed[other] = values[other] = sizes.get(other, 1)
                values[name] = max(_computed(name, values), 0)
        self.sizes = values

    def placed(self, name: str, value_type: ValueType | None) -> ValueType | None:
        """The type of an input with sizes for what its dimensions leave open."""
        match value_type:
            case TensorType(dtype, shape) if shape is not None:
                sizes = [
                    size if isinstance(size, int) else self.sizes.get(size or f"{name}[{place}]", 1)
                    for place, size in enumerate(shape)
                ]
                return TensorType(dtype, tuple(sizes))
            case SequenceType(element):
                return SequenceType(self.placed(name, element))
            case OptionalType(element):
                return OptionalType(self.placed(name, element))
        return value_type


def _told_by(inputs: Iterable[Input], given: Mapping[str, Value]) -> dict[str, int]:
    """The sizes that given values have where their inputs leave them open."""
    sizes: dict[str, int] = {}
    for entry in inputs:
        value, declared = given.get(entry.name), entry.type
        if isinstance(value, np.ndarray) and isinstance(declared, TensorType) and declared.shape is not None:
            for place, (size, dimension) in enumerate(zip(value.shape, declared.shape, strict=False)):
                if not isinstance(dimension, int):
                    sizes.setdefault(dimension or f"{entry.name}[{place}]", size)
    return sizes


def _names_in(text: str) -> frozenset[str] | None:
    """The names in ``past + 1``; None for what is no sum or product of names and numbers, a lone name included."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if not isinstance(tree, ast.BinOp):
        return None
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.BinOp):
            if type(node.op) not in _OPERATORS:
                return None
        elif isinstance(node, ast.Constant):
            if type(node.value) is not int:
                return None
        elif not isinstance(node, (ast.operator, ast.expr_context)):
            return None
    return frozenset(names) or None


def _computed(text: str, sizes: Mapping[str, int]) -> int:
    def value(node: ast.expr) -> int:
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        return sizes[node.id] if isinstance(node, ast.Name) else int(ast.literal_eval(node))

    try:
        return value(ast.parse(text.strip(), mode="eval").body)
    except (ArithmeticError, RecursionError):
        return 1
