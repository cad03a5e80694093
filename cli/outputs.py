"""Which values a run gives: `--output` by name or pattern, `--output-type` by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from onnxeval.errors import InputError

if TYPE_CHECKING:
    from onnxeval.model import Model
    from onnxeval.values import Value, ValueType


def known_values(model: Model) -> list[str]:
    """Every value that may be asked for, in the graph's order."""
    return list(dict.fromkeys([*model.values, *(output.name for output in model.outputs)]))


def choose_outputs(patterns: Sequence[str], operators: Sequence[str], model: Model) -> list[str]:
    """The values asked for by name or pattern, in the order asked, then those that nodes of the operators make."""
    from difflib import get_close_matches
    from fnmatch import translate
    from re import compile as compile_pattern

    known = known_values(model)
    every = set(known)
    chosen: dict[str, None] = {}

    def values_of(pattern: str) -> list[str]:
        if pattern in every:
            return [pattern]
        matches = compile_pattern(translate(pattern)).match
        if found := [name for name in known if matches(name)]:
            return found
        if "," in pattern:
            return [name for part in pattern.split(",") for name in values_of(part.strip())]
        near = get_close_matches(pattern, known, n=3)
        names = ", ".join(output.name for output in model.outputs)
        hint = f"did you mean {' or '.join(near)}?" if near else f"the outputs are: {names}"
        raise InputError(f"the model has no value {pattern!r}, as a name or as a pattern", hint=hint)

    for pattern in patterns:
        chosen.update(dict.fromkeys(values_of(pattern)))
    for operator in (part.strip() for text in operators for part in text.split(",")):
        made = model.made_by(operator)
        if not made:
            used = sorted({node.op_type for node in model.proto.graph.node})
            near = get_close_matches(operator, used, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"it has: {', '.join(used)}"
            raise InputError(f"the model's graph has no node of the operator {operator!r}", hint=hint)
        chosen.update(dict.fromkeys(made))
    return list(chosen)


def with_types(results: Mapping[str, Value], model: Model) -> dict[str, tuple[Value, ValueType | None]]:
    """Each result with the type that the model declares for it; an optional that holds nothing says so."""
    from onnxeval.values import EmptyOptional, OptionalType

    declared = {output.name: output.type for output in model.outputs}
    typed = {}
    for name, value in results.items():
        value_type = declared.get(name)
        if value is None:
            value = EmptyOptional(value_type.element if isinstance(value_type, OptionalType) else None)
        typed[name] = (value, value_type)
    return typed
