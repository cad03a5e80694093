"""The order in which the parts of a model are judged."""

from __future__ import annotations

import os

from onnx import ModelProto

from onnxeval.checks import function, graph, node, proto, ranges, shapes, sparse, tensor, types
from onnxeval.checks.file import read_source
from onnxeval.checks.graph import declared_in
from onnxeval.checks.held import tensors_of
from onnxeval.checks.inference import Inference
from onnxeval.checks.rules import Finding, judge
from onnxeval.checks.views import Holder, Model, Node, Scope
from onnxeval.loader import Loaded

#: The families of rules; importing them fills the table.
FAMILIES = (proto, graph, node, function, tensor, sparse, types, shapes, ranges)


def check(model: str | os.PathLike[str] | bytes | ModelProto) -> list[Finding]:
    """Every defect of a model, each with its place: first those of structure, then those of types and shapes.

    A model in any state gives findings, never an error: one that cannot be read is a single finding of the
    rule ``file/unreadable``. Findings of severity ``error`` break the standard or cannot work, ``warning`` is for
    what works and misleads, ``note`` for what cannot be judged here.
    """
    source = read_source(model)
    if source.loaded is None:
        return judge(source)
    return _Check(source.loaded).run()


class _Check:
    def __init__(self, loaded: Loaded) -> None:
        self._model = Model(loaded.proto, loaded.source, loaded.folders)
        self._findings: list[Finding] = []
        self._faulty: set[Holder] = set()

    def run(self) -> list[Finding]:
        model = self._model
        self._judge(model)
        self._judge(model.imports)
        for function_view in model.functions:
            self._judge(function_view)
            self._judge(function_view.scope.imports)
        for scope in model.scopes():
            self._judge_scope(scope)
        return [*self._findings, *Inference(model, self._faulty).run()]

    def _judge(self, part: object) -> bool:
        """Add what the rules find; returns whether there is an error among it."""
        findings = judge(part)
        self._findings.extend(findings)
        return any(finding.severity == "error" for finding in findings)

    def _judge_scope(self, scope: Scope) -> None:
        broken = self._judge(scope)
        for value in declared_in(scope):
            broken |= self._judge(value)
        for held in tensors_of(scope):
            if self._judge(held):
                self._faulty.add(held.holder)
                broken = True
        clean = scope.imports.clean
        for node_view in scope.nodes:
            if node_view.signature not in clean:
                broken |= self._judge_node(node_view)
        while broken and scope.owner is not None:  # onnx's inference of a node takes its sub-graphs for sound
            self._faulty.add(scope.owner)
            scope = scope.owner.scope

    def _judge_node(self, node_view: Node) -> bool:
        before = len(self._findings)
        broken = self._judge(node_view)
        if broken:
            self._faulty.add(node_view)
        elif node_view.signature is not None and len(self._findings) == before:
            node_view.scope.imports.clean.add(node_view.signature)
        return broken
