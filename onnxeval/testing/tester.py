"""One job in this process: read its data, run an engine, compare."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from onnxeval.comparing import Comparison, Tolerance, compare
from onnxeval.dtypes import BFLOAT16, is_float
from onnxeval.errors import OnnxEvalError
from onnxeval.graph import constants_of
from onnxeval.loader import load_model
from onnxeval.tensors import type_from
from onnxeval.testing.engines import ENGINES, Engine
from onnxeval.testing.jobs import Data, Job, Outcome, Status
from onnxeval.testing.stored import read_data
from onnxeval.values import EmptyOptional, Value, ValueType

#: What onnx's own runner grants bfloat16: two units in the last place.
_RTOL_OF_BFLOAT16 = 2**-6


class Interface(NamedTuple):
    """The inputs that a model needs, all its inputs, and its outputs, by name with their types."""

    required: dict[str, ValueType | None]
    inputs: dict[str, ValueType | None]
    outputs: dict[str, ValueType | None]

    def names_for(self, count: int) -> list[str]:
        """The names of so many inputs: of those without a default, where that is enough of them."""
        return list(self.required if count <= len(self.required) else self.inputs)


def interface_of(model: str | bytes) -> Interface:
    """What a model takes and gives. Raises ModelError where it cannot be read."""
    graph = load_model(model).proto.graph
    given = set(constants_of(graph))
    inputs = {value.name: type_from(value.type) for value in graph.input}
    required = {name: value_type for name, value_type in inputs.items() if name not in given}
    return Interface(required, inputs, {value.name: type_from(value.type) for value in graph.output})


class Tester:
    """An engine, and what to do with it."""

    def __init__(self, engine: str) -> None:
        self._engine: Engine = ENGINES[engine]

    def test(self, job: Job) -> Outcome:
        """Run a job. Whatever happens is an outcome."""
        begin = perf_counter()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            status, message, comparisons = self._verdict(job)
        if job.known:
            status, message = _known(job, status)
        return Outcome(job, status, perf_counter() - begin, message, comparisons)

    def _verdict(self, job: Job) -> tuple[Status, str, tuple[Comparison, ...]]:
        comparisons: list[Comparison] = []
        try:
            interface = interface_of(job.model)
            for data in job.data:
                held = data if isinstance(data, Data) else read_data(data, interface.required, interface.outputs)
                names = interface.names_for(len(held.inputs))
                feeds = {n: v for n, v in zip(names, held.inputs, strict=False) if not _is_absent(v)}
                results = self._engine(job.model, feeds)
                comparisons = list(_compared(list(interface.outputs), results, held.expected, job))
                if wrong := [c for c in comparisons if not c.agrees]:
                    where = f"{data}: " if isinstance(data, str) else ""
                    return "failed", where + "; ".join(map(_summary, wrong)), tuple(comparisons)
        except OnnxEvalError as error:
            return "error", str(error), ()
        except Exception as error:  # engines raise what they like
            return "error", f"{type(error).__name__}: {error}".strip(), ()
        return "passed", "", tuple(comparisons)


def _known(job: Job, status: Status) -> tuple[Status, str]:
    if status == "passed":
        return "failed", f"it passes, though its data is said to be wrong: {job.known}"
    return ("known", job.known) if status == "failed" else (status, job.known)


def _is_absent(value: Value) -> bool:
    return value is None or isinstance(value, EmptyOptional)


def _compared(
    names: Sequence[str], results: Sequence[Value], expected: Sequence[Value], job: Job
) -> Iterator[Comparison]:
    if len(results) != len(expected):
        yield Comparison("outputs", reason=f"there are {len(results)} outputs, {len(expected)} are expected")
        return
    for name, value, other in zip(names, results, expected, strict=False):
        if job.only_form:
            yield _same_form(name, value, other)
        else:
            yield compare(name, value, other, _tolerance(job.tolerance, other))


def _same_form(name: str, value: Value, expected: Value) -> Comparison:
    one, other = np.asarray(value), np.asarray(expected)
    if (one.dtype, one.shape) == (other.dtype, other.shape):
        return Comparison(name, count=one.size)
    return Comparison(
        name, reason=f"{name} is {one.dtype}{list(one.shape)}, {other.dtype}{list(other.shape)} is expected"
    )


def _tolerance(wanted: Tolerance, expected: Value) -> Tolerance:
    """Tolerances are for floats: an index that is nearly right is wrong."""
    dtype = expected.dtype if isinstance(expected, np.ndarray) else None
    if dtype is not None and not is_float(dtype) and dtype.kind != "c":
        return Tolerance()
    if dtype == BFLOAT16 and wanted.ulp is None:
        return Tolerance(max(wanted.rtol or 0, _RTOL_OF_BFLOAT16), wanted.atol)
    return wanted


def _summary(comparison: Comparison) -> str:
    if comparison.reason:
        return comparison.reason
    apart = "" if comparison.max_abs is None else f", by {comparison.max_abs:.3g} at most"
    return f"{comparison.name} differs in {comparison.mismatching} of {comparison.count} elements{apart}"
