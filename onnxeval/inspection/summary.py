"""A model in short: what it takes and gives, what it is made of, and what here cannot run it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from onnxeval.checks.held import SparseTensor, tensors_of
from onnxeval.checks.recording import Recorded
from onnxeval.checks.rules import Finding
from onnxeval.checks.whole import Model
from onnxeval.dtypes import BY_ELEMENT_TYPE, STRING, name_of
from onnxeval.inspection.cost import size_in_bytes


@dataclass(frozen=True, slots=True)
class Parameters:
    """The tensors of one element type that a model holds."""

    dtype: str
    tensors: int
    elements: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """A function of the model's own, and how many nodes call it."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: int
    calls: int


@dataclass(frozen=True, slots=True)
class Summary:
    """``operators`` counts the nodes of every graph and function by operator and version, most frequent first.

    ``not_run`` are the findings that tell which nodes have nothing to run them, ``errors`` the number of others.
    """

    opsets: dict[str, int]
    parameters: tuple[Parameters, ...]
    operators: tuple[tuple[str, int], ...]
    functions: tuple[FunctionSummary, ...]
    not_run: tuple[Finding, ...]
    errors: int

    @property
    def nodes(self) -> int:
        return sum(count for _, count in self.operators)


def summarise(recorded: Recorded) -> Summary:
    """What there is to tell of a model."""
    model = recorded.model
    not_run = tuple(finding for finding in recorded.findings if finding.rule == "evaluation/no-kernel")
    return Summary(
        opsets={domain or "ai.onnx": version for domain, version in model.imports.versions.items()},
        parameters=_parameters(model),
        operators=_operators(model),
        functions=_functions(model),
        not_run=not_run,
        errors=sum(finding.severity == "error" for finding in recorded.findings),
    )


def _parameters(model: Model) -> tuple[Parameters, ...]:
    found: dict[str, list[int]] = {}
    for scope in model.scopes():
        for held in tensors_of(scope):
            if isinstance(held, SparseTensor):
                continue
            tensor = held.proto
            dtype, count = BY_ELEMENT_TYPE.get(tensor.data_type), math.prod(tensor.dims)
            if dtype is None or count < 0:
                continue
            size = sum(map(len, tensor.string_data)) if dtype == STRING else size_in_bytes(dtype, count)
            totals = found.setdefault(name_of(dtype), [0, 0, 0])
            for place, number in enumerate((1, count, size)):
                totals[place] += number
    ordered = sorted(found.items(), key=lambda entry: -entry[1][2])
    return tuple(Parameters(name, *totals) for name, totals in ordered)


def _operators(model: Model) -> tuple[tuple[str, int], ...]:
    counts: Counter[str] = Counter()
    for scope in model.scopes():
        for node in scope.nodes:
            schema = node.schema
            counts[node.operator if schema is None else schema.label] += 1
    return tuple(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _functions(model: Model) -> tuple[FunctionSummary, ...]:
    calls = Counter(node.called for scope in model.scopes() for node in scope.nodes if node.called is not None)
    return tuple(
        FunctionSummary(
            function.label,
            tuple(function.scope.inputs),
            tuple(function.scope.outputs),
            len(function.scope.nodes),
            calls[function],
        )
        for function in model.functions
    )
