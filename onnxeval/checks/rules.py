"""The table of rules: a rule is a plain function that looks at one part of a model and yields the faults it finds.

The families register themselves with `rule`; a rule's docstring is its page (see `pages`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from onnxeval.checks.pages import Page, page_from

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect of a model.

    ``rule`` is the stable id of the rule that found it, ``where`` its place in the model, ``message`` holds the
    values, ``hint`` says what may help, or "".
    """

    rule: str
    severity: Severity
    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.message} [{self.rule}]" + (f" ({self.hint})" if self.hint else "")


class Fault(NamedTuple):
    """What a rule yields: the rule's id and severity are added by whoever applies it."""

    where: str
    message: str
    hint: str = ""


Faults: TypeAlias = Iterable[Fault]
Find = TypeVar("Find", bound=Callable[..., Faults])


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table. ``subject`` is the class of the parts it looks at."""

    id: str
    severity: Severity
    subject: type
    find: Callable[[Any], Faults]

    @property
    def family(self) -> str:
        return self.id.partition("/")[0]

    @property
    def page(self) -> Page:
        return page_from(self.find.__doc__ or "")

    def findings(self, part: object) -> Iterable[Finding]:
        """The faults of one part, as findings."""
        for fault in self.find(part):
            yield Finding(self.id, self.severity, *fault)


#: Every rule by its id.
RULES: dict[str, Rule] = {}
#: The rules for a kind of part: those for every operator under "", those for one operator under its name.
_BY_SUBJECT: dict[type, dict[str, list[Rule]]] = {}


def rule(rule_id: str, severity: Severity, subject: type, *operators: str) -> Callable[[Find], Find]:
    """Put a function of one ``subject`` into the table.

    Where ``operators`` are named it sees no others; their names are those of `OpKey`, without the version.
    """

    def register(find: Find) -> Find:
        if rule_id in RULES:
            raise ValueError(f"the rule {rule_id} is registered twice")
        RULES[rule_id] = entry = Rule(rule_id, severity, subject, find)
        for operator in operators or ("",):
            _BY_SUBJECT.setdefault(subject, {}).setdefault(operator, []).append(entry)
        return find

    return register


def judge(part: object) -> list[Finding]:
    """What all rules for this kind of part, and for its ``operator`` if it has one, find in it."""
    rules = _BY_SUBJECT.get(type(part), {})
    concerned = rules.get("", [])
    if (operator := getattr(part, "operator", "")) in rules and operator:
        concerned = [*concerned, *rules[operator]]
    return [finding for entry in concerned for finding in entry.findings(part)]
