"""How a graph attribute or a function reaches a kernel."""

from __future__ import annotations

from typing import Protocol

from onnxeval.values import Value, ValueType


class Body(Protocol):
    """A sub-graph as a function of its inputs that returns a tuple."""

    @property
    def output_types(self) -> tuple[ValueType | None, ...]:
        """The declared types of the outputs, None where there is no declaration."""

    @property
    def n_inputs(self) -> int:
        """How many inputs the graph lists."""

    def __call__(self, *inputs: Value) -> tuple[Value, ...]: ...


def call_function(*inputs: Value, body: Body) -> tuple[Value, ...]:
    """The kernel of every function: what the body gives."""
    return body(*inputs)
