"""Expressions over operators, written as text, and the steps of a plan that spell them.

    x * Clip(x + 3, 0, 6) / 6

Names stand for any value, the same one wherever they recur; numbers for constants of one element; ``+ - * / **`` for
Add, Sub, Mul, Div and Pow. Terms and factors match in either order. What differs only in spelling is the same: a / 4
and a * 0.25, a ** 2 and a * a, 1 / a and Reciprocal(a), bounds of Clip as inputs and as attributes.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.passes._rewrite import op_type
from onnxeval.plan import Step


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """An operator on the parts of an expression. `parsed` makes each once."""

    op: str
    parts: tuple[Tree, ...]


#: A name, a number, or an operator on such.
Tree: TypeAlias = "str | float | Call"

_OPERATORS = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow"}
#: Operators whose results have so many axes at least.
_LEAST_RANKS = {"Conv": 3, "ConvTranspose": 3, "MaxPool": 3, "AveragePool": 3, "Gemm": 2, "Flatten": 2}

#: Operators whose results have as many axes as any of their inputs.
_RANK_KEEPING = frozenset(
    {"Abs", "Add", "Cast", "Clip", "Div", "Dropout", "Erf", "Exp", "Identity", "Mul", "Neg", "Relu", "Sqrt", "Sub"}
)

_COMMUTATIVE = frozenset({"Add", "Mul"})


@cache
def parsed(text: str) -> Tree:
    """The tree of an expression."""
    return _tree(ast.parse(text, mode="eval").body)


def _tree(node: ast.expr) -> Tree:
    match node:
        case ast.BinOp():
            return Call(_OPERATORS[type(node.op)], (_tree(node.left), _tree(node.right)))
        case ast.Call(func=ast.Name(id=name)):
            return Call(name, tuple(_tree(argument) for argument in node.args))
        case ast.Name(id=name):
            return name
        case ast.Constant(value=float() | int() as value):
            return float(value)
    raise ValueError(f"a pattern has no {ast.unparse(node)}")


#: What stands in an expression for operators that no other spelling is without, besides their names.
_SIGNS = {"+": "Add", " - ": "Sub"}
_CALLED = r"(\w+)\("


def operators_of(text: str) -> frozenset[str]:
    """The operators that every spelling of an expression has. It need not be parsed for that."""
    return frozenset([*re.findall(_CALLED, text), *(op for sign, op in _SIGNS.items() if sign in text)])


class Match(NamedTuple):
    """What the names of an expression stand for, and the steps that spell it, the last one first.

    ``further`` are steps before the expression that what it becomes does as well.
    """

    names: Mapping[str, str]
    steps: tuple[Step, ...]
    further: list[Step]

    def only(self, op: str) -> Step:
        """The step of an operator that the expression has once."""
        (step,) = (step for step in self.steps if op_type(step) == op)
        return step


@dataclass(slots=True, eq=False)
class Matcher:
    """The steps of a plan by what they make."""

    constants: Mapping[str, Tensor]
    producers: Mapping[str, Step]
    readers: Counter[str]  # being an output of the plan counts too

    def find(self, text: str, root: Step) -> Match | None:
        """The steps that spell an expression and end in ``root``, where nobody else reads what they make between."""
        tree = parsed(text)
        assert isinstance(tree, Call)
        for names, steps in self._calls(tree, root, {}, ()):
            distinct = tuple({id(step): step for step in steps}.values())
            uses = Counter(name for step in distinct for name in step.inputs)
            inner = [name for step in distinct[1:] for name in step.outputs if name]
            if all(uses[name] == self.readers[name] for name in inner) and self._ranks_fit(distinct, inner):
                return Match(names, distinct, [])
        return None

    def _ranks_fit(self, steps: Sequence[Step], inner: Sequence[str]) -> bool:
        """Whether no constant of one element has axes that it may add to the result."""
        read = {name for step in steps for name in step.inputs}
        combined = {name for step in steps if not op_type(step).startswith(("Reduce", "Slice")) for name in step.inputs}
        numbers = [self.constants[name] for name in combined if name in self.constants]
        rank = max((value.ndim for value in numbers if value.size == 1), default=0)
        return rank == 0 or rank <= max(
            (self._least_rank(name) for name in read.difference(inner) if self._is_wide(name)), default=0
        )

    def _is_wide(self, name: str) -> bool:
        return name not in self.constants or self.constants[name].size != 1

    def _least_rank(self, name: str, depth: int = 8) -> int:
        """How many axes a value has at least; 0 where nothing says more."""
        if name in self.constants:
            return self.constants[name].ndim
        step = self.producers.get(name)
        if step is None or not depth:
            return 0
        operator = op_type(step)
        if operator in _LEAST_RANKS:
            return _LEAST_RANKS[operator]
        if operator == "MatMul":
            ranks = sorted(self._least_rank(read, depth - 1) for read in step.inputs)
            return max(ranks[1], 2) - 1 if ranks[1] else 0
        if operator in _RANK_KEEPING:
            return max(self._least_rank(read, depth - 1) for read in step.inputs if read)
        return 0

    def _matches(
        self, tree: Tree, name: str, names: Mapping[str, str], steps: tuple[Step, ...]
    ) -> Iterator[tuple[Mapping[str, str], tuple[Step, ...]]]:
        if isinstance(tree, str):
            if names.get(tree, name) == name and name:
                yield {**names, tree: name}, steps
        elif isinstance(tree, float):
            if self._is(name, tree):
                yield names, steps
        elif (step := self.producers.get(name)) is not None and not step.subgraphs:
            yield from self._calls(tree, step, names, steps)

    def _calls(
        self, tree: Call, step: Step, names: Mapping[str, str], steps: tuple[Step, ...]
    ) -> Iterator[tuple[Mapping[str, str], tuple[Step, ...]]]:
        if "broadcast" in step.attributes:  # before opset 7, and along any axis
            return
        steps = (*steps, step)
        operator, inputs = op_type(step), step.inputs
        while inputs and not inputs[-1]:  # absent ones at the end
            inputs = inputs[:-1]
        for op, parts in _spellings(tree):
            if op != operator:
                continue
            if op == "Clip" and "min" in step.attributes:  # before opset 11
                if (step.attributes["min"], step.attributes["max"]) == parts[1:]:
                    yield from self._matches(parts[0], inputs[0], names, steps)
            elif len(inputs) == len(parts) or (op.startswith("Reduce") and len(inputs) == 2):
                yield from self._parts(parts, inputs, names, steps)
                if op in _COMMUTATIVE:
                    yield from self._parts(parts, inputs[::-1], names, steps)

    def _parts(
        self, parts: Sequence[Tree], inputs: Sequence[str], names: Mapping[str, str], steps: tuple[Step, ...]
    ) -> Iterator[tuple[Mapping[str, str], tuple[Step, ...]]]:
        if not parts:
            yield names, steps
            return
        for found, with_part in self._matches(parts[0], inputs[0], names, steps):
            yield from self._parts(parts[1:], inputs[1:], found, with_part)

    def _is(self, name: str, number: float) -> bool:
        value = self.constants.get(name)
        if value is None or value.size != 1 or value.dtype.kind not in "fi":
            return False
        return math.isclose(float(value.item()), number, rel_tol=_CLOSE.get(value.dtype, 0))


#: How far a number may be off that was rounded to its type.
_CLOSE = {np.dtype(np.float16): 1e-3, np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}


@cache
def _spellings(tree: Call) -> tuple[tuple[str, tuple[Tree, ...]], ...]:
    """The operators and parts that mean the same as an operator on parts."""
    written = (tree.op, tree.parts)
    match tree:
        case Call("Div", (part, float(divisor))):
            return written, ("Mul", (part, 1 / divisor))
        case Call("Mul", (part, float(factor))):
            return written, ("Div", (part, 1 / factor))
        case Call("Pow", (part, 2.0)):
            return written, ("Mul", (part, part))
        case Call("Div", (1.0, part)):
            return written, ("Reciprocal", (part,))
    return (written,)
