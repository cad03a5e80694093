"""A run held against another side, value by value, and where in the graph the difference begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from onnxeval.comparing import Comparison, Tolerance, compare
from onnxeval.dtypes import is_float, name_of
from onnxeval.errors import InputError, OnnxEvalError
from onnxeval.executor import evaluate, execute
from onnxeval.limits import Limits, Run
from onnxeval.model import Model
from onnxeval.passes import Known, optimise
from onnxeval.plan import Plan, Step, with_releases
from onnxeval.values import EmptyOptional, Value, type_of
from onnxeval.versus.sides import ModelSide, Side, engine_side


@dataclass(frozen=True, slots=True)
class Row:
    """One value. ``node`` makes it, or is "" for a constant of the model; ``type`` is what it is here.

    ``comparison`` is None where there is none, and ``note`` says why, or what it took to compare.
    """

    name: str
    node: str
    type: str
    comparison: Comparison | None
    note: str = ""

    @property
    def differs(self) -> bool:
        return self.comparison is not None and not self.comparison.agrees


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of a node, or what its sub-graphs read: "compared", "given", "constant", "not compared" or "not shown".

    It is not compared where one side has none, and not shown where nobody asked for it.
    """

    name: str
    state: str
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A value that differs, and what its node was given.

    ``alone`` holds what the node gives here on the other side's inputs against the other side's value: what it differs
    by there is its own doing. It is None where those inputs are not known.
    """

    row: Row
    operands: tuple[Operand, ...]
    alone: Comparison | None


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict. ``rows`` are in the order in which nodes run, ``extra`` the values that only the other side has.

    ``first`` is the first value of a node that differs, ``own`` the first that does on the other side's inputs too;
    ``all_alone`` says whether the nodes of all that differ, as far as ``own``, could be run on those.
    """

    other: str
    version: str
    rows: tuple[Row, ...]
    extra: tuple[str, ...]
    notes: tuple[str, ...]
    first: Place | None
    own: Place | None
    all_alone: bool

    @property
    def agrees(self) -> bool:
        return not any(row.differs for row in self.rows)


def versus(
    model: Model,
    feeds: Mapping[str, Value],
    results: Mapping[str, Value],
    other: str | Model,
    tolerance: Callable[[str], Tolerance] = lambda _name: Tolerance(),
    *,
    reference: bool = False,
    seed: int | None = None,
    limits: Limits | None = None,
) -> Report:
    """What `Model.run` gave for these feeds against "onnxruntime", "reference" (onnx's own), or another model.

    Values of other models go by their names; they run as ``reference``, ``seed`` and ``limits`` say. ``tolerance`` is
    that of a name. Raises InputError where nothing can be compared, MissingExtra for an engine that is not installed,
    EngineError for one that cannot run the model.
    """
    graph = _Graph(model, feeds, results)
    names = graph.comparable(constants=isinstance(other, Model))
    if not names:
        raise InputError(f"nothing to compare: no node of the model makes {', '.join(results) or 'anything'}")
    opened: AbstractContextManager[Side]
    if isinstance(other, Model):
        opened = nullcontext(
            ModelSide(other, model, names, feeds, {"reference": reference, "seed": seed, "limits": limits})
        )
    else:
        opened = engine_side(other, model, names, feeds)
    with opened as side:
        rows = [_row(name, graph.label(name), results[name], side, tolerance(name)) for name in names]
        if all(row.comparison is None for row in rows):
            reasons = dict.fromkeys(row.note for row in rows)
            raise InputError(f"nothing can be compared: {', '.join(names)}: {'; '.join(reasons)}")
        first, own, all_alone = _Search(graph, rows, side, tolerance, reference=reference, limits=limits).places()
        return Report(
            side.label, side.version, tuple(rows), tuple(side.extra), tuple(side.notes), first, own, all_alone
        )


def _row(name: str, node: str, value: Value, side: Side, tolerance: Tolerance) -> Row:
    theirs, reason = side.value(name)
    value_type = "empty optional" if value is None or isinstance(value, EmptyOptional) else str(type_of(value))
    if reason:
        return Row(name, node, value_type, None, reason)
    note = f"{name_of(theirs.dtype)} in {side.label}" if _are_floats_of_two_types(value, theirs) else ""
    return Row(name, node, value_type, compare(name, *_alike(value, theirs), tolerance), note)


def _are_floats_of_two_types(value: Value, theirs: Value) -> bool:
    arrays = isinstance(value, np.ndarray) and isinstance(theirs, np.ndarray)
    return arrays and value.dtype != theirs.dtype and is_float(value.dtype) and is_float(theirs.dtype)


def _alike(value: Value, theirs: Value) -> tuple[Value, Value]:
    """Both values, floats of two types as one that holds both."""
    if not _are_floats_of_two_types(value, theirs):
        return value, theirs
    wide = np.float64 if np.float64 in (value.dtype, theirs.dtype) else np.float32
    return value.astype(wide), theirs.astype(wide)


class _Graph:
    """Which node makes each value, in the order in which they run."""

    def __init__(self, model: Model, feeds: Mapping[str, Value], results: Mapping[str, Value]) -> None:
        self.model = model
        self.feeds = feeds
        self.plan = model.plan(list(results), feeds, reference=True)
        self.makers = {name: step for step in self.plan.steps for name in step.outputs if name}
        self.results = results

    def comparable(self, *, constants: bool) -> list[str]:
        """The results that somebody else may give otherwise, in order."""
        outputs = {output.name for output in self.model.outputs}
        place = {name: number for number, name in enumerate(self.makers)}
        free = [
            name
            for name in self.results
            if name not in place and name not in self.feeds and (constants or name in outputs)
        ]
        return free + sorted((name for name in self.results if name in place), key=place.__getitem__)

    def label(self, name: str) -> str:
        step = self.makers.get(name)
        return "" if step is None else step.label


def operands_of(step: Step) -> list[str]:
    """What a step reads, its sub-graphs included."""
    captured = (name for body in step.subgraphs.values() for name in body.captures)
    return list(dict.fromkeys(filter(None, (*step.inputs, *captured))))


class _Search:
    """Looks for the nodes where differences begin."""

    def __init__(
        self,
        graph: _Graph,
        rows: Sequence[Row],
        side: Side,
        tolerance: Callable[[str], Tolerance],
        *,
        reference: bool,
        limits: Limits | None,
    ) -> None:
        self._graph = graph
        self._rows = {row.name: row for row in rows}
        self._side = side
        self._tolerance = tolerance
        self._reference = reference
        self._limits = limits

    def places(self) -> tuple[Place | None, Place | None, bool]:
        """The first value that differs, the first that does on the other side's inputs too, whether all were tried."""
        first: Place | None = None
        all_alone = True
        for row in self._rows.values():
            if not row.differs or not row.node:
                continue
            place = Place(row, tuple(self._operands(row)), self._alone(row))
            first = first or place
            all_alone = all_alone and place.alone is not None
            if place.alone is not None and not place.alone.agrees:
                return first, place, all_alone
        return first, None, all_alone

    def _operands(self, row: Row) -> Iterator[Operand]:
        for name in operands_of(self._graph.makers[row.name]):
            compared = self._rows.get(name)
            if compared is not None and compared.comparison is not None:
                yield Operand(name, "compared", compared.comparison)
            elif name in self._graph.feeds:
                yield Operand(name, "given")
            elif name in self._graph.plan.constants:
                yield Operand(name, "constant")
            else:
                yield Operand(name, "not compared" if compared is not None else "not shown")

    def _alone(self, row: Row) -> Comparison | None:
        step = self._graph.makers[row.name]
        names = operands_of(step)
        given: dict[str, Value] = {}
        for name in names:
            if name in self._graph.feeds:
                given[name] = self._graph.feeds[name]
            elif name not in self._graph.plan.constants:
                if name not in self._rows:
                    return None
                theirs, reason = self._side.value(name)
                if reason:
                    return None
                given[name] = self._as_ours(name, theirs)
        theirs, _ = self._side.value(row.name)
        try:
            with np.errstate(all="ignore"):
                value = execute(self._cut(step, row.name, tuple(given)), given, Run(self._limits))[row.name]
        except OnnxEvalError:
            return None
        return compare(row.name, *_alike(value, theirs), self._tolerance(row.name))

    def _as_ours(self, name: str, theirs: Value) -> Value:
        ours = self._graph.results[name]
        return theirs.astype(ours.dtype) if _are_floats_of_two_types(ours, theirs) else theirs

    def _cut(self, step: Step, output: str, inputs: tuple[str, ...]) -> Plan:
        """The plan of one node."""
        whole = self._graph.plan
        plan = Plan(
            inputs=inputs,
            outputs=(output,),
            output_types=(None,),
            constants={name: whole.constants[name] for name in operands_of(step) if name in whole.constants},
            captures=(),
            steps=with_releases([step], {output}),
        )
        if self._reference:
            return plan
        return optimise(plan, Known(evaluate, fast_math=self._graph.model.fast_math))
