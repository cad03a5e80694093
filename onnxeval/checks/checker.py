"""The order in which the parts of a model are judged."""

from __future__ import annotations

import os
from collections.abc import Iterable

from onnx import ModelProto

from onnxeval.checks import (
    attributes,
    declared,
    evaluation,
    features,
    function,
    lists,
    names,
    networks,
    node,
    order,
    proto,
    ranks,
    shapes,
    sparse,
    symbols,
    tensor,
    training,
    types,
    unused,
    values,
    weights,
)
from onnxeval.checks.declared import declared_alike
from onnxeval.checks.file import read_source
from onnxeval.checks.held import Tensor, tensors_of
from onnxeval.checks.inference import Inference, Types
from onnxeval.checks.rules import Finding, judge
from onnxeval.checks.selection import chosen, only
from onnxeval.checks.tensor import plain_data
from onnxeval.checks.values import Valued, shape_is_clear
from onnxeval.checks.views import Holder, Node, Scope
from onnxeval.checks.weights import Screen
from onnxeval.checks.whole import Model
from onnxeval.loader import Loaded
from onnxeval.memory import uncollected

#: The families of rules; importing them fills the table.
FAMILIES = (
    *(proto, features, names, order, declared, unused, node, attributes, training, function),
    *(tensor, sparse, weights, types, values, ranks, shapes, lists, networks, symbols, evaluation),
)


def check(
    model: str | os.PathLike[str] | bytes | ModelProto, *, select: Iterable[str] = (), ignore: Iterable[str] = ()
) -> list[Finding]:
    """Every defect of a model, each with its place: first those of structure, then those of types and shapes.

    A model in any state gives findings, never an error: one that cannot be read is a single finding of the
    rule ``file/unreadable``. Findings of severity ``error`` break the standard or cannot work, ``warning`` is for
    what works and misleads, ``note`` for what cannot be judged here.

    ``select`` and ``ignore`` choose rules, by id, family or pattern (``graph/unused-*``); one that means no rule is a
    ValueError.
    """
    rules = chosen(select, ignore)
    source = read_source(model)
    if source.loaded is None:
        return only(judge(source), rules)
    with uncollected():
        return only(Check(source.loaded).run(), rules)


class Check:
    """One check of one model, which ``inference`` walks through.

    ``values`` is what is known of the main graph's values when it has run.
    """

    def __init__(self, loaded: Loaded, inference: type[Inference] = Inference) -> None:
        self._inference = inference
        self.model = Model(loaded.proto, loaded.source, loaded.folders)
        self._findings: list[Finding] = []
        self._faulty: set[Holder] = set()
        self._doubtful: set[Node] = set()
        self.values = Types()

    def run(self) -> list[Finding]:
        model = self.model
        self._judge(model)
        self._judge(model.imports)
        for function_view in model.functions:
            self._judge(function_view)
            self._judge(function_view.scope.imports)
        for scope in model.scopes():
            self._judge_scope(scope)
        self.walk = self._inference(model, self._faulty, self._doubtful)
        self._findings += self.walk.run()
        self.values = self.walk.values
        return self._findings

    def _judge(self, part: object) -> bool:
        """Add what the rules find; returns whether there is an error among it."""
        findings = judge(part)
        self._findings.extend(findings)
        return any(finding.severity == "error" for finding in findings)

    def _judge_scope(self, scope: Scope) -> None:
        broken = self._judge(scope)
        broken |= self._judge_declarations(scope)
        broken |= self._judge_tensors(scope)
        clean = scope.imports.clean
        for node_view in scope.nodes:
            if node_view.signature not in clean:
                broken |= self._judge_node(node_view)
        while broken and scope.owner is not None:  # onnx's inference of a node takes its sub-graphs for sound
            self._faulty.add(scope.owner)
            scope = scope.owner.scope

    def _judge_declarations(self, scope: Scope) -> bool:
        broken = False
        for alike in declared_alike(scope):
            for value in alike:
                before = len(self._findings)
                broken |= self._judge(value)
                if len(self._findings) == before:
                    break  # nor will there be in those like it
        return broken

    def _judge_tensors(self, scope: Scope) -> bool:
        broken, screen = False, Screen()
        for held in tensors_of(scope):
            is_plain, raw = plain_data(held.proto) if isinstance(held, Tensor) else (False, None)
            if not is_plain and self._judge(held):
                self._faulty.add(held.holder)
                broken = True
            elif isinstance(held, Tensor):
                screen.add(held, raw)
        for weights_view in screen.doubtful():
            self._judge(weights_view)
        return broken

    def _judge_node(self, node_view: Node) -> bool:
        before = len(self._findings)
        broken = self._judge(node_view)
        schema, valued = node_view.schema, None
        if node_view.attributes and schema is not None:
            valued = Valued(node_view.where, schema, node_view.attributes)
            broken |= self._judge(valued)
        if broken:
            rules = {finding.rule for finding in self._findings[before:] if finding.severity == "error"}
            is_harmless = rules == {"value/name"} and valued is not None and shape_is_clear(valued)
            (self._doubtful if is_harmless else self._faulty).add(node_view)
        elif node_view.signature is not None and len(self._findings) == before:
            node_view.scope.imports.clean.add(node_view.signature)
        return broken
