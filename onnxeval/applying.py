"""One operator without a model: a model is made around it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, helper

from onnxeval.attributes import kind_name
from onnxeval.dtypes import BY_NAME, ELEMENT_TYPES, NAMES, STRING, DType, Tensor, is_float, is_integer, name_of
from onnxeval.errors import InputError
from onnxeval.files.protobuf import message_of
from onnxeval.files.typetext import DTYPES, parse_type
from onnxeval.registry import STANDARD, InputTypes, signature_of
from onnxeval.schema import STANDARD_DOMAINS, Schema, find_schema, newest_opset, slot_at
from onnxeval.tensors import type_proto
from onnxeval.values import SequenceType, TensorType, Value, ValueType, type_of

#: What a literal is taken for where its slot allows it, in this order.
_PREFERRED = tuple(map(np.dtype, (np.float32, np.int64, np.bool_, object, np.float64, np.int32, np.uint8)))
_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator at an opset of its domain; ``schema`` is None where only a kernel is known."""

    domain: str
    name: str
    opset: int
    schema: Schema | None
    inputs: tuple[str, ...]
    variadic: bool
    types: InputTypes | None = None  # what the kernel tells where there is no schema

    def place_of(self, slot: str) -> int | None:
        """The place of an input by its name."""
        return self.inputs.index(slot) if slot in self.inputs else None

    def kind_of(self, attribute: str) -> int | None:
        """The kind of an attribute; None where nothing tells. Raises InputError where there is no such attribute."""
        if self.schema is None:
            return None
        if (found := self.schema.attributes.get(attribute)) is None:
            known = ", ".join(self.schema.attributes) or "none"
            raise InputError(f"{self.schema.label} has no attribute {attribute!r}", hint=f"it has: {known}")
        return found.kind

    def allowed(self, place: int) -> frozenset[str]:
        """The types that an input may have, as schemas write them; none where anything goes."""
        if self.types is not None:
            return frozenset(f"tensor({NAMES[dtype]})" for dtype in self.types.allowed[self.types.letter(place)])
        slot = slot_at(self.schema.inputs, place) if self.schema is not None else None
        return slot.allowed if slot is not None else frozenset()

    def variable(self, place: int) -> str:
        """The type variable that an input shares with others, "" where there is none."""
        if self.types is not None:
            return self.types.letter(place)
        slot = slot_at(self.schema.inputs, place) if self.schema is not None else None
        return slot.variable if slot is not None and slot.homogeneous else ""


def operator_at(domain: str, name: str, opset: int | None) -> Operator:
    """The operator as of an opset, the newest by default. Raises InputError where there is none."""
    if domain in STANDARD_DOMAINS:
        newest = newest_opset(domain)
        opset = newest if opset is None else opset
        if opset > newest:
            raise InputError(f"the newest opset of {domain or 'ai.onnx'} is {newest}, not {opset}")
        schema = find_schema(domain, name, opset)
        if schema is None or schema.deprecated:
            raise InputError(f"{name} {'is deprecated' if schema else 'does not exist'} at opset {opset}")
        variadic = bool(schema.inputs) and schema.inputs[-1].variadic
        return Operator(domain, name, opset, schema, tuple(slot.name for slot in schema.inputs), variadic)
    there = [version for version in STANDARD.versions(domain, name) if opset is None or version <= opset]
    if not there:
        raise InputError(f"nothing here runs {domain}.{name}{'' if opset is None else f' at opset {opset}'}")
    kernel = next(k for key, k in STANDARD.items() if key == (domain, name, there[-1]))
    signature = signature_of(kernel)
    shown = there[-1] if opset is None else opset
    return Operator(domain, name, shown, None, signature.positional, signature.variadic, signature.types)


def wanted_type(operator: Operator, place: int, known: Mapping[str, DType], guess: DType | None) -> ValueType | None:
    """What a value typed in place is read as.

    ``known`` are the types of variables that other inputs have; ``guess`` is what the value alone would be.
    """
    allowed = operator.allowed(place)
    if allowed and all(name.startswith("seq(") for name in allowed):
        return SequenceType(None)
    if (dtype := known.get(operator.variable(place))) is not None:
        return TensorType(dtype)
    tensors = {
        dtype for name in allowed if (dtype := BY_NAME.get(name.removeprefix("tensor(").rstrip(")"))) is not None
    }
    if not tensors or guess in tensors:
        return TensorType(guess) if guess is not None else None
    numeric = guess is not None and guess != STRING
    fitting = [d for d in _PREFERRED if d in tensors and (is_float(d) or is_integer(d)) == numeric]
    return TensorType(fitting[0] if fitting else min(tensors, key=name_of))


def require_inputs(operator: Operator, given: Collection[int]) -> None:
    """Raise InputError that names the inputs which the operator needs and nothing is given for."""
    if operator.schema is None:
        return
    missing = [
        slot.name
        for place, slot in enumerate(operator.schema.inputs)
        if place not in given and not slot.optional and (not slot.variadic or slot.min_arity)
    ]
    if missing:
        raise InputError(
            f"{operator.schema.label} needs a value for the input{'s' * (len(missing) > 1)} {', '.join(missing)}",
            hint=f"--input VALUE gives the next one, --input {missing[0]}=VALUE one by its name",
        )


def model_of(
    operator: Operator, inputs: Mapping[int, Value], attributes: Sequence[AttributeProto], outputs: int
) -> ModelProto:
    """A model of one node; its inputs and outputs are called as the standard calls them."""
    names = [_input_name(operator, place) for place in range(max(inputs, default=-1) + 1)]
    results = _output_names(operator, outputs, names)
    node = helper.make_node(
        operator.name,
        [name if place in inputs else "" for place, name in enumerate(names)],
        results,
        domain=operator.domain,
    )
    node.attribute.extend(attributes)
    graph = helper.make_graph(
        [node],
        operator.name,
        [helper.make_value_info(names[place], type_proto(type_of(value))) for place, value in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in results],
    )
    imports = [helper.make_opsetid(operator.domain, operator.opset)]
    if operator.domain:
        imports.append(helper.make_opsetid("", newest_opset("")))
    model: ModelProto = helper.make_model(graph, opset_imports=imports)
    return model


def _input_name(operator: Operator, place: int) -> str:
    if place < len(operator.inputs) - operator.variadic:
        return operator.inputs[place]
    if not operator.variadic or not operator.inputs:
        return f"input_{place}"
    return f"{operator.inputs[-1]}_{place - len(operator.inputs) + 1}"


def _output_names(operator: Operator, count: int, taken: Sequence[str]) -> list[str]:
    slots = operator.schema.outputs if operator.schema is not None else ()
    names: list[str] = []
    for place in range(count):
        slot = slot_at(slots, place)
        name = slot.name if slot is not None else f"output_{place}"
        if slot is not None and slot.variadic:
            name = f"{name}_{place - len(slots) + 1}"
        while name in taken or name in names:
            name += "_out"
        names.append(name)
    return names


def outputs_of(operator: Operator, wanted: int | None) -> int:
    """How many outputs to ask for: those that are required, one at least. Raises InputError for too many or too few."""
    schema = operator.schema
    if schema is None:
        return 1 if wanted is None else wanted
    if wanted is None:
        return max(schema.min_outputs, 1)
    if not schema.min_outputs <= wanted <= schema.max_outputs:
        least, most = schema.min_outputs, schema.max_outputs
        known = f"{least} to {most} outputs" if least < most else f"{most} output{'s' * (most != 1)}"
        raise InputError(f"{schema.label} has {known}, not {wanted}")
    return wanted


# Attributes


def attribute_of(operator: Operator, name: str, content: Any, text: str, tensor: Tensor | None) -> AttributeProto:
    """An attribute from what was typed.

    ``content`` is the text parsed as JSON, the text itself where it is none; ``tensor`` is what it means as a value.
    Raises InputError where it is not of the attribute's kind.
    """
    kind = operator.kind_of(name)
    if kind is None:
        try:
            return helper.make_attribute(name, content)
        except (TypeError, ValueError) as error:
            raise InputError(f"--attr {name}={text}: {error}") from error
    if kind in _GRAPHS or kind == AttributeProto.SPARSE_TENSOR:
        raise InputError(f"the attribute {name!r} is a {kind_name(kind).lower()}, which cannot be typed: write a model")
    if kind == AttributeProto.TENSOR:
        if tensor is None:
            raise InputError(f"--attr {name}={text}: a tensor is wanted")
        return helper.make_attribute(name, message_of(tensor, name))
    if kind == AttributeProto.INT and text.lower() in DTYPES:
        content = ELEMENT_TYPES[DTYPES[text.lower()]]  # `to=float16` is easier to type than 10
    value = _of_kind(kind, content, text)
    if value is None:
        near = get_close_matches(text.lower(), DTYPES, 1) if kind == AttributeProto.INT else []
        hint = f"did you mean {near[0]}?" if near else ""
        raise InputError(f"--attr {name}={text}: {kind_name(kind)} is wanted", hint=hint)
    try:
        return helper.make_attribute(name, value, attr_type=kind)
    except (OverflowError, ValueError):
        raise InputError(f"--attr {name}={text}: more than {kind_name(kind)} can hold") from None


def wants_tensor(operator: Operator, attribute: str) -> bool:
    """Whether an attribute is a tensor."""
    return operator.kind_of(attribute) == AttributeProto.TENSOR


def _of_kind(kind: int, content: Any, text: str) -> Any:
    """What was typed, as an attribute's kind wants it; None where it is something else."""
    is_number = isinstance(content, (int, float)) and not isinstance(content, bool)
    items = content if isinstance(content, list) else [content]
    match kind:
        case AttributeProto.INT:
            return int(content) if is_number and content % 1 == 0 else None  # neither infinity nor NaN leaves 0
        case AttributeProto.FLOAT:
            return float(content) if is_number else None
        case AttributeProto.STRING:
            return content if isinstance(content, str) else text
        case AttributeProto.INTS:
            whole = all(isinstance(item, int) and not isinstance(item, bool) for item in items)
            return items if whole else None
        case AttributeProto.FLOATS:
            numbers = all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in items)
            return [float(item) for item in items] if numbers else None
        case AttributeProto.STRINGS:
            return items if all(isinstance(item, str) for item in items) else None
        case AttributeProto.TYPE_PROTO:
            try:
                return type_proto(parse_type(text))
            except ValueError:
                return None
    return None
