"""What changed between two versions of an operator, and whether a node written for the older one may break.

The signature is compared: slots, attributes, defaults, types, function bodies. A changed text is shown, not judged.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from onnxeval.opdocs import Page, SlotPage, body_text, page, value_text
from onnxeval.schema import known_versions


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two versions, and whether a node written for the older one may break on it."""

    text: str
    breaking: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """All that differs between two versions; ``prose`` is a line-by-line difference of their texts."""

    name: str
    older: int
    newer: int
    changes: tuple[Change, ...]
    same: tuple[str, ...]
    prose: tuple[str, ...]

    @property
    def breaking(self) -> bool:
        return any(change.breaking for change in self.changes)

    @property
    def verdict(self) -> str:
        """What the signature alone tells; only a reader can judge a changed text."""
        if self.breaking:
            return "breaking"
        return "not breaking by its signature" if self.prose else "not breaking"

    @property
    def summary(self) -> str:
        """One line: the verdict, what is the same, what is not."""
        parts = [self.verdict]
        if self.same:
            parts.append(f"same {listed(self.same)}")
        parts += [change.text for change in self.changes]
        if self.prose:
            parts.append("the text changed")
        return ", ".join(parts)


def history(domain: str, name: str) -> tuple[Difference, ...]:
    """What changed at each version after the first."""
    pages = [p for v in known_versions(domain, name) if (p := page(domain, name, v))]
    return tuple(difference(older, newer) for older, newer in pairwise(pages))


def difference(older: Page, newer: Page) -> Difference:
    """What a user of ``older`` has to know about ``newer``."""
    slots = [
        *_slot_changes("input", older.inputs, newer.inputs),
        *_slot_changes("output", older.outputs, newer.outputs),
    ]
    attributes = list(_attribute_changes(older, newer))
    types = [*_type_changes(older, newer), *_binding_changes(older, newer)]
    named = {"inputs": slots, "attributes": attributes, "types": types}
    changes = [*slots, *attributes, *types, *_body_changes(older, newer)]
    if newer.deprecated and not older.deprecated:
        changes.append(Change("now deprecated", breaking=True))
    return Difference(
        name=newer.name,
        older=older.since_version,
        newer=newer.since_version,
        changes=tuple(changes),
        same=tuple(what for what, found in named.items() if not found),
        prose=tuple(_prose_changes(older, newer)),
    )


def _slot_changes(what: str, older: Sequence[SlotPage], newer: Sequence[SlotPage]) -> Iterator[Change]:
    for old, new in zip(older, newer, strict=False):
        if old.name.rstrip(".") != new.name.rstrip("."):
            yield Change(f"{what} {old.name} is now called {new.name}", breaking=False)
        if old.presence != new.presence:
            # Looser is harmless for whoever fed it; an output is looser when more may ask for it.
            looser = old.presence == "required" or new.presence == "variadic"
            yield Change(f"{what} {new.name} is {new.presence}, was {old.presence}", breaking=not looser)
        elif new.min_arity > old.min_arity:
            yield Change(f"{what} {new.name} stands at least {new.min_arity} times", breaking=True)
        if old.homogeneous != new.homogeneous:
            text = "must be of one type" if new.homogeneous else "may be of different types"
            yield Change(f"{what}s {new.name} {text}", breaking=new.homogeneous)
    for new in newer[len(older) :]:
        yield Change(f"{what} {new.name} is new ({new.presence})", breaking=new.presence == "required")
    for old in older[len(newer) :]:
        yield Change(f"{what} {old.name} is gone", breaking=True)


def _attribute_changes(older: Page, newer: Page) -> Iterator[Change]:
    before = {a.name: a for a in older.attributes if a.name != "consumed_inputs"}
    after = {a.name: a for a in newer.attributes if a.name != "consumed_inputs"}
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            moved = any(slot.name == name for slot in newer.inputs) and all(s.name != name for s in older.inputs)
            yield Change(f"attribute {name} is {'now an input' if moved else 'gone'}", breaking=True)
            continue
        if old.kind != new.kind:
            yield Change(f"attribute {name} is {new.kind}, was {old.kind}", breaking=True)
        if old.required != new.required:
            yield Change(f"attribute {name} is {'required' if new.required else 'optional'} now", breaking=new.required)
        elif value_text(old.default) != value_text(new.default):
            text = f"attribute {name} defaults to {value_text(new.default)}, was {value_text(old.default)}"
            yield Change(text, breaking=old.default is not None)
    for name, new in after.items():
        if name not in before:
            default = "" if new.default is None else f", default {value_text(new.default)}"
            presence = "required" if new.required else "optional"
            yield Change(f"attribute {name} is new ({presence}{default})", breaking=new.required)


def _type_changes(older: Page, newer: Page) -> Iterator[Change]:
    """Types gained and lost; slots that gained and lost the same share a line."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for old, new in (*zip(older.inputs, newer.inputs, strict=False), *zip(older.outputs, newer.outputs, strict=False)):
        gained = tuple(t for t in new.types if t not in old.types)
        lost = tuple(t for t in old.types if t not in new.types)
        if gained or lost:
            groups.setdefault((gained, lost), []).append(new.name)
    for (gained, lost), names in groups.items():
        where = listed(list(dict.fromkeys(names)))
        if gained:
            yield Change(f"{where}: also {' '.join(gained)}", breaking=False)
        if lost:
            yield Change(f"{where}: no longer {' '.join(lost)}", breaking=True)


def _binding_changes(older: Page, newer: Page) -> Iterator[Change]:
    """Which inputs have to be of one type, where that changed; new inputs aside, they change nothing for the others."""
    pairs = list(zip(older.inputs, newer.inputs, strict=False))
    before: set[tuple[int, int]] = set()
    after: set[tuple[int, int]] = set()
    for place, (old, new) in enumerate(pairs):
        for other_place, (other_old, other_new) in enumerate(pairs[:place]):
            if len(new.types) > 1:
                before.update({(other_place, place)} if old.variable and old.variable == other_old.variable else ())
                after.update({(other_place, place)} if new.variable and new.variable == other_new.variable else ())
    if before == after:
        return
    groups: dict[str, list[str]] = {}
    for slot in newer.inputs:
        groups.setdefault(slot.variable or slot.name, []).append(slot.name)
    shared = "; one for ".join(listed(names) for names in groups.values() if len(names) > 1)
    stricter = bool(after - before)
    text = f"{'stricter' if stricter else 'looser'}: one type for {shared}" if shared else "inputs may differ in type"
    yield Change(text, breaking=stricter)


def _body_changes(older: Page, newer: Page) -> Iterator[Change]:
    if newer.body and not older.body:
        yield Change("now with a function body", breaking=False)
    elif older.body and not newer.body:
        yield Change("no longer with a function body", breaking=False)
    elif older.body != newer.body or body_text(older) != body_text(newer):
        yield Change("another function body", breaking=False)


def _prose_changes(older: Page, newer: Page) -> list[str]:
    """Lines of a unified difference, without its file heading; line breaks alone are no change."""
    before, after = list(_prose(older)), list(_prose(newer))
    if " ".join(before).split() == " ".join(after).split():
        return []
    lines = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
    return ["..." if line.startswith("@@") else line for line in lines]


def _prose(of: Page) -> Iterator[str]:
    yield from of.text.splitlines()
    parts = [
        *(("input", slot.name, slot.text) for slot in of.inputs),
        *(("output", slot.name, slot.text) for slot in of.outputs),
        *(("attribute", attribute.name, attribute.text) for attribute in of.attributes),
    ]
    for what, name, text in parts:
        yield from f"{what} {name}: {text}".splitlines()


def listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
