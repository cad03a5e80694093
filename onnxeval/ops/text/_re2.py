"""Matching in time linear in the string, whatever the pattern: all states at once, never back.

The states that a prefix can lead to are one set; what a set and a character lead to is computed when first met, and
kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from onnxeval.ops.text._re2_syntax import Alternation, Assertion, Concatenation, Match, Matcher, Node, Repeat, parse

#: The state numbers that may be next, and what leads there: a character, an assertion, or nothing.
_State: TypeAlias = tuple[Matcher | str | None, tuple[int, ...]]
_Context: TypeAlias = frozenset[str]

MAX_STATES = 50_000
MAX_KEPT = 500_000  # states in the sets that are kept, all together

_NOWHERE: _Context = frozenset()
_ACCEPT = 0


@lru_cache(maxsize=64)
def compiled(pattern: str) -> Pattern:
    """The pattern, made once. Raises ValueError where it is invalid or too large."""
    return Pattern(pattern)


class Pattern:
    """A regular expression in the syntax of RE2."""

    def __init__(self, pattern: str) -> None:
        self._states: list[_State] = [(None, ())]
        self._text = pattern
        self._asserts = False
        self._start = frozenset({self._build(parse(pattern), _ACCEPT)})
        self._steps: dict[tuple[frozenset[int], _Context, str], frozenset[int]] = {}
        self._kept = 0

    def full_match(self, text: str) -> bool:
        """Whether the whole of ``text`` matches."""
        states, previous = self._start, ""
        for symbol in text:
            states = self._step(states, self._context(previous, symbol), symbol)
            if not states:
                return False
            previous = symbol
        return _ACCEPT in self._closure(states, self._context(previous, ""))

    def search(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Where the first match from ``start`` on begins and where the longest of those ends; None where there is none.

        What stands before ``start`` counts for assertions.
        """
        best: tuple[int, int] | None = None
        threads: dict[int, int] = {}  # a state -> the first place from which it was reached
        for place in range(start, len(text) + 1):
            if best is None:
                for state in self._start:
                    threads.setdefault(state, place)
            symbol = text[place : place + 1]
            context = self._context(text[place - 1] if place else "", symbol)
            reached: dict[int, int] = {}
            for begin in sorted(set(threads.values())):
                for state in self._closure(frozenset(s for s, b in threads.items() if b == begin), context):
                    reached.setdefault(state, begin)
            if _ACCEPT in reached and (best is None or reached[_ACCEPT] <= best[0]):
                best = (reached[_ACCEPT], place)
            threads = {}
            for state, begin in reached.items():
                condition, following = self._states[state]
                if callable(condition) and symbol and (best is None or begin <= best[0]) and condition(symbol):
                    for one in following:
                        threads[one] = min(begin, threads.get(one, begin))
            if best is not None and not threads:
                break
        return best

    def _build(self, node: Node, following: int) -> int:
        """The state from which ``node`` leads to the state ``following``."""
        match node:
            case Match(matcher):
                return self._state(matcher, following)
            case Assertion(kind):
                self._asserts = True
                return self._state(kind, following)
            case Concatenation(parts):
                for part in reversed(parts):
                    following = self._build(part, following)
                return following
            case Alternation(branches):
                return self._state(None, *[self._build(branch, following) for branch in branches])
            case Repeat(inner, least, most):
                if most is None:
                    loop = self._state(None, following)
                    self._states[loop] = (None, (self._build(inner, loop), following))
                    following = loop
                else:
                    end = following
                    for _ in range(most - least):
                        following = self._state(None, self._build(inner, following), end)
                for _ in range(least):
                    following = self._build(inner, following)
                return following

    def _state(self, condition: Matcher | str | None, *following: int) -> int:
        if len(self._states) >= MAX_STATES:
            raise ValueError(f"the regular expression {self._text!r} needs more than {MAX_STATES} states")
        self._states.append((condition, following))
        return len(self._states) - 1

    def _step(self, states: frozenset[int], context: _Context, symbol: str) -> frozenset[int]:
        key = (states, context, symbol)
        found = self._steps.get(key)
        if found is None:
            if self._kept > MAX_KEPT:
                self._steps.clear()
                self._kept = 0
            reached: set[int] = set()
            for state in self._closure(states, context):
                condition, following = self._states[state]
                if callable(condition) and condition(symbol):
                    reached.update(following)
            found = self._steps[key] = frozenset(reached)
            self._kept += len(found) + 1
        return found

    def _closure(self, states: frozenset[int], context: _Context) -> set[int]:
        """All states that can be reached without a character, in a place where ``context`` holds."""
        seen, waiting = set(states), list(states)
        while waiting:
            condition, following = self._states[waiting.pop()]
            if condition is None or (isinstance(condition, str) and condition in context):
                fresh = [state for state in following if state not in seen]
                seen.update(fresh)
                waiting += fresh
        return seen

    def _context(self, previous: str, following: str) -> _Context:
        """The assertions that hold between two characters, "" beyond either end; none where none is asked for."""
        if not self._asserts:
            return _NOWHERE
        holds = ["word boundary" if _in_word(previous) != _in_word(following) else "no word boundary"]
        if previous in ("", "\n"):
            holds += ["line begins"] if previous else ["line begins", "text begins"]
        if following in ("", "\n"):
            holds += ["line ends"] if following else ["line ends", "text ends"]
        return frozenset(holds)


def _in_word(symbol: str) -> bool:
    return symbol.isascii() and (symbol.isalnum() or symbol == "_")
