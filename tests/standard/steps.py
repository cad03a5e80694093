"""The steps from one version of an operator to the next, and what they change: the signature, the text, neither."""

import difflib
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from onnxeval.registry import OpKey
from onnxeval.schema import Schema, Slot, all_schemas


class Step(NamedTuple):
    """Two versions of an operator of which one follows the other."""

    older: Schema
    newer: Schema

    def __str__(self) -> str:
        return f"{self.older.key} -> {self.newer.key.since_version}"

    @property
    def operator(self) -> OpKey:
        return self.newer.key

    def keeps_signature(self) -> bool:
        """Whether attributes (name, kind, required, default) and slots (name, option) are the same."""
        return _signature(self.older) == _signature(self.newer)

    def changes_meaning(self) -> bool:
        """Whether a node of the older version may be wrong in the newer one, or the other way round, by its signature.

        That is: an attribute is gone, of another kind, default or requirement, or a slot is new, gone or of another
        option. New attributes and new names of slots are none of it, and neither is the legacy consumed_inputs.
        """
        before, after = (
            {a.name: (a.kind, repr(a.default), a.required) for a in schema.attributes.values()} for schema in self
        )
        before.pop("consumed_inputs", None)
        if any(after.get(name) != attribute for name, attribute in before.items()):
            return True
        options = [[[_slot(slot)[1:] for slot in slots] for slots in (s.inputs, s.outputs)] for s in self]
        return options[0] != options[1]

    def keeps_text(self) -> bool:
        return texts(self.older) == texts(self.newer)

    def words(self) -> tuple[int, int]:
        """How many words of the texts are new, and how many are gone."""
        old, new = (" ".join(texts(schema).values()).split() for schema in self)
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        kept = sum(block.size for block in matcher.get_matching_blocks())
        return len(new) - kept, len(old) - kept


def steps() -> Iterator[Step]:
    """All steps there are, by domain, operator and version."""
    for _, versions in itertools.groupby(all_schemas(), key=lambda schema: schema.key[:2]):
        yield from itertools.starmap(Step, itertools.pairwise(versions))


def prose_steps() -> list[Step]:
    """The steps that change the text and keep the signature."""
    return [step for step in steps() if step.keeps_signature() and not step.keeps_text()]


def texts(schema: Schema) -> dict[str, str]:
    """The text of an operator, of its attributes and of its slots, white space normalised."""
    definition = schema.definition
    described = [
        *((f"attribute {a.name}", a.description) for _, a in sorted(definition.attributes.items())),
        *((f"input {slot.name}", slot.description) for slot in definition.inputs),
        *((f"output {slot.name}", slot.description) for slot in definition.outputs),
    ]
    return {what: " ".join((text or "").split()) for what, text in [("operator", definition.doc), *described]}


def _signature(schema: Schema) -> tuple[object, ...]:
    attributes = tuple((a.name, a.kind, a.required, repr(a.default)) for a in schema.attributes.values())
    return attributes, tuple(map(_slot, schema.inputs)), tuple(map(_slot, schema.outputs))


def _slot(slot: Slot) -> tuple[str, bool, bool]:
    return slot.name, slot.optional, slot.variadic
