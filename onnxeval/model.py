"""A model to run: ``load(path).run({"x": array})``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from onnx import ModelProto, ValueInfoProto

from onnxeval.adaptive import Adaptive, Kind, kind_of
from onnxeval.compiler import Compiler
from onnxeval.dtypes import DType
from onnxeval.errors import InputError, ModelError
from onnxeval.executor import evaluate, execute
from onnxeval.external import Files
from onnxeval.feeding import check_feeds
from onnxeval.graph import constants_of, known_names
from onnxeval.limits import Limits, Run
from onnxeval.loader import Loaded, load_model
from onnxeval.memory import keep_freed_memory, uncollected
from onnxeval.observe import Observer, unobserved
from onnxeval.passes import Known, optimise
from onnxeval.plan import Plan
from onnxeval.registry import STANDARD, Registry
from onnxeval.results import are_declared, contradiction, sizes_of
from onnxeval.tensors import type_from
from onnxeval.threads import heed_environment
from onnxeval.values import Dimension, EmptyOptional, TensorType, Value, ValueType

#: How many kinds of feeds and results a model remembers.
_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Declared:
    """An input or output as the model declares it; ``optional`` inputs have an initializer for a default."""

    name: str
    type: ValueType | None
    optional: bool = False

    @property
    def dtype(self) -> DType | None:
        """The element type of a tensor; None for other values and where it is not declared."""
        return self.type.dtype if isinstance(self.type, TensorType) else None

    @property
    def shape(self) -> tuple[Dimension, ...] | None:
        """Sizes, symbolic names and None for unknown ones; None where the rank is not declared."""
        return self.type.shape if isinstance(self.type, TensorType) else None


class Model:
    """An ONNX model, compiled on demand for the outputs asked for.

    ``inputs`` and ``outputs`` are what the graph declares, ``values`` the names of everything in the top-level
    graph, ``warnings`` what a user should know though the model runs. ``source`` is what messages call it: the path of
    its file; ``folders`` are those that its external data may lie in. With ``fast_math`` it runs on kernels that are
    less exact where they are faster.
    """

    def __init__(self, loaded: Loaded, registry: Registry = STANDARD, *, fast_math: bool = False) -> None:
        self.proto = loaded.proto
        self.source = loaded.source
        self.folders = loaded.folders
        self.fast_math = fast_math
        graph = self.proto.graph
        self._compiler = Compiler(self.proto, Files(loaded.folders, loaded.held), registry)
        initialized = set(constants_of(graph))
        self.inputs = tuple(_declared(v, optional=v.name in initialized) for v in graph.input if v.name)
        self.outputs = tuple(_declared(value) for value in graph.output if value.name)
        self._plans: dict[tuple[tuple[str, ...], frozenset[str], bool], Plan] = {}
        self._adaptives: dict[int, Adaptive] = {}  # by the identity of their plans, which live as long
        self._usual: dict[Kind, Adaptive] = {}  # what runs kinds of feeds that were looked at, for all outputs
        self._contradictions: dict[str, str] = {}
        self._seen: set[object] = set()  # types and shapes of feeds and results that were looked at

    def __repr__(self) -> str:
        inputs, outputs = (
            ", ".join(f"{entry.name} {entry.type or ''}".rstrip() for entry in entries)
            for entries in (self.inputs, self.outputs)
        )
        return f"<Model: {inputs or 'nothing'} -> {outputs or 'nothing'}>"

    @cached_property
    def values(self) -> tuple[str, ...]:
        graph = self.proto.graph
        given = dict.fromkeys([*(entry.name for entry in self.inputs), *filter(None, constants_of(graph))])
        return tuple(known_names(graph.node, given))

    @property
    def warnings(self) -> list[str]:
        notes = list(self._compiler.notes)
        if self.proto.training_info:
            notes.append("the model's training_info is ignored: only its inference graph runs")
        nameless = sum(
            not value.name for values in (self.proto.graph.input, self.proto.graph.output) for value in values
        )
        if nameless:
            notes.append(f"{nameless} of the graph's inputs and outputs have no name: they are ignored")
        return [*notes, *self._contradictions.values()]

    def made_by(self, operator: str) -> list[str]:
        """The values of the top-level graph that nodes of this operator make, in the graph's order."""
        return [name for node in self.proto.graph.node if node.op_type == operator for name in node.output if name]

    def plan(self, outputs: Sequence[str] | None = None, fed: Iterable[str] = (), *, reference: bool = False) -> Plan:
        """The compiled plan for these outputs; ``fed`` names the inputs that will be given.

        With ``reference`` every node of the model is a step of its own, run by its readable kernel.
        """
        if isinstance(outputs, str):
            raise InputError(f'outputs are a list of names, not the text "{outputs}"', hint=f'outputs=["{outputs}"]')
        names = tuple(output.name for output in self.outputs) if outputs is None else tuple(outputs)
        open_constants = frozenset(i.name for i in self.inputs if i.optional).intersection(fed)
        key = (names, open_constants, reference)
        if key not in self._plans:
            if outputs is not None:
                self._refuse_unknown(names)
            with uncollected():
                plan = self._compiler.compile(None if outputs is None else names, open_constants)
                self._plans[key] = plan if reference else optimise(plan, self._known)
        return self._plans[key]

    @cached_property
    def _known(self) -> Known:
        """What passes may rely on: `check_feeds` sees to the declared shapes."""
        declared = {entry.name: entry.shape for entry in self.inputs if entry.shape is not None}
        return Known(evaluate, fast_math=self.fast_math, declared=declared)

    def run(
        self,
        feeds: Mapping[str, Value],
        outputs: Sequence[str] | None = None,
        *,
        reference: bool = False,
        seed: int | None = None,
        limits: Limits | None = None,
        observer: Observer = unobserved,
    ) -> dict[str, Value]:
        """Compute the outputs, in the graph's order, or any values of the top-level graph by name.

        ``feeds`` maps input names to arrays, lists for sequences, dicts for maps, None for empty optionals. The
        results are arrays, `Sequence` lists, dicts, and None for an empty optional. ``seed`` makes random
        operators without a seed of their own repeat themselves, ``reference`` runs the readable path (see `plan`),
        ``observer`` wraps what runs the steps: `onnxeval.observe.Profile` is one.

        Raises InputError before anything runs where a feed does not fit, ModelError and UnsupportedOperators
        where the model cannot be compiled, NodeError and ResourceLimitError while it runs.
        """
        kind, plain = kind_of(feeds) if isinstance(feeds, Mapping) else ((), False)
        usual = outputs is None and limits is None and seed is None and observer is unobserved and not reference
        adaptive = self._usual.get(kind) if usual and plain else None
        again = None if adaptive is None else adaptive.replayed(kind, feeds)
        if again is not None:
            return again
        checked: Mapping[str, Value] = feeds
        is_new = plain and kind not in self._seen and len(feeds) == len(self.inputs)
        if is_new and are_declared(feeds, self._input_types, {}, binds=True):
            self._see(kind)
        if not plain or kind not in self._seen:
            checked = check_feeds(self.inputs, feeds)
            if plain and len(checked) == len(feeds) and all(checked[name] is feeds[name] for name in feeds):
                self._see(kind)  # what is right once is right when it comes again
            else:
                kind, plain = kind_of(checked)[0], False
        plan = self.plan(outputs, checked, reference=reference)
        with np.errstate(all="ignore"):
            run = Run(limits, seed, observer)
            if reference:
                results = execute(plan, checked, run)
            else:
                adaptive = self._adaptive(plan)
                results = adaptive.execute(kind, checked, run)
                if usual and plain:
                    self._remember(kind, adaptive)
        self._compare(results, checked, kind if plain else None)
        return {name: None if isinstance(value, EmptyOptional) else value for name, value in results.items()}

    def _see(self, kind: object) -> None:
        if len(self._seen) >= _REMEMBERED:
            self._seen.clear()
        self._seen.add(kind)

    def _remember(self, kind: Kind, adaptive: Adaptive) -> None:
        if len(self._usual) >= _REMEMBERED:
            self._usual.clear()
        self._usual[kind] = adaptive

    def _adaptive(self, plan: Plan) -> Adaptive:
        if id(plan) not in self._adaptives:
            self._adaptives[id(plan)] = Adaptive(plan)
        return self._adaptives[id(plan)]

    def _compare(self, results: Mapping[str, Value], feeds: Mapping[str, Value], kind: Kind | None) -> None:
        """Note where results are not what the model declares, the latest of each value."""
        results_kind, plain = kind_of(results)
        if kind is not None and plain:
            if (kind, results_kind) in self._seen:
                return
            self._see((kind, results_kind))
        bound: dict[str, int] = {}
        is_right = are_declared(feeds, self._input_types, bound, binds=True)
        if is_right and are_declared(results, self._declared_types, bound, binds=False):
            return
        sizes = sizes_of(self._declared_types, feeds)
        for name, value in results.items():
            if how := contradiction(value, self._declared_types.get(name), sizes):
                self._contradictions[name] = f'the value "{name}" {how}'

    @cached_property
    def _input_types(self) -> dict[str, ValueType | None]:
        return {entry.name: entry.type for entry in self.inputs}

    @cached_property
    def _declared_types(self) -> dict[str, ValueType | None]:
        """What the graph says of its values' types, by name; what cannot be read says nothing."""
        types: dict[str, ValueType | None] = {}
        for value in self.proto.graph.value_info:
            with suppress(ModelError):
                types[value.name] = _declared(value).type
        types.update((entry.name, entry.type) for entry in (*self.outputs, *self.inputs))
        return types

    def _refuse_unknown(self, names: Iterable[str]) -> None:
        known = {*self.values, *(output.name for output in self.outputs)}
        for name in names:
            if name not in known:
                from difflib import get_close_matches

                near = get_close_matches(name, known, 1)
                raise InputError(f'the model has no value "{name}"', hint=f'did you mean "{near[0]}"?' if near else "")


def _declared(value: ValueInfoProto, *, optional: bool = False) -> Declared:
    return Declared(value.name, type_from(value.type) if value.HasField("type") else None, optional)


def load(model: str | os.PathLike[str] | bytes | ModelProto, *, fast_math: bool = False) -> Model:
    """Load a model from a path, from the bytes of a file, or from a ModelProto.

    With ``fast_math`` convolutions of 3x3 may lose a digit where that takes less time; the readable path does not.
    Heeds ONNXEVAL_NUM_THREADS (see `onnxeval.threads`), and lets the process keep freed memory (see `onnxeval.memory`).
    Raises ModelError where it is no model, or one whose graph
    contradicts itself.
    """
    heed_environment()
    keep_freed_memory()
    with uncollected():
        return Model(load_model(model), fast_math=fast_math)
