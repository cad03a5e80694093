"""Reverse-mode differentiation: what was computed from what, and the way back.

A `Variable` is a value that remembers the `Node` that made it, where a leaf had a part in that. `apply` runs the newest
kernel of an operator on variables. Rules, which tell what the gradients of a node's inputs are, are written with it:
what a rule computes is remembered like anything else, and gradients have gradients in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from onnxeval.dtypes import DType, Tensor, is_integer
from onnxeval.ops._allocate import Allocate
from onnxeval.registry import STANDARD, Kernel, OpKey, signature_of
from onnxeval.values import Value

#: The sections of the operators that rules are written with.
_SECTIONS = ("generator", "logical", "math", "nn", "reduction", "tensor")


class Variable:
    """A value, and the node that made it with its place among the outputs; None where no leaf had a part in it."""

    __slots__ = ("maker", "place", "tape", "value")

    def __init__(self, tape: Tape, value: Value, maker: Node | None = None, place: int = 0) -> None:
        self.tape = tape
        self.value = value
        self.maker = maker
        self.place = place

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(self.value.size)

    @property
    def dtype(self) -> DType:
        dtype: DType = self.value.dtype
        return dtype

    def __add__(self, other: Operand) -> Variable:
        return apply("Add", self, self.as_like(other))

    def __sub__(self, other: Operand) -> Variable:
        return apply("Sub", self, self.as_like(other))

    def __rsub__(self, other: float) -> Variable:
        return apply("Sub", self.as_like(other), self)

    def __mul__(self, other: Operand) -> Variable:
        return apply("Mul", self, self.as_like(other))

    def __truediv__(self, other: Operand) -> Variable:
        return apply("Div", self, self.as_like(other))

    def __rtruediv__(self, other: float) -> Variable:
        return apply("Div", self.as_like(other), self)

    def __neg__(self) -> Variable:
        return apply("Neg", self)

    def __lt__(self, other: Operand) -> Variable:
        return apply("Less", self, self.as_like(other))

    def __gt__(self, other: Operand) -> Variable:
        return apply("Greater", self, self.as_like(other))

    __radd__ = __add__
    __rmul__ = __mul__

    def as_like(self, other: Operand) -> Variable:
        """A number as a tensor of rank 0 of this variable's type."""
        return other if isinstance(other, Variable) else self.tape.constant(np.asarray(other, self.dtype))


Operand: TypeAlias = Variable | float
#: What an operator is applied to: arrays are constants, None stands where an optional input is absent.
Input: TypeAlias = Variable | Tensor | None
#: For each input of a node what computes its gradient; None where the gradient is zero.
Gradients: TypeAlias = Sequence[Callable[[], Variable] | None]
#: Makes `Gradients` of a node and the gradient of each of its outputs, None where nothing came back.
Rule: TypeAlias = Callable[..., Gradients]


class Node:
    """An operator as it was applied: its inputs (None where absent), its attributes and what came out."""

    __slots__ = ("attributes", "inputs", "key", "label", "order", "tape", "values")

    def __init__(
        self,
        tape: Tape,
        key: OpKey | None,
        label: str,
        inputs: tuple[Variable | None, ...],
        attributes: Mapping[str, Any],
        values: tuple[Value, ...],
    ) -> None:
        self.tape = tape
        self.key = key
        self.label = label
        self.inputs = inputs
        self.attributes = attributes
        self.values = values
        self.order = tape.next_order()

    @property
    def present(self) -> list[Variable]:
        """The inputs that are there."""
        return [given for given in self.inputs if given is not None]

    def output(self, place: int = 0) -> Variable:
        """An output. Numbers in steps have no derivative: integers and booleans remember nothing."""
        value = self.values[place]
        stepped = isinstance(value, np.ndarray) and (value.dtype == np.bool_ or is_integer(value.dtype))
        return Variable(self.tape, value, None if stepped or value is None else self, place)

    def rerun(self, inputs: Sequence[Value], changes: Mapping[str, Any]) -> tuple[Value, ...]:
        """What the operator gives for other inputs, with some attributes changed."""
        assert self.key is not None
        return self.tape.run(STANDARD[self.key], inputs, {**self.attributes, **changes})

    def refusal(self, detail: str = "here") -> ValueError:
        """What to raise where there is no way back through this node, or none to a part of it."""
        return ValueError(f"{self.label} has no derivative {detail}, and what is to be differentiated depends on it")

    def refuse(self, detail: str) -> Callable[[], Variable]:
        """In `Gradients`, an input without a derivative."""

        def gradient() -> Variable:
            raise self.refusal(detail)

        return gradient


class Tape:
    """Makes variables, and goes back from them. ``recording`` can be switched off where nobody will go back."""

    def __init__(self, allocate: Allocate) -> None:
        self.allocate = allocate
        self.recording = True
        self._orders = 0

    def next_order(self) -> int:
        self._orders += 1
        return self._orders

    @contextmanager
    def record_if(self, recording: bool) -> Iterator[None]:
        """Switch recording on or off for a while."""
        before, self.recording = self.recording, recording
        try:
            yield
        finally:
            self.recording = before

    def constant(self, value: Value) -> Variable:
        """A value that depends on no leaf."""
        return Variable(self, value)

    def leaf(self, source: Variable) -> Variable:
        """A variable of its own with the value of another one, which is differentiated with respect to."""
        return Node(self, newest("Identity"), "Identity", (source,), {}, (source.value,)).output()

    def record(
        self,
        key: OpKey | None,
        label: str,
        inputs: Iterable[Variable | None],
        attributes: Mapping[str, Any],
        values: tuple[Value, ...],
    ) -> tuple[Variable, ...]:
        """The outputs of an operator that was run, remembering it where an input remembers something."""
        inputs = tuple(inputs)
        if not self.recording or all(given is None or given.maker is None for given in inputs):
            return tuple(map(self.constant, values))
        node = Node(self, key, label, inputs, attributes, values)
        return tuple(node.output(place) for place in range(len(values)))

    def run(self, kernel: Kernel, inputs: Sequence[Value], attributes: Mapping[str, Any]) -> tuple[Value, ...]:
        """What a kernel gives."""
        supplied = {"allocate": self.allocate} if "allocate" in signature_of(kernel).injected else {}
        results = kernel(*inputs, **attributes, **supplied)
        several = results if isinstance(results, tuple) else (results,)
        return tuple(np.asarray(x) if isinstance(x, np.generic) else x for x in several)

    def pull(
        self, seeds: Sequence[tuple[Variable, Variable]], leaves: Sequence[Variable | None]
    ) -> list[Variable | None]:
        """The gradients of ``leaves``, given pairs of variables made from them and their gradients.

        None where nothing comes back. Raises ValueError where a node on the way has no derivative.
        """
        ends = {_mark(leaf) for leaf in leaves if leaf is not None}
        path = _between(ends, [target for target, _ in seeds])
        found: dict[tuple[Node | None, int], Variable] = {}

        def add(target: Variable, gradient: Variable) -> None:
            mark = _mark(target)
            found[mark] = found[mark] + gradient if mark in found else gradient

        def depends(given: Variable | None) -> bool:
            return given is not None and (_mark(given) in ends or given.maker in path)

        for target, gradient in seeds:
            if depends(target):
                add(target, gradient)
        for node in reversed(path):
            given = [found.pop((node, place), None) for place in range(len(node.values))]
            if all(gradient is None for gradient in given):
                continue
            wayback = rule_for(node.key)
            if wayback is None:
                raise node.refusal()
            for source, gradient_of in zip(node.inputs, wayback(node, *given), strict=True):
                if source is not None and gradient_of is not None and depends(source):
                    add(source, gradient_of())
        return [None if leaf is None else found.get(_mark(leaf)) for leaf in leaves]


def _mark(variable: Variable) -> tuple[Node | None, int]:
    return variable.maker, variable.place


def _between(ends: set[tuple[Node | None, int]], targets: Iterable[Variable]) -> dict[Node, None]:
    """The nodes on the ways from the ends to the targets, in the order they were made."""
    todo = [target for target in targets if _mark(target) not in ends]
    seen: set[Node] = set()
    while todo:
        maker = todo.pop().maker
        if maker is not None and maker not in seen:
            seen.add(maker)
            todo += [given for given in maker.inputs if given is not None and _mark(given) not in ends]
    path: dict[Node, None] = {}
    for node in sorted(seen, key=lambda each: each.order):
        if any(given is not None and (_mark(given) in ends or given.maker in path) for given in node.inputs):
            path[node] = None
    return path


def apply(op_type: str, *inputs: Input, **attributes: Any) -> Variable:
    """The first output of the newest version of an operator; every attribute it has is spelled out."""
    return apply_all(op_type, *inputs, **attributes)[0]


def apply_all(op_type: str, *inputs: Input, **attributes: Any) -> tuple[Variable, ...]:
    """All outputs of the newest version of an operator, as `apply`."""
    tape = next(given.tape for given in inputs if isinstance(given, Variable))
    key = newest(op_type)
    kernel = STANDARD[key]
    absent = (None,) * (len(signature_of(kernel).positional) - len(inputs))
    given = [tape.constant(x) if isinstance(x, np.ndarray) else x for x in inputs + absent]
    values = tape.run(kernel, [None if x is None else x.value for x in given], attributes)
    return tape.record(key, str(key), given, attributes, values)


@cache
def newest(op_type: str) -> OpKey:
    """The newest version of an operator that has a kernel."""
    for section in _SECTIONS:
        STANDARD.load_section(section)
    return OpKey("", op_type, STANDARD.versions("", op_type)[-1])


# Rules

_RULES: dict[str, dict[int, Rule]] = {}


def rule(op_type: str, *versions: int) -> Callable[[Rule], Rule]:
    """Register a rule for the kernels that serve these versions: it holds for every version they serve."""

    def register(function: Rule) -> Rule:
        for version in versions:
            _RULES.setdefault(op_type, {})[version] = function
        return function

    return register


@cache
def rule_for(key: OpKey | None) -> Rule | None:
    """The rule that serves a version of an operator: one that is registered for the same kernel."""
    if key is None or key.domain or key not in STANDARD:
        return None
    for version, function in _RULES.get(key.op_type, {}).items():
        if STANDARD.get(OpKey("", key.op_type, version)) is STANDARD[key]:
            return function
    return None
