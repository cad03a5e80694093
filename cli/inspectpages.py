"""What `onnxeval inspect` shows: a model in short, as a tree, and by cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from onnxeval.checks.known import Known
from onnxeval.checks.recording import Record, Recorded
from onnxeval.checks.views import Node, Scope
from onnxeval.inspection.cost import Cost, NodeCost
from onnxeval.inspection.summary import Summary
from onnxeval.values import TensorType

from .screen import Line, Screen

_LONGEST, _SHORTEST = 40, 12
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Seen:
    """A model that was looked at; ``open`` are the names of the sizes that nobody gave."""

    path: str
    recorded: Recorded
    summary: Summary
    open: tuple[str, ...]


# In short


def summary_lines(seen: Seen) -> Iterator[Line]:
    """Everything but the nodes."""
    summary, proto = seen.summary, seen.recorded.model.proto
    maker = " ".join(filter(None, (str(proto.producer_name), str(proto.producer_version))))
    yield [(seen.path, "name"), (f"  IR {proto.ir_version}{f', made by {maker}' if maker else ''}", "")]
    yield [("opsets", "heading"), ("  ", ""), (", ".join(f"{d} {v}" for d, v in summary.opsets.items()), "")]
    if metadata := _metadata(proto):
        yield [("metadata", "heading"), ("", "")]
        yield from _columns((key, _cut(" ".join(value.split()))) for key, value in metadata.items())
    graph = seen.recorded.model.graph
    yield from _value_lines("inputs", [n for n in graph.inputs if n not in set(graph.constants)], seen)
    yield from _value_lines("outputs", graph.outputs, seen)
    yield from _parameter_lines(summary)
    yield [("operators", "heading"), (f"  {_count(summary.nodes, 'node')}", "")]
    yield from _columns(((label, f"{count:,}") for label, count in summary.operators), right=(1,))
    if summary.functions:
        yield [("functions", "heading"), (f"  {len(summary.functions)}", "")]
        yield from _columns(
            (
                f"{f.name}({', '.join(f.inputs)}) -> {', '.join(f.outputs)}",
                _count(f.nodes, "node"),
                _count(f.calls, "call"),
            )
            for f in summary.functions
        )
    if summary.not_run:
        yield [("cannot run", "error"), (f"  {_count(len(summary.not_run), 'node')}", "")]
        for finding in summary.not_run:
            yield [(f"{_INDENT}{finding.where}", ""), (f"  {finding.message}", "faint")]
    if summary.errors:
        yield [(f"onnxeval check finds {_count(summary.errors, 'error')}", "warning")]


def _metadata(proto: Any) -> dict[str, str]:
    return {_text(entry.key): _text(entry.value) for entry in proto.metadata_props}


def _value_lines(title: str, names: Sequence[str], seen: Seen) -> Iterator[Line]:
    yield [(title, "heading"), ("" if names else "  none", "")]
    width = max(map(len, names), default=0)
    for name in names:
        yield [(f"{_INDENT}{name.ljust(width)}", "name"), (f"  {seen.recorded.values[name]}", "type")]


def _parameter_lines(summary: Summary) -> Iterator[Line]:
    total = summary.parameters
    elements, size = sum(p.elements for p in total), sum(p.bytes for p in total)
    held = f"{elements:,} in {_count(sum(p.tensors for p in total), 'tensor')}, {size_text(size)}" if total else "none"
    yield [("parameters", "heading"), (f"  {held}", "")]
    if len(total) > 1:
        yield from _columns(((p.dtype, f"{p.elements:,}", size_text(p.bytes)) for p in total), right=(1, 2))
    elif total:
        yield [(f"{_INDENT}all {total[0].dtype}", "")]


# The tree


def tree_lines(seen: Seen, depth: int) -> Iterator[Line]:
    """The main graph, a node a line."""
    scope = seen.recorded.model.graph
    types = seen.recorded.values
    constants = set(scope.constants)
    for name in scope.inputs:
        if name not in constants:
            yield [("input ", "faint"), (name, "name"), (f"  {types[name]}", "type")]
    yield from _node_lines(seen.recorded.records, scope, depth, "")
    for name in scope.outputs:
        yield [("output ", "faint"), (name, "name"), (f"  {types[name]}", "type")]


def _node_lines(records: Sequence[Record], scope: Scope, depth: int, indent: str) -> Iterator[Line]:
    for record in records:
        if record.node.scope is scope:
            yield _node_line(record, indent)
            for title, inner in _scopes(record.node):
                yield from _inner_lines(title, inner, record, depth, indent + _INDENT)


def _node_line(record: Record, indent: str) -> Line:
    node = record.node
    results = ", ".join(f"{name} {known}" for name, known in zip(node.outputs, record.outputs, strict=True) if name)
    called = f"{node.proto.name} ({label_of(node)})" if node.proto.name else label_of(node)
    read = ", ".join(name or "-" for name in node.inputs)
    return [
        (f"{indent}{node.place} ", "faint"),
        (called, "name"),
        (f"  {read}" if read else "", ""),
        (" -> ", "faint"),
        (results, "type"),
    ]


def _inner_lines(title: str, inner: Scope, record: Record, depth: int, indent: str) -> Iterator[Line]:
    folded = "" if depth else "  (folded)"
    yield [(f"{indent}{title}: {_count(len(inner.nodes), 'node')}{folded}", "faint")]
    if depth:
        yield from _node_lines(record.inner, inner, depth - 1, indent + _INDENT)


def _scopes(node: Node) -> Iterator[tuple[str, Scope]]:
    """The graphs inside a node, each by the name of its attribute, or the body of the function that it calls."""
    for sub in node.subs:
        yield sub.where.removeprefix(f"{node.where} "), sub
    if (function := node.called) is not None:
        yield function.label, function.scope


def label_of(node: Node) -> str:
    """``Conv-11``: the operator with its version where the standard has it."""
    return node.operator if node.schema is None else node.schema.label


# The cost


def cost_lines(seen: Seen, cost: Cost, on: Screen) -> Iterator[Line]:
    """A table of the nodes that cost something, and the whole; names are cut to what a terminal has room for."""
    head = ("node", "operator", "result", "parameters", "MACs", "memory")
    costing = [node for node in cost.nodes if node.macs != 0 or node.parameters or node.bytes != 0]
    rows = [_cost_row(node) for node in costing]
    taken = sum(2 + max(map(len, column)) for column in list(zip(head, *rows, strict=True))[1:])
    room = min(max(on.width - taken, _SHORTEST), _LONGEST) if on.terminal else _LONGEST
    rows = [(_end(name, room), *cells) for name, *cells in rows]
    parameters = f"{sum(p.elements for p in seen.summary.parameters):,}"
    peak = "not known" if cost.peak is None else f"{size_text(cost.peak)} of inputs and results at once"
    some = "at least " if any(node.macs is None for node in cost.nodes) else ""
    yield from _columns([head, *rows], right=(3, 4, 5), indent="", heading=True)
    yield []
    yield [("MACs", "heading"), (f"        {some}{cost.macs:,}", "")]
    yield [("parameters", "heading"), (f"  {parameters}", "")]
    yield [("peak", "heading"), (f"        {peak}", "")]
    if cost.unknown:
        yield [(f"the cost of {_count(cost.unknown, 'node')} is not known", "warning")]
    if seen.open:
        options = " ".join(f"--dim {name}=1" if name.isidentifier() else f"--dim '{name}=1'" for name in seen.open)
        yield [(f"open sizes: {options}", "warning")]


def _cost_row(cost: NodeCost) -> tuple[str, ...]:
    record = cost.record
    result = ", ".join(str(known) for known in record.outputs if known.type is not None)
    name = record.node.proto.name or next(iter(record.node.outputs), "")
    macs = "?" if cost.macs is None else f"{cost.macs:,}"
    size = "?" if cost.bytes is None else size_text(cost.bytes)
    return name, label_of(record.node), _cut(result), f"{cost.parameters:,}", macs, size


# For programs


def form(seen: Seen, cost: Cost) -> dict[str, Any]:
    """Everything as an object that `jsonform.document` takes; what is not known is null."""
    summary, model = seen.summary, seen.recorded.model
    constants = set(model.graph.constants)
    types = seen.recorded.values
    return {
        "model": seen.path,
        "ir_version": model.proto.ir_version,
        "producer": {"name": _text(model.proto.producer_name), "version": _text(model.proto.producer_version)},
        "metadata": _metadata(model.proto),
        "opsets": summary.opsets,
        "inputs": [_value_form(name, types[name]) for name in model.graph.inputs if name not in constants],
        "outputs": [_value_form(name, types[name]) for name in model.graph.outputs],
        "open_sizes": list(seen.open),
        "parameters": [asdict(p) for p in summary.parameters],
        "operators": dict(summary.operators),
        "functions": [asdict(f) for f in summary.functions],
        "cannot_run": [{"where": f.where, "message": f.message} for f in summary.not_run],
        "errors": summary.errors,
        "cost": {"macs": cost.macs, "nodes_of_unknown_cost": cost.unknown, "peak_bytes": cost.peak},
        "nodes": [_node_form(node.record, node) for node in cost.nodes],
    }


def _text(text: Any) -> str:
    return text if isinstance(text, str) else bytes(text).decode(errors="replace")


def _value_form(name: str, known: Known) -> dict[str, Any]:
    value_type = known.type
    shape = list(value_type.shape) if isinstance(value_type, TensorType) and value_type.shape is not None else None
    return {"name": name, "type": None if value_type is None else str(value_type), "shape": shape}


def _node_form(record: Record, cost: NodeCost | None) -> dict[str, Any]:
    node = record.node
    content: dict[str, Any] = {
        "where": node.where,
        "name": node.proto.name,
        "operator": label_of(node),
        "inputs": list(node.inputs),
        "outputs": [_value_form(name, known) for name, known in zip(node.outputs, record.outputs, strict=True)],
    }
    if cost is not None:
        content |= {"macs": cost.macs, "parameters": cost.parameters, "bytes": cost.bytes}
    graphs = {
        title: [_node_form(inner, None) for inner in record.within(scope)] for title, scope in _scopes(record.node)
    }
    return {**content, "graphs": graphs} if graphs else content


# Text


def size_text(size: int) -> str:
    """Bytes for people."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size} B"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _end(name: str, longest: int) -> str:
    """The end of a name that is too long: exporters begin all names of a model alike."""
    return name if len(name) <= longest else f"…{name[1 - longest :]}"


def _columns(
    rows: Iterable[Sequence[str]], *, right: tuple[int, ...] = (), indent: str = _INDENT, heading: bool = False
) -> Iterator[Line]:
    """Rows of texts as aligned columns, those in ``right`` aligned at their ends."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for number, row in enumerate(table):
        cells = [
            text.rjust(width) if place in right else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield [(indent + "  ".join(cells), "heading" if heading and not number else "")]
