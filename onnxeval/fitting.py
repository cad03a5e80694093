"""Whether what a node is given fits the schema of its operator: attributes, numbers of inputs and outputs, types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto

from onnxeval.attributes import attribute_value, kind_name, kind_of
from onnxeval.dtypes import BY_NAME, NAMES, name_of
from onnxeval.errors import ModelError
from onnxeval.external import NO_FILES, Files
from onnxeval.schema import LEGACY, Schema, Slot, TypeKey, slot_at
from onnxeval.values import Value, type_of, type_string


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
    given.pop(LEGACY, None)
    return {**schema.defaults, **given}


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


def type_key(value: Value) -> TypeKey:
    """What a schema knows the type of a value by; None for an absent one."""
    if value is None:
        return None
    return value.dtype if isinstance(value, np.ndarray) else type_string(type_of(value))


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
