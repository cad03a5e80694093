"""The only reader of onnx.defs: which versions, attributes, defaults, types and slots the standard has.

Each is read once into a `Schema`; looking one up again costs a dictionary access. onnx builds all of its OpSchemas when
it is asked for the first, which takes longer than compiling most models. So what they say is kept in a file, for one
release; onnx is asked where another is installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import onnx.defs
from onnx import AttributeProto
from onnx.defs import OpSchema

from onnxeval.attributes import attribute_value, kind_name, kind_of
from onnxeval.dtypes import BY_NAME, NAMES, DType, name_of
from onnxeval.errors import ModelError
from onnxeval.external import NO_FILES, Files
from onnxeval.registry import OpKey
from onnxeval.values import type_string

#: The domains whose operators onnx.defs describes.
STANDARD_DOMAINS = frozenset({"", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"})

#: An attribute of the first opsets that says nothing, and is passed on to no kernel.
_LEGACY = "consumed_inputs"

#: onnx.defs counts opsets in 32 bits.
_LARGEST_OPSET = 2**31 - 1

#: An input's type in short: a tensor's dtype, another value's type string, None where it is absent.
TypeKey: TypeAlias = DType | str | None


@dataclass(frozen=True, slots=True)
class Slot:
    """One formal input or output. ``variable`` is the type variable it shares with others, or ""."""

    name: str
    allowed: frozenset[str]
    variable: str
    optional: bool
    variadic: bool
    homogeneous: bool
    min_arity: int


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: its kind (an AttributeProto.AttributeType), and its default, None where it has none."""

    name: str
    kind: int
    required: bool
    default: Any


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """What the standard says of one version of one operator."""

    key: OpKey
    section: str
    deprecated: bool
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    min_inputs: int
    max_inputs: int
    min_outputs: int
    max_outputs: int
    attributes: Mapping[str, Attribute]
    #: The names of the attributes that must be given.
    required: tuple[str, ...]
    #: What a node without attributes passes on.
    defaults: Mapping[str, Any]
    #: Whether an attribute or a sub-graph decides the type of an output: no required input has the same.
    chooses_types: bool
    #: Whether the standard also says it as a function, one that may depend on the types.
    has_body: bool
    #: Input type combinations that were checked before and found right.
    accepted: set[tuple[TypeKey, ...]] = field(default_factory=set)
    #: The same for outputs.
    accepted_outputs: set[tuple[TypeKey, ...]] = field(default_factory=set)

    @property
    def operator(self) -> str:
        """Its name in the standard's own domain; "" in all others."""
        return "" if self.key.domain else self.key.op_type

    @property
    def label(self) -> str:
        return str(self.key)

    @property
    def definition(self) -> Any:  # an OpSchema; its stubs miss what is read of it
        """Onnx's own object."""
        return onnx.defs.get_schema(self.key.op_type, self.key.since_version, self.key.domain)


def canonical_domain(domain: str) -> str:
    """``ai.onnx`` is the long spelling of the empty domain."""
    return "" if domain == "ai.onnx" else domain


@cache
def newest_opset(domain: str) -> int:
    """The newest version of a standard domain that the installed onnx knows; 0 for every other domain."""
    oldest_and_newest = onnx.defs.C.schema_version_map()  # reading all schemas for this would cost 25 ms
    return int(oldest_and_newest.get(domain, (0, 0))[1]) if domain in STANDARD_DOMAINS else 0


@cache
def released_opset(domain: str, ir_version: int) -> int:
    """The newest version of a standard domain that was released with an IR version or before it; 1 where none was."""
    from onnx.helper import OP_SET_ID_VERSION_MAP  # few models need it, and it takes onnx's tools along

    there = OP_SET_ID_VERSION_MAP.items()  # {(domain, version): the IR version of its release}
    return max(
        (version for (name, version), ir in there if name == (domain or "ai.onnx") and ir <= ir_version), default=1
    )


@cache
def find_schema(domain: str, op_type: str, opset: int) -> Schema | None:
    """The schema in force for an operator at an opset; None where there is none."""
    if rows := _kept_rows(domain, op_type):
        row = max((row for row in rows if row[0] <= opset), key=lambda row: int(row[0]), default=None)
        return None if row is None else _schema(domain, op_type, row)
    try:
        return _read(onnx.defs.get_schema(op_type, min(opset, _LARGEST_OPSET), domain))
    except onnx.defs.SchemaError:
        return None


@cache
def all_schemas() -> tuple[Schema, ...]:
    """Every schema there ever was, ordered by domain, name and version."""
    schemas = [_read(definition) for definition in onnx.defs.get_all_schemas_with_history()]
    return tuple(sorted(schemas, key=lambda s: s.key))


@cache
def known_versions(domain: str, op_type: str) -> tuple[int, ...]:
    """The since_versions of an operator in the standard, oldest first."""
    return tuple(s.key.since_version for s in all_schemas() if s.key[:2] == (domain, op_type))


#: What `row_of` gives for every version of every operator of one release of onnx: the release, then an operator a line,
#: ``domain:op_type`` and its rows.
KEPT = Path(__file__).with_name("schemas.txt")


@cache
def _kept() -> Mapping[str, str]:
    """The lines of that file; none where another release is installed."""
    release, *lines = KEPT.read_text("utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines) if release == onnx.__version__ else {}


@cache
def _kept_rows(domain: str, op_type: str) -> Sequence[Any]:
    return json.loads(_kept().get(f"{domain}:{op_type}", "[]"))  # type: ignore[no-any-return]


def row_of(definition: OpSchema) -> Sequence[Any]:
    """What a schema says, as JSON can hold it."""
    body: Any = definition  # the stubs miss what is read of it
    parameters = [*definition.inputs, *definition.outputs]
    return (
        definition.since_version,
        definition.file.replace("\\", "/").rpartition("defs/")[2].partition("/")[0],
        definition.deprecated,
        body.has_function or body.has_context_dependent_function,
        (definition.min_input, definition.max_input, definition.min_output, definition.max_output),
        {parameter.type_str: sorted(parameter.types) for parameter in parameters},
        [_slot_row(parameter) for parameter in definition.inputs],
        [_slot_row(parameter) for parameter in definition.outputs],
        [_attribute_row(attribute) for _, attribute in sorted(definition.attributes.items())],
    )


def _slot_row(parameter: OpSchema.FormalParameter) -> Sequence[Any]:
    options = OpSchema.FormalParameterOption
    optional, variadic = parameter.option == options.Optional, parameter.option == options.Variadic
    return (parameter.name, parameter.type_str, optional, variadic, parameter.is_homogeneous, parameter.min_arity)


def _attribute_row(attribute: Any) -> Sequence[Any]:
    default = attribute.default_value
    value = attribute_value(default) if default.type != AttributeProto.UNDEFINED else None
    return (attribute.name, int(attribute.type.value), attribute.required, value)


_READ: dict[OpKey, Schema] = {}


def _read(definition: OpSchema) -> Schema:
    return _schema(canonical_domain(definition.domain), definition.name, row_of(definition))


def _schema(domain: str, op_type: str, row: Sequence[Any]) -> Schema:
    """The one Schema of a version that a row tells of."""
    since, section, deprecated, has_body, arity, types, input_rows, output_rows, attribute_rows = row
    min_inputs, max_inputs, min_outputs, max_outputs = arity
    key = OpKey(domain, op_type, since)
    if key not in _READ:
        inputs, outputs = ([_slot(types, *each) for each in rows] for rows in (input_rows, output_rows))
        attributes = {name: _attribute(name, *rest) for name, *rest in attribute_rows}
        given = {slot.variable for slot in inputs if not slot.optional and (slot.homogeneous or not slot.variadic)}
        # Models of the first opsets hold integers as constants, which the oldest schema of such an operator forgets.
        is_constant = not inputs and any(a.kind == AttributeProto.TENSOR for a in attributes.values())
        _READ[key] = Schema(
            key=key,
            section=section,
            deprecated=deprecated,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            min_inputs=min_inputs,
            max_inputs=max_inputs,
            min_outputs=min_outputs,
            max_outputs=max_outputs,
            attributes=MappingProxyType(attributes),
            required=tuple(a.name for a in attributes.values() if a.required),
            defaults=MappingProxyType({a.name: a.default for a in attributes.values() if a.name != _LEGACY}),
            chooses_types=not is_constant
            and any(len(slot.allowed) > 1 and slot.variable not in given for slot in outputs),
            has_body=has_body,
        )
    return _READ[key]


def _slot(types: Mapping[str, Iterable[str]], name: str, type_name: str, *rest: Any) -> Slot:
    return Slot(name, frozenset(types[type_name]), "" if "(" in type_name else type_name, *rest)


def _attribute(name: str, kind: int, required: bool, default: Any) -> Attribute:
    return Attribute(name, kind, required, tuple(default) if isinstance(default, list) else default)


def slot_at(slots: Sequence[Slot], place: int) -> Slot | None:
    """The formal parameter of an actual one: the last serves all further ones where it is variadic."""
    if place < len(slots):
        return slots[place]
    return slots[-1] if slots and slots[-1].variadic else None


def why_missing(domain: str, op_type: str, version: int, there: Sequence[int]) -> str:
    """What there is instead of an operator without a kernel: other versions (``there`` have one), or names like it."""
    name = f"{domain}.{op_type}" if domain else op_type
    versions = known_versions(domain, op_type)
    if domain in STANDARD_DOMAINS and versions and min(versions) > version:
        return f"{name} exists since opset {min(versions)}, the model imports {version}"
    if there:
        return f"{name} at opset {version} has no kernel, there are versions {', '.join(map(str, there))}"
    if domain not in STANDARD_DOMAINS:
        return f'{name} is neither a registered operator nor a function of the model (domain "{domain}")'
    if versions:
        return f"{name} at opset {version} has no kernel"
    from difflib import get_close_matches

    near = get_close_matches(op_type, {s.key.op_type for s in all_schemas() if s.key.domain == domain}, 1)
    return f"{name} is no operator of the standard" + (f" (did you mean {near[0]}?)" if near else "")


# Attributes


def is_free_attribute(name: str) -> bool:
    """Whether any node may have an attribute of this name, as onnx's own checker has it: a tool's notes to itself."""
    return name.startswith("__")


def attribute_values(
    attributes: Iterable[AttributeProto], schema: Schema, files: Files = NO_FILES
) -> Mapping[str, Any]:
    """All attributes of the schema, defaults filled in, None where there is none.

    Attributes with free names are left out. Raises ModelError for a missing, unknown, doubled or mistyped one.
    """
    given: dict[str, Any] = {}
    for attribute in attributes:
        name = attribute.name
        if (declared := schema.attributes.get(name)) is None:
            if is_free_attribute(name):
                continue
            known = ", ".join(schema.attributes) or "none"
            raise ModelError(f'{schema.label} has no attribute "{name}" (it has: {known})')
        if name in given:
            raise ModelError(f'the attribute "{name}" is given twice')
        if kind_of(attribute) != declared.kind:
            raise ModelError(
                f'the attribute "{name}" is of type {kind_name(kind_of(attribute))}, '
                f"{schema.label} declares {kind_name(declared.kind)}"
            )
        given[name] = attribute_value(attribute, files)
    if missing := [name for name in schema.required if name not in given]:
        raise ModelError(f"{schema.label} needs the attribute{'s' * (len(missing) > 1)} {', '.join(missing)}")
    if not given:
        return schema.defaults
    given.pop(_LEGACY, None)
    return {**schema.defaults, **given}


# Slots and types


def check_arity(schema: Schema, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Raise ModelError where a node lists too few or too many inputs or outputs, or leaves a required input blank.

    Any output may be blank: nobody wants it.
    """
    is_right = schema.min_inputs <= len(inputs) <= schema.max_inputs
    if is_right and schema.min_outputs <= len(outputs) <= schema.max_outputs and all(inputs):
        return
    for what, names, least, most in (
        ("input", inputs, schema.min_inputs, schema.max_inputs),
        ("output", outputs, schema.min_outputs, schema.max_outputs),
    ):
        if not least <= len(names) <= most:
            wanted = str(least) if least == most else f"{least} or more" if most >= 2**31 - 1 else f"{least} to {most}"
            raise ModelError(f"{schema.label} takes {wanted} {what}s, {len(names)} given")
    for place, name in enumerate(inputs):
        slot = slot_at(schema.inputs, place)
        if not (name or slot is None or slot.optional):
            raise ModelError(f'{schema.label} needs its input {place} "{slot.name}", it is blank')


def check_types(schema: Schema, types: tuple[TypeKey, ...]) -> None:
    """Raise TypeError where the inputs' types break the schema's constraints. Types found right are remembered."""
    if types in schema.accepted:
        return
    bound: dict[str, tuple[str, str]] = {}
    for place, key in enumerate(types):
        slot = slot_at(schema.inputs, place)
        given = _type_name(key)
        if slot is None:
            continue
        if given is None:  # a function's input that its call leaves out, read inside
            if not slot.optional:
                raise TypeError(f'input {place} "{slot.name}" is absent, {schema.label} needs it')
            continue
        given = _as_allowed(given, slot, "input")
        if _UNKNOWN in given:
            continue
        if not slot.variable or (slot.variadic and not slot.homogeneous):
            continue
        first_name, first_type = bound.setdefault(slot.variable, (slot.name, given))
        if first_type != given:
            raise TypeError(
                f'input {place} "{slot.name}" is {_readable(given)}, but "{first_name}" is {_readable(first_type)}: '
                f"{schema.label} wants one type ({slot.variable}) for both"
            )
    schema.accepted.add(types)


def check_outputs(schema: Schema, types: tuple[TypeKey, ...]) -> None:
    """Raise TypeError where an output's type is none that the version gives. Types found right are remembered."""
    if types in schema.accepted_outputs:
        return
    for place, key in enumerate(types):
        slot, given = slot_at(schema.outputs, place), _type_name(key)
        if given is not None and slot is not None:
            _as_allowed(given, slot, f"{schema.label}: the output")
    schema.accepted_outputs.add(types)


_UNKNOWN = type_string(None)


def _type_name(key: TypeKey) -> str | None:
    return key if key is None or isinstance(key, str) else f"tensor({NAMES.get(key, key.name)})"


def _as_allowed(given: str, slot: Slot, what: str) -> str:
    """The form of ``given`` that the slot allows: an optional that holds something flows as that thing itself.

    Of an empty sequence or optional the element type may be unknown; any that is allowed will do.
    """
    for form in (given, f"optional({given})"):
        if form in slot.allowed:
            return form
        known, unknown, _ = form.partition(_UNKNOWN)
        if unknown and any(allowed.startswith(known) for allowed in slot.allowed):
            return form
    allowed = ", ".join(sorted(map(_readable, slot.allowed)))
    raise TypeError(f'{what} "{slot.name}" is {_readable(given)}, allowed: {allowed}')


def _readable(type_name: str) -> str:
    """``float32`` for ``tensor(float)``; what is not a plain tensor stays as it is."""
    inner = type_name.removeprefix("tensor(").removesuffix(")")
    return name_of(BY_NAME[inner]) if type_name == f"tensor({inner})" and inner in BY_NAME else type_name
