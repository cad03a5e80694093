"""The only reader of onnx.defs: which versions, attributes, defaults, types and slots the standard has.

Each is read once into a `Schema`; looking one up again costs a dictionary access. onnx builds all of its OpSchemas when
it is asked for the first, which takes longer than compiling most models. So what they say is kept in a file, for one
release; onnx is asked where another is installed, and imported only then.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from onnx import AttributeProto

from onnxeval.attributes import attribute_value
from onnxeval.dtypes import DType
from onnxeval.registry import OpKey

if TYPE_CHECKING:
    from onnx.defs import OpSchema

#: The domains whose operators onnx.defs describes.
STANDARD_DOMAINS = frozenset({"", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"})

#: An attribute of the first opsets that says nothing, and is passed on to no kernel.
LEGACY = "consumed_inputs"

#: onnx.defs counts opsets in 32 bits.
_LARGEST_OPSET = 2**31 - 1

#: An input's type in short: a tensor's dtype, another value's type string, None where it is absent.
TypeKey: TypeAlias = DType | str | None


class Slot(NamedTuple):
    """One formal input or output. ``variable`` is the type variable it shares with others, or ""."""

    name: str
    allowed: frozenset[str]
    variable: str
    optional: bool
    variadic: bool
    homogeneous: bool
    min_arity: int


class Attribute(NamedTuple):
    """One attribute: its kind (an AttributeProto.AttributeType), and its default, None where it has none."""

    name: str
    kind: int
    required: bool
    default: Any


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """What the standard says of one version of one operator."""

    key: OpKey
    #: Its name in the standard's own domain; "" in all others.
    operator: str
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
    #: Whether any of its attributes is a graph.
    takes_graphs: bool
    #: Input type combinations that were checked before and found right.
    accepted: set[tuple[TypeKey, ...]] = field(default_factory=set)
    #: The same for outputs.
    accepted_outputs: set[tuple[TypeKey, ...]] = field(default_factory=set)

    @property
    def label(self) -> str:
        return str(self.key)

    @property
    def definition(self) -> Any:  # an OpSchema; its stubs miss what is read of it
        """The object of onnx itself."""
        return _definition(self.key)


@cache
def _definition(key: OpKey) -> Any:
    import onnx.defs

    return onnx.defs.get_schema(key.op_type, key.since_version, key.domain)


def canonical_domain(domain: str) -> str:
    """``ai.onnx`` is the long spelling of the empty domain."""
    return "" if domain == "ai.onnx" else domain


@cache
def newest_opset(domain: str) -> int:
    """The newest version of a standard domain that the installed onnx knows; 0 for every other domain."""
    if domain not in STANDARD_DOMAINS:
        return 0
    if domain in (kept := _kept()[0]):
        return kept[domain]
    import onnx.defs

    return int(onnx.defs.C.schema_version_map().get(domain, (0, 0))[1])  # reading all schemas for this would cost 25 ms


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
    versions = _kept_versions(domain, op_type)
    if versions:
        kept = [row for since, row in versions if since <= opset]
        return _schema(domain, op_type, json.loads(kept[-1])) if kept else None
    import onnx.defs

    try:
        return _read(onnx.defs.get_schema(op_type, min(opset, _LARGEST_OPSET), domain))
    except onnx.defs.SchemaError:
        return None


@cache
def all_schemas() -> tuple[Schema, ...]:
    """Every schema there ever was, ordered by domain, name and version."""
    import onnx.defs

    schemas = [_read(definition) for definition in onnx.defs.get_all_schemas_with_history()]
    return tuple(sorted(schemas, key=lambda s: s.key))


@cache
def known_versions(domain: str, op_type: str) -> tuple[int, ...]:
    """The since_versions of an operator in the standard, oldest first."""
    return tuple(s.key.since_version for s in all_schemas() if s.key[:2] == (domain, op_type))


#: One release of onnx, the newest version of each domain in it, and sorted lines, one for a version of an operator:
#: ``domain:op_type``, the version, and what `row_of` gives.
KEPT = Path(__file__).with_name("schemas.txt")


@cache
def _kept() -> tuple[Mapping[str, int], bytes]:
    """The newest versions and the lines in that file; nothing where another release is installed."""
    release, newest, lines = KEPT.read_bytes().split(b"\n", 2)
    return (json.loads(newest), lines) if is_installed(release.decode()) else ({}, b"")


def is_installed(release: str) -> bool:
    """Whether the installed onnx is sure to be this release, as its own folder tells; asking onnx would import it."""
    spec = find_spec("onnx")
    return spec is not None and Path(str(spec.origin)).parents[1].joinpath(f"onnx-{release}.dist-info").exists()


def _kept_versions(domain: str, op_type: str) -> list[tuple[int, bytes]]:
    """The versions of an operator in that file, oldest first, and what it says of each."""
    lines, begin = _kept()[1], f"{domain}:{op_type} ".encode(errors="replace")

    def begin_of_line(place: int) -> bytes:
        start = lines.rfind(b"\n", 0, place) + 1
        return lines[start : start + len(begin)]

    versions = []
    place = bisect_left(range(len(lines)), begin, key=begin_of_line)
    while lines.startswith(begin, place):
        end = lines.index(b"\n", place)
        since, row = lines[place + len(begin) : end].split(b" ", 1)
        versions.append((int(since), row))
        place = end + 1
    return versions


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
    options = type(parameter.option)
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
            operator="" if domain else op_type,
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
            defaults=MappingProxyType({a.name: a.default for a in attributes.values() if a.name != LEGACY}),
            chooses_types=not is_constant
            and any(len(slot.allowed) > 1 and slot.variable not in given for slot in outputs),
            has_body=has_body,
            takes_graphs=any(a.kind == AttributeProto.GRAPH for a in attributes.values()),
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
