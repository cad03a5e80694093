"""Which rules count: chosen by their ids, by families, or by patterns."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

from onnxeval.checks.rules import RULES, Finding

UNREADABLE = "file/unreadable"


def matching(pattern: str) -> frozenset[str]:
    """The rules that a pattern means: an id, a family (``graph``), or either with ``*``, ``?`` and ``[...]``.

    Raises ValueError, with what is near, where it means none.
    """
    found = frozenset(
        rule_id for rule_id, rule in RULES.items() if fnmatchcase(rule_id, pattern) or fnmatchcase(rule.family, pattern)
    )
    if not found:
        names = [*RULES, *sorted({rule.family for rule in RULES.values()})]
        near = get_close_matches(pattern, names, 1)
        raise ValueError(f'there is no rule "{pattern}"' + (f', did you mean "{near[0]}"?' if near else ""))
    return found


def chosen(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> frozenset[str]:
    """The rules of ``select``, all without one, less those of ``ignore``. Raises ValueError as `matching` does."""
    wanted = frozenset[str]().union(*map(matching, select)) or frozenset(RULES)
    return wanted.difference(*map(matching, ignore))


def only(findings: Iterable[Finding], rules: frozenset[str]) -> list[Finding]:
    """The findings of these rules, and those of a file that is no model: of it nothing else can be said."""
    return [finding for finding in findings if finding.rule in rules or finding.rule == UNREADABLE]
