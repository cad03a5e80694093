"""Rules on the model message: IR version, opset imports, metadata."""

from __future__ import annotations

from collections import Counter

import onnx

from onnxeval.checks.imports import Imports
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.views import Node, Scope
from onnxeval.checks.whole import Model
from onnxeval.schema import STANDARD_DOMAINS, canonical_domain, newest_opset

#: Since this IR version a model says which opsets it means, and function domains are a field of their own.
_IR_WITH_IMPORTS = 3
_MOST = 2**31 - 1


@rule("proto/no-graph", "error", Model)
def no_graph(model: Model) -> Faults:
    """The model has no graph: there is nothing to run.

    Why: a file of functions alone is no model, and many files of other kinds happen to parse as an empty one.

    Mend: export the model again, or add the graph.

    Example:
        >>> model.ClearField("graph")
    """
    if not model.proto.HasField("graph"):
        yield Fault("model", "the model has no graph")


@rule("proto/no-ir-version", "error", Model)
def no_ir_version(model: Model) -> Faults:
    """The model does not say which version of the file format (IR) it follows.

    Why: readers decide by it what may stand in the file; most refuse a model without one.

    Mend: set `ir_version` to the version that the model was written for, 8 where that is not known.

    Example:
        >>> model.ClearField("ir_version")
    """
    if model.proto.ir_version <= 0:
        yield Fault(
            "model", f"ir_version is {model.proto.ir_version or 'missing'}", "set it to the version written for"
        )


@rule("proto/newer-ir-version", "error", Model)
def newer_ir_version(model: Model) -> Faults:
    """The model follows a version of the file format that the installed onnx does not know.

    Why: it may hold fields that are dropped here without a word, so that nothing about it can be trusted.

    Mend: upgrade the onnx package, or export the model for an older IR version.

    Example:
        >>> model.ir_version = 9999
    """
    if model.proto.ir_version > onnx.IR_VERSION:
        yield Fault(
            "model",
            f"ir_version is {model.proto.ir_version}, the newest known is {onnx.IR_VERSION}",
            "upgrade the onnx package, or export the model for an older IR version",
        )


@rule("proto/no-opset-import", "error", Model)
def no_opset_import(model: Model) -> Faults:
    """The model imports no operator set. Before IR version 3 this is right.

    Why: which operators its nodes mean is open: Softmax of opset 11 and of opset 13 give different numbers.

    Mend: add an `opset_import` with the version that the exporter wrote for.

    Example:
        >>> del model.opset_import[:]
    """
    if not model.proto.opset_import and not 0 < model.proto.ir_version < _IR_WITH_IMPORTS:
        yield Fault("model", f"no opset is imported, which IR version {model.proto.ir_version} asks for")


@rule("proto/early-opset-import", "error", Model)
def early_opset_import(model: Model) -> Faults:
    """The model imports opsets, which came with IR version 3, and says that it is older.

    Why: it contradicts itself, and readers of that age miss the imports.

    Mend: set `ir_version` to 3 or more.

    Example:
        >>> model.ir_version = 2
        >>> model.opset_import[0].version = 6
    """
    if model.proto.opset_import and 0 < model.proto.ir_version < _IR_WITH_IMPORTS:
        yield Fault(
            "model",
            f"opsets are imported in IR version {model.proto.ir_version}, which has no imports",
            f"set ir_version to {_IR_WITH_IMPORTS} or more",
        )


@rule("proto/opset-conflict", "error", Imports)
def opset_conflict(imports: Imports) -> Faults:
    """One domain is imported at two versions; `ai.onnx` and the empty name are one domain.

    Why: which version its operators mean is open, and readers choose differently.

    Mend: keep the import that the exporter meant.

    Example:
        <ir_version: 10, opset_import: ["": 21, "ai.onnx": 20]>
        g (float[2] x) => (float[2] y) { y = Neg(x) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 5]>
        g (float[2] x) => (float[2] y) { y = Neg(x) }
    """
    for place, entry in enumerate(imports.entries):
        domain = canonical_domain(entry.domain)
        if entry.version != imports.versions[domain]:
            message = f"{_shown(domain)} is imported at version {imports.versions[domain]} and at {entry.version}"
            yield Fault(imports.where(place), message)


@rule("proto/doubled-opset", "warning", Imports)
def doubled_opset(imports: Imports) -> Faults:
    """One domain is imported twice at the same version.

    Why: once is enough; a tool that changes one of the imports makes the model contradict itself.

    Mend: remove one of the imports; `--fix` does.

    Example:
        <ir_version: 10, opset_import: ["": 21, "ai.onnx": 21]>
        g (float[2] x) => (float[2] y) { y = Neg(x) }

    Instead:
        <ir_version: 10, opset_import: ["": 21]>
        g (float[2] x) => (float[2] y) { y = Neg(x) }
    """
    seen: set[str] = set()
    for place, entry in enumerate(imports.entries):
        domain = canonical_domain(entry.domain)
        if domain in seen and entry.version == imports.versions[domain]:
            yield Fault(imports.where(place), f"{_shown(domain)} is imported at version {entry.version} twice")
        seen.add(domain)


@rule("proto/opset-version", "error", Imports)
def opset_version(imports: Imports) -> Faults:
    """An imported version is below 1, or newer than any that the installed onnx knows.

    Why: what its operators mean is unknown. They are judged as those of the newest known version.

    Mend: upgrade the onnx package, or export the model for an older opset.

    Example:
        <ir_version: 10, opset_import: ["": 9999]>
        g (float[2] x) => (float[2] y) { y = Neg(x) }

    Instead:
        <ir_version: 10, opset_import: ["": 21]>
        g (float[2] x) => (float[2] y) { y = Neg(x) }
    """
    for place, entry in enumerate(imports.entries):
        domain = canonical_domain(entry.domain)
        newest = newest_opset(domain) if domain in STANDARD_DOMAINS else _MOST
        if entry.version < 1:
            yield Fault(imports.where(place), f"{_shown(domain)} is imported at version {entry.version}")
        elif entry.version > newest:
            yield Fault(
                imports.where(place),
                f"{_shown(domain)} is imported at version {entry.version}, the newest known is {newest}",
                "upgrade the onnx package, or export the model for an older opset",
            )


@rule("proto/domain-not-imported", "error", Scope)
def domain_not_imported(scope: Scope) -> Faults:
    """Nodes use operators of a domain that the model, or the function around them, does not import.

    Why: which version they mean is open. Imports that no node uses are normal: exporters write many.

    Mend: add an `opset_import` for the domain.

    Example:
        g (float[2] x) => (float[2] y) { y = ai.onnx.ml.Normalizer(x) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 1]>
        g (float[2] x) => (float[2] y) { y = ai.onnx.ml.Normalizer(x) }
    """
    first: dict[str, Node] = {}
    counts: Counter[str] = Counter()
    versions = scope.imports.versions
    if not versions and scope.function is None:
        return  # no-opset-import says it once
    for node in scope.nodes:
        if node.domain not in versions:
            first.setdefault(node.domain, node)
            counts[node.domain] += 1
    for domain, node in first.items():
        count = "1 node" if counts[domain] == 1 else f"{counts[domain]} nodes"
        importer = scope.function.where if scope.function else "the model"
        yield Fault(
            node.where,
            f"{_shown(domain)} is used by {count} here and not imported by {importer}",
            f"imported: {', '.join(map(_shown, versions)) or 'nothing'}",
        )


@rule("proto/domain-spelling", "warning", Scope)
def domain_spelling(scope: Scope) -> Faults:
    """Nodes spell the standard's domain `ai.onnx`, which the standard allows and writes as the empty name.

    Why: many tools, onnx's own checker among them, take `ai.onnx` for another domain and find no operators there.

    Mend: leave the nodes' domain empty; `--fix` does.

    Example:
        g (float[2] x) => (float[2] y) { y = ai.onnx.Neg(x) }

    Instead:
        g (float[2] x) => (float[2] y) { y = Neg(x) }
    """
    if scope.spelled_long:
        first, count = scope.spelled_long[0], len(scope.spelled_long)
        what = "1 node here spells" if count == 1 else f"{count} nodes here spell"
        yield Fault(first.where, f'{what} the domain "ai.onnx"')


@rule("proto/doubled-metadata", "error", Model)
def doubled_metadata(model: Model) -> Faults:
    """Two metadata entries have one key.

    Why: keys are unique by the standard; which of the values a reader finds is open.

    Mend: remove or rename one of the entries.

    Example:
        >>> model.metadata_props.add(key="author", value="A")
        >>> model.metadata_props.add(key="author", value="B")
    """
    for key, count in Counter(entry.key for entry in model.proto.metadata_props).items():
        if count > 1:
            yield Fault("model", f'the metadata key "{key}" is given {count} times')


def _shown(domain: str) -> str:
    return f'domain "{domain or "ai.onnx"}"'
