"""Operators without a schema: what the Python signature of a kernel says of attributes, inputs and outputs.

Annotations that Python cannot evaluate, and kinds they do not tell, are not checked.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from onnx import AttributeProto

from onnxeval.attributes import attribute_value, kind_name, kind_of
from onnxeval.errors import ModelError
from onnxeval.external import NO_FILES, Files
from onnxeval.registry import Kernel, signature_of

_KINDS: Mapping[Any, int] = MappingProxyType(
    {
        int: AttributeProto.INT,
        bool: AttributeProto.INT,
        float: AttributeProto.FLOAT,
        str: AttributeProto.STRING,
        np.ndarray: AttributeProto.TENSOR,
    }
)
_LISTS: Mapping[Any, int] = MappingProxyType(
    {int: AttributeProto.INTS, float: AttributeProto.FLOATS, str: AttributeProto.STRINGS}
)


class CustomAttribute(NamedTuple):
    """An attribute that a kernel takes: its kind (an AttributeProto.AttributeType), None where that is not told."""

    kind: int | None
    required: bool


class CustomSchema(NamedTuple):
    """What a kernel's signature says of its operator.

    ``inputs`` are the names of the positional ones, ``required`` those of them that must be given, ``optional`` those
    that need not; more may follow where it is ``variadic``. ``outputs`` is how many there are at most, None
    where that is not told.
    """

    inputs: tuple[str, ...]
    required: frozenset[str]
    optional: frozenset[str]
    variadic: bool
    outputs: int | None
    attributes: Mapping[str, CustomAttribute]


@cache
def custom_schema(kernel: Kernel) -> CustomSchema:
    """Read what a kernel's signature and annotations say of its operator."""
    signature, hints = signature_of(kernel), _hints(kernel)
    attributes = {
        name: CustomAttribute(_kind(hints.get(name)), default is inspect.Parameter.empty)
        for name, default in signature.attributes.items()
    }
    return CustomSchema(
        inputs=signature.positional,
        required=frozenset(n for n in signature.positional if n in hints and not _admits_none(hints[n])),
        optional=frozenset(n for n in signature.positional if n in hints and _admits_none(hints[n])),
        variadic=signature.variadic,
        outputs=_count(hints.get("return")) if signature.most_outputs is None else signature.most_outputs,
        attributes=MappingProxyType(attributes),
    )


def custom_attributes(attributes: Iterable[AttributeProto], kernel: Kernel, files: Files = NO_FILES) -> dict[str, Any]:
    """The attributes that are given; Python's defaults stand for the others.

    Raises ModelError for a missing, unknown, doubled or mistyped attribute.
    """
    declared = custom_schema(kernel).attributes
    given: dict[str, Any] = {}
    for attribute in attributes:
        name = attribute.name
        if name not in declared:
            raise ModelError(f'it has no attribute "{name}" (it has: {", ".join(declared) or "none"})')
        if name in given:
            raise ModelError(f'the attribute "{name}" is given twice')
        wanted = declared[name].kind
        if wanted is not None and kind_of(attribute) != wanted:
            kinds = f"{kind_name(kind_of(attribute))}, the operator takes {kind_name(wanted)}"
            raise ModelError(f'the attribute "{name}" is of type {kinds}')
        given[name] = attribute_value(attribute, files)
    if missing := [name for name, attribute in declared.items() if attribute.required and name not in given]:
        raise ModelError(f"it needs the attribute{'s' * (len(missing) > 1)} {', '.join(missing)}")
    return given


def check_custom_arity(kernel: Kernel, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Raise ModelError where a node lists too many inputs or outputs, or lacks an input that cannot be absent."""
    schema = custom_schema(kernel)
    if len(inputs) > len(schema.inputs) and not schema.variadic:
        raise ModelError(f"it takes {len(schema.inputs)} inputs, {len(inputs)} given")
    for place, name in enumerate(schema.inputs):
        if name in schema.required and (place >= len(inputs) or not inputs[place]):
            raise ModelError(f'it needs its input {place} "{name}"')
    listed = max((place for place, name in enumerate(outputs, 1) if name), default=0)
    if schema.outputs is not None and listed > schema.outputs:
        raise ModelError(f"it gives {schema.outputs} output{'s' * (schema.outputs != 1)}, {listed} listed")


@cache
def _hints(kernel: Kernel) -> Mapping[str, Any]:
    try:
        return get_type_hints(inspect.unwrap(kernel))
    except Exception:  # a stranger's annotation may raise anything
        return {}


def _kind(hint: Any) -> int | None:
    """The kind of attribute that an annotation means; None where it does not tell."""
    members = [member for member in _members(hint) if member is not NoneType]
    if len(members) != 1:
        return None
    origin = get_origin(members[0]) or members[0]
    if origin in _KINDS:
        return _KINDS[origin]
    items = get_args(members[0])
    return _LISTS.get(items[0]) if items and isinstance(origin, type) and issubclass(origin, Sequence) else None


def _admits_none(hint: Any) -> bool:
    return hint is Any or NoneType in _members(hint)


def _members(hint: Any) -> tuple[Any, ...]:
    hint = _meaning(hint)
    if get_origin(hint) in (Union, UnionType):
        return tuple(member for part in get_args(hint) for member in _members(part))
    return (hint,)


def _meaning(hint: Any) -> Any:
    """What a name of a ``type`` statement stands for, as NumPy's NDArray is from Python 3.12 on; or the hint itself."""
    try:
        while hasattr(hint, "__value__"):
            arguments = get_args(hint)
            hint = hint.__value__[arguments] if arguments else hint.__value__
    except Exception:  # it is evaluated only now, and may raise anything
        return Any
    return hint


def _count(hint: Any) -> int | None:
    """How many outputs a return annotation means; None where it does not tell."""
    hint = _meaning(hint)
    if get_origin(hint) is np.ndarray:
        return 1
    items = get_args(hint) if get_origin(hint) is tuple else ()
    return len(items) if items and Ellipsis not in items else None
