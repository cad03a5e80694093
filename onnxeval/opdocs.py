"""The standard's documentation as data: the operators there are, and the page of each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import helper

from onnxeval.attributes import kind_name
from onnxeval.dtypes import BY_NAME, STRING, SUB_BYTE_BITS, is_float, is_integer, is_signed, name_of
from onnxeval.functions import function_body, has_typed_function_body
from onnxeval.schema import (
    STANDARD_DOMAINS,
    Schema,
    Slot,
    all_schemas,
    canonical_domain,
    find_schema,
    known_versions,
    newest_opset,
)


@dataclass(frozen=True, slots=True)
class Standard:
    """Which standard is installed: onnx's release, the newest opset of each domain, the newest IR version."""

    release: str
    opsets: dict[str, int]
    ir_version: int


@dataclass(frozen=True, slots=True)
class SlotPage:
    """One input or output. ``presence`` is required, optional or variadic."""

    name: str
    presence: str
    variable: str
    types: tuple[str, ...]
    min_arity: int
    homogeneous: bool
    text: str


@dataclass(frozen=True, slots=True)
class AttributePage:
    """One attribute; ``default`` is None where it has none."""

    name: str
    kind: str
    required: bool
    default: Any
    text: str


@dataclass(frozen=True, slots=True)
class TypeVariable:
    """A type that several slots share, and the types it may stand for."""

    name: str
    types: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """What the standard says of one version of an operator.

    ``body`` tells where its function body comes from, "" where it has none.
    """

    domain: str
    name: str
    since_version: int
    section: str
    deprecated: bool
    text: str
    inputs: tuple[SlotPage, ...]
    outputs: tuple[SlotPage, ...]
    variables: tuple[TypeVariable, ...]
    attributes: tuple[AttributePage, ...]
    body: str

    @property
    def title(self) -> str:
        return f"{self.domain + '.' if self.domain else ''}{self.name}-{self.since_version}"


def standard() -> Standard:
    """The standard as the installed onnx has it."""
    domains = sorted(STANDARD_DOMAINS)
    opsets = {domain or "ai.onnx": newest_opset(domain) for domain in domains}
    return Standard(onnx.__version__, opsets, int(onnx.IR_VERSION))


def operators(domain: str | None = None) -> dict[tuple[str, str], tuple[int, ...]]:
    """(domain, name) -> its since_versions, oldest first, of one domain or of all."""
    found: dict[tuple[str, str], list[int]] = {}
    for schema in all_schemas():
        if domain is None or schema.key.domain == canonical_domain(domain):
            found.setdefault((schema.key.domain, schema.key.op_type), []).append(schema.key.since_version)
    return {key: tuple(versions) for key, versions in found.items()}


def page(domain: str, name: str, opset: int | None = None) -> Page | None:
    """The page of the version in force at an opset, of the newest without one; None where there is none."""
    versions = known_versions(domain, name)
    schema = find_schema(domain, name, opset if opset is not None else max(versions, default=0))
    return _page(schema) if schema else None


def _page(schema: Schema) -> Page:
    definition = schema.definition
    attributes = (
        AttributePage(
            a.name, kind_name(a.kind), a.required, a.default, clean(definition.attributes[a.name].description)
        )
        for a in schema.attributes.values()
    )
    if has_typed_function_body(schema):
        body = "built from the node's input types"
    else:
        body = "fixed" if definition.has_function else ""
    return Page(
        domain=schema.key.domain,
        name=schema.key.op_type,
        since_version=schema.key.since_version,
        section=schema.section,
        deprecated=schema.deprecated,
        text=clean(definition.doc or ""),
        inputs=_slots(schema.inputs, definition.inputs),
        outputs=_slots(schema.outputs, definition.outputs),
        variables=tuple(map(_variable, definition.type_constraints)),
        attributes=tuple(attributes),
        body=body,
    )


def _slots(slots: Sequence[Slot], parameters: Sequence[Any]) -> tuple[SlotPage, ...]:
    return tuple(
        SlotPage(
            name=slot.name,
            presence="variadic" if slot.variadic else "optional" if slot.optional else "required",
            variable=slot.variable,
            types=_readable(sorted(slot.allowed, key=_type_order)),
            min_arity=slot.min_arity,
            homogeneous=slot.homogeneous,
            text=clean(parameter.description),
        )
        for slot, parameter in zip(slots, parameters, strict=True)
    )


def _variable(constraint: Any) -> TypeVariable:
    types = _readable(sorted(constraint.allowed_type_strs, key=_type_order))
    return TypeVariable(constraint.type_param_str, types, clean(constraint.description))


def _readable(types: Iterable[str]) -> tuple[str, ...]:
    """``float32`` for ``tensor(float)``, also inside sequences and optionals."""
    return tuple(
        re.sub(r"tensor\((\w+)\)", lambda m: name_of(BY_NAME[m[1]]) if m[1] in BY_NAME else m[0], text)
        for text in types
    )


def _type_order(type_name: str) -> tuple[str, int, int, str]:
    """Tensors first; floats, integers and the rest, narrow ones before wide ones."""
    around = type_name.partition("tensor(")[0]
    element = re.search(r"tensor\((\w+)\)", type_name)
    dtype = BY_NAME.get(element[1]) if element else None
    if dtype is None:
        return around, 0, 0, type_name
    wide_float = is_float(dtype) and dtype.itemsize > 1
    kinds = (wide_float, is_signed(dtype), is_integer(dtype), is_float(dtype), dtype != STRING)
    kind = next((place for place, holds in enumerate(kinds) if holds), len(kinds))
    bits = SUB_BYTE_BITS.get(dtype, 8 * dtype.itemsize)
    return around, kind, bits, type_name


def clean(text: str) -> str:
    """A text without the margin that its place in a source file gave it."""
    return inspect.cleandoc(text)


def value_text(value: Any) -> str:
    """An attribute's value as the standard's tables write it."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return str(value)


def body_text(of: Page) -> str:
    """The fixed function body in the standard's text form, "" where there is none."""
    schema = find_schema(of.domain, of.name, of.since_version)
    body = function_body(schema, of.since_version) if schema and of.body == "fixed" else None
    return "\n".join(str(helper.printable_node(node)) for node in body.node) if body else ""
