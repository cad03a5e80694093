"""What `onnxeval ops` shows: the table of operators, an operator's page, the difference of two versions."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from inspect import Parameter
from pathlib import Path
from typing import Any

import numpy as np

import onnxeval
from onnxeval import opdiff, opdocs
from onnxeval.attributes import kind_name
from onnxeval.custom import custom_schema
from onnxeval.dtypes import name_of
from onnxeval.opdiff import Difference
from onnxeval.opdocs import AttributePage, Page, SlotPage, TypeVariable, value_text
from onnxeval.registry import Kernel, OpKey, Registry, signature_of, source_of

from .screen import Line, screen

_KERNEL, _BODY, _NOTHING = "kernel", "function body", "nothing"
_LONGEST_LINE = 110
#: A line that goes on with a sentence: no item of a list, no formula.
_PROSE = re.compile(r"(?!\d+[.)])[`\"(]?\w(?!.* = )")


@dataclass(frozen=True, slots=True)
class Row:
    """An operator's versions, each with what runs it: a kernel, the standard's function body, or nothing."""

    domain: str
    name: str
    versions: dict[int, str]


@dataclass(frozen=True, slots=True)
class Table:
    """Operators, ordered by domain and name; ``opset`` is set where it holds one version of each."""

    rows: tuple[Row, ...]
    opset: int | None

    @property
    def totals(self) -> dict[str, int]:
        served = [what for row in self.rows for what in row.versions.values()]
        counts = {what: served.count(what) for what in (_KERNEL, _BODY, _NOTHING)}
        return {"operators": len(self.rows), "versions": len(served), **counts}


@cache
def _registry() -> Registry:
    return Registry.standard()


def domains() -> list[str]:
    """The domains that have operators, under their long names."""
    return list(dict.fromkeys(_domain_name(domain) for domain, _ in versions()))


def versions(domain: str | None = None) -> dict[tuple[str, str], tuple[int, ...]]:
    """(domain, name) -> its versions: those of the standard's operators, and those that only have a kernel."""
    domain = "" if domain == "ai.onnx" else domain
    found = dict(opdocs.operators(domain))
    for key in sorted(key[:2] for key in _registry() if domain in (None, key.domain)):
        found[key] = tuple(sorted({*found.get(key, ()), *_registry().versions(*key)}))
    return found


def table(domain: str | None, opset: int | None) -> Table:
    """The operators of one domain or of all, at one opset or with all their versions."""
    rows = []
    for (where, name), known in versions(domain).items():
        chosen = known if opset is None else tuple(v for v in known if v <= opset)[-1:]
        if chosen:
            rows.append(Row(where, name, {v: _served_by(where, name, v) for v in chosen}))
    return Table(tuple(rows), opset)


def page(domain: str, name: str, opset: int | None) -> Page | None:
    """An operator's page at an opset; a version without a schema is described by its kernel."""
    standard = opdocs.page(domain, name, opset)
    if standard is not None:
        return standard
    chosen = [v for v in _registry().versions(domain, name) if opset is None or v <= opset]
    return _page_of_kernel(OpKey(domain, name, chosen[-1])) if chosen else None


def _page_of_kernel(key: OpKey) -> Page:
    kernel = _registry()[key]
    signature, told = signature_of(kernel), custom_schema(kernel)
    types = signature.types

    def variable(place: int) -> str:
        return types.letter(place) if types is not None else ""

    inputs = [
        SlotPage(n, "optional" if n in told.optional else "required", variable(place), (), 1, True, "")
        for place, n in enumerate(signature.positional)
    ]
    if signature.variadic:
        inputs.append(SlotPage("...", "variadic", variable(len(inputs)), (), 0, types is not None, ""))
    attributes = tuple(
        AttributePage(
            n,
            kind_name(kind) if (kind := told.attributes[n].kind) is not None else "",
            default is Parameter.empty,
            None if default is Parameter.empty else default,
            "",
        )
        for n, default in signature.attributes.items()
    )
    letters = dict.fromkeys(slot.variable for slot in inputs if slot.variable)
    variables = tuple(
        TypeVariable(letter, tuple(sorted(map(name_of, types.allowed[letter]))), "")
        for letter in letters
        if types is not None
    )
    text = opdocs.clean(kernel.__doc__ or "")
    return Page(
        key.domain, key.op_type, key.since_version, "", False, text, tuple(inputs), (), variables, attributes, ""
    )


def _served_by(domain: str, name: str, version: int) -> str:
    if OpKey(domain, name, version) in _registry():
        return _KERNEL
    standard = opdocs.page(domain, name, version)
    return _BODY if standard is not None and standard.body else _NOTHING


def _kernel(of: Page) -> Kernel | None:
    return _registry().get(OpKey(of.domain, of.name, of.since_version))


def _place(kernel: Kernel) -> tuple[str, int]:
    """A kernel's file, from onnxeval's folder on where it lies in it, and its line."""
    file, line = source_of(kernel)
    root = Path(onnxeval.__file__).resolve().parent.parent
    path = Path(file).resolve()
    return (path.relative_to(root).as_posix() if path.is_relative_to(root) else file), line


def _domain_name(domain: str) -> str:
    return domain or "ai.onnx"


# Text


def table_lines(of: Table) -> Iterator[Line]:
    """One line an operator."""
    width = max(len(row.name) for row in of.rows)
    domain = None
    for row in of.rows:
        if row.domain != domain:
            if domain is not None:
                yield []
            domain = row.domain
            yield [(_domain_name(domain), "heading")]
        line: Line = [(f"  {row.name.ljust(width)} ", "name")]
        for version, what in row.versions.items():
            mark = f"({version})" if what == _BODY else f"-{version}" if what == _NOTHING else str(version)
            line.append((f" {mark}", "" if what == _KERNEL else "faint"))
        yield line
    yield []
    totals = of.totals
    at = f" at opset {of.opset}" if of.opset is not None else ""
    yield [(f"{totals['operators']} operators, {totals['versions']} versions{at}: {totals[_KERNEL]} with a kernel", "")]
    if totals[_BODY]:
        yield [(f"(n): {totals[_BODY]} without one, run through the function body of the standard", "faint")]
    if totals[_NOTHING]:
        yield [(f"-n: {totals[_NOTHING]} that cannot be run", "faint")]


def page_lines(of: Page) -> Iterator[Line]:
    """All that an engineer would look up about one version of an operator."""
    yield [(of.title, "heading"), (f"  {_domain_name(of.domain)}{', ' + of.section if of.section else ''}", "")]
    if of.deprecated:
        yield [("deprecated", "warning")]
    yield from _kernel_lines(of)
    if of.body:
        yield [(f"function body: {of.body}", "")]
    yield []
    yield from _wrapped(of.text, "")
    yield from _slot_lines("Inputs", of.inputs)
    yield from _slot_lines("Outputs", of.outputs)
    if of.attributes:
        yield from ([], [("Attributes", "heading")])
        for attribute in of.attributes:
            yield [(f"  {attribute.name}", "name"), (f"  {_attribute_text(attribute)}", "type")]
            yield from _wrapped(attribute.text, "      ")
    if of.variables:
        yield from ([], [("Types", "heading")])
        for variable in of.variables:
            yield [(f"  {variable.name}", "name"), (f"  {variable.text}", "")]
            yield from _wrapped(" ".join(variable.types), "      ")
    yield from _history_lines(of)


def _kernel_lines(of: Page) -> Iterator[Line]:
    if (kernel := _kernel(of)) is not None:
        yield [("kernel: ", ""), ("{}:{}".format(*_place(kernel)), "type"), (f"  {kernel.__name__}", "")]
    else:
        yield [(f"kernel: none{', the function body of the standard runs it' if of.body else ''}", "warning")]


def _attribute_text(attribute: AttributePage) -> str:
    if attribute.required:
        presence = "required"
    else:
        presence = "optional" if attribute.default is None else f"default {value_text(attribute.default)}"
    return f"{attribute.kind}, {presence}" if attribute.kind else presence


def _slot_lines(title: str, slots: Iterable[SlotPage]) -> Iterator[Line]:
    for place, slot in enumerate(slots):
        if not place:
            yield from ([], [(title, "heading")])
        types = slot.variable or " ".join(slot.types)
        presence = "" if slot.presence == "required" else f", {slot.presence}" if types else slot.presence
        if slot.presence == "variadic":
            presence += f" (at least {slot.min_arity}{'' if slot.homogeneous else ', types may differ'})"
        yield [(f"  {slot.name}", "name"), (f"  {types}{presence}", "type")]
        yield from _wrapped(slot.text, "      ")


def _history_lines(of: Page) -> Iterator[Line]:
    known = versions(of.domain)[of.domain, of.name]
    steps = {step.newer: step for step in opdiff.history(of.domain, of.name)}
    width = len(str(known[-1]))
    yield from ([], [("History", "heading")])
    for version in known:
        number: Line = [(f"{'*' if version == of.since_version else ' '} {version:>{width}}", "name")]
        if (step := steps.get(version)) is None:
            yield number
            continue
        yield [*number, (f"  {step.verdict}", "error" if step.breaking else "good")]
        for text in _change_texts(step):
            yield from _wrapped(text, " " * (width + 6))


def _change_texts(of: Difference) -> list[str]:
    return [change.text for change in of.changes] + (["the text changed"] if of.prose else [])


def difference_lines(of: Difference) -> Iterator[Line]:
    """The verdict in a line, then each change, then the lines of the text that differ."""
    yield [(f"{of.name} {of.older} to {of.newer}: ", "heading"), *_summary(of)]
    breaking = [change.text for change in of.changes if change.breaking]
    harmless = [change.text for change in of.changes if not change.breaking]
    for title, texts in (("breaking", breaking), ("not breaking", harmless)):
        if texts and len(of.changes) > 1:
            yield from ([], [(title, "heading")])
            for text in texts:
                yield from _wrapped(text, "  ")
    if of.prose:
        yield from ([], [("the text", "heading")])
        for line in of.prose:
            yield [(f"  {line}", {"-": "error", "+": "good"}.get(line[:1], "faint"))]


def _summary(of: Difference) -> Line:
    """The summary in one line; where much changed, the changes stand below it."""
    if len(of.changes) <= 1:
        return [(of.summary, "error" if of.breaking else "good")]
    same = f", same {opdiff.listed(of.same)}" if of.same else ""
    return [(of.verdict + same, "error" if of.breaking else "good"), (f", {len(of.changes)} changes", "")]


def _wrapped(text: str, indent: str) -> Iterator[Line]:
    """Text with its own line breaks kept; what is too long for the screen flows into the next line of its paragraph."""
    width = min(screen().width, _LONGEST_LINE)
    rest, inner, verbatim = "", "", False
    for line in text.splitlines():
        words = line.strip()
        margin = indent + line[: len(line) - len(line.lstrip())]
        if rest and margin == inner and not verbatim and _PROSE.match(words):
            words = f"{rest} {words}"
        elif rest:
            yield [(inner + rest, "")]
        verbatim ^= words.startswith("```")
        inner = margin
        parts = textwrap.wrap(words, width, initial_indent=inner, subsequent_indent=inner, break_long_words=False)
        rest = parts.pop().strip() if len(parts) > 1 else ""
        yield from ([(part, "")] for part in parts or [""])
    if rest:
        yield [(inner + rest, "")]


# JSON


def table_form(of: Table) -> dict[str, Any]:
    """The table as `jsonform.document` takes it."""
    operators = [
        {
            "domain": _domain_name(row.domain),
            "name": row.name,
            "versions": [{"since_version": v, "runs_by": what} for v, what in row.versions.items()],
        }
        for row in of.rows
    ]
    return {"opset": of.opset, "operators": operators, "totals": of.totals}


def page_form(of: Page) -> dict[str, Any]:
    """The page as `jsonform.document` takes it."""
    kernel = _kernel(of)
    content = {**asdict(of), "domain": _domain_name(of.domain)}
    for attribute in content["attributes"]:
        attribute["default"] = _default_form(attribute["default"])
    content["kernel"] = None
    if kernel is not None:
        file, line = source_of(kernel)
        content["kernel"] = {"function": kernel.__name__, "file": file, "line": line}
    content["history"] = [difference_form(step) for step in opdiff.history(of.domain, of.name)]
    return content


def _default_form(default: Any) -> Any:
    return default.tolist() if isinstance(default, np.ndarray) else default


def difference_form(of: Difference) -> dict[str, Any]:
    """The difference as `jsonform.document` takes it."""
    return {**asdict(of), "breaking": of.breaking, "verdict": of.verdict, "summary": of.summary}
