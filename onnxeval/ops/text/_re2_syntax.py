r"""The syntax of RE2, read into a tree.

Captures, greediness and the flag U do not matter to whether a whole string matches, and leave no trace in the tree.
What RE2 leaves out (backreferences, lookaround, possessive repeats) is an error here too, and so are two things that
it has: \C, which splits characters into bytes, and the scripts among the classes \p{...}, for which Python has no
table.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NoReturn, TypeAlias

Matcher: TypeAlias = Callable[[str], bool]

MAX_REPEAT = 1000  # of one element, all nested repeats taken together
MAX_NESTING = 100

_PERL: dict[str, Matcher] = {
    "d": lambda c: "0" <= c <= "9",
    "s": lambda c: c in "\t\n\f\r ",
    "w": lambda c: c.isascii() and (c.isalnum() or c == "_"),
}
_POSIX: dict[str, Matcher] = {
    "alnum": lambda c: c.isascii() and c.isalnum(),
    "alpha": lambda c: c.isascii() and c.isalpha(),
    "ascii": str.isascii,
    "blank": lambda c: c in "\t ",
    "cntrl": lambda c: c < " " or c == "\x7f",
    "digit": _PERL["d"],
    "graph": lambda c: "!" <= c <= "~",
    "lower": lambda c: "a" <= c <= "z",
    "print": lambda c: " " <= c <= "~",
    "punct": lambda c: "!" <= c <= "~" and not c.isalnum(),
    "space": lambda c: c in "\t\n\v\f\r ",
    "upper": lambda c: "A" <= c <= "Z",
    "word": _PERL["w"],
    "xdigit": lambda c: c.isascii() and c in "0123456789abcdefABCDEF",
}
_CATEGORIES = re.compile("L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfos]?")
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ASSERTIONS = {"A": "text begins", "z": "text ends", "b": "word boundary", "B": "no word boundary"}
_COUNTS = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_NAMED_GROUP = re.compile(r"\(\?P?<(\w+)>")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:(-)([imsU]+))?([:)])")
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")


@dataclass(frozen=True, slots=True)
class Match:
    """One character."""

    matcher: Matcher


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition on the place between two characters."""

    kind: str


@dataclass(frozen=True, slots=True)
class Concatenation:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    node: Node
    least: int
    most: int | None  # None: no limit


Node: TypeAlias = Match | Assertion | Concatenation | Alternation | Repeat


@dataclass(frozen=True, slots=True)
class _Flags:
    ignore_case: bool = False
    multi_line: bool = False
    dot_all: bool = False


def parse(pattern: str) -> Node:
    """The tree of a pattern. Raises ValueError, which says what is wrong and where."""
    reader = _Reader(pattern)
    node = reader.alternation(0)
    if reader.at < len(pattern):
        reader.fail("unexpected )")
    return node


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = _Flags()

    def fail(self, what: str) -> NoReturn:
        raise ValueError(f"invalid regular expression {self.pattern!r}: {what} at {self.at}")

    def rest(self, start: str) -> bool:
        return self.pattern.startswith(start, self.at)

    def take(self) -> str:
        if self.at >= len(self.pattern):
            self.fail("unexpected end")
        self.at += 1
        return self.pattern[self.at - 1]

    def accept(self, expected: re.Pattern[str]) -> re.Match[str] | None:
        if found := expected.match(self.pattern, self.at):
            self.at = found.end()
        return found

    def alternation(self, depth: int) -> Node:
        """Up to the end or the parenthesis that closes the group, which is left."""
        if depth > MAX_NESTING:
            self.fail(f"more than {MAX_NESTING} nested groups")
        branches: list[Node] = []
        parts: list[Node] = []
        repeated = False  # whether the last thing read was a repetition
        while self.at < len(self.pattern) and not self.rest(")"):
            if (counts := self.counts()) is not None:
                if repeated or not parts:
                    self.fail("a repetition of a repetition" if repeated else "nothing to repeat")
                parts[-1] = self.repeat(parts[-1], *counts)
                repeated = True
                continue
            repeated = False
            if self.rest("|"):
                self.at += 1
                branches.append(Concatenation(tuple(parts)))
                parts = []
            elif self.rest("("):
                parts += self.group(depth)
            else:
                parts += self.element()
        branches.append(Concatenation(tuple(parts)))
        return Alternation(tuple(branches)) if len(branches) > 1 else branches[0]

    def counts(self) -> tuple[int, int | None] | None:
        """A repetition operator with its mark of reluctance; braces that are none stand for themselves."""
        least: int
        most: int | None
        if found := self.accept(_COUNTS):
            least = int(found[1][:10])
            most = least if found[2] is None else int(found[3][:10]) if found[3] else None
            if least > MAX_REPEAT or (most is not None and not least <= most <= MAX_REPEAT):
                self.fail(f"bad counts {found[0]}, or more than {MAX_REPEAT},")
        else:
            symbol = self.pattern[self.at]
            if symbol not in "*+?":
                return None
            self.at += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[symbol]
        if self.rest("?"):
            self.at += 1
        return least, most

    def repeat(self, node: Node, least: int, most: int | None) -> Node:
        repeat = Repeat(node, least, most)
        if _repeats(repeat) > MAX_REPEAT:
            self.fail(f"more than {MAX_REPEAT} nested repeats")
        return repeat

    def group(self, depth: int) -> list[Node]:
        outside = self.flags
        if found := self.accept(_FLAGS):
            self.flags = _with_flags(self.flags, found[1], found[3] or "")
            if found[4] == ")":
                return []
        elif not self.accept(_NAMED_GROUP):
            self.at += 1
            if self.rest("?"):
                self.fail("an unknown group (?")
        inside = self.alternation(depth + 1)
        if not self.rest(")"):
            self.fail("missing )")
        self.at += 1
        self.flags = outside
        return [inside]

    def element(self) -> list[Node]:
        """One character, class or assertion, or a quotation of many."""
        match symbol := self.take():
            case ".":
                dot_all = self.flags.dot_all
                return [Match(lambda c: dot_all or c != "\n")]
            case "^":
                return [Assertion("line begins" if self.flags.multi_line else "text begins")]
            case "$":
                return [Assertion("line ends" if self.flags.multi_line else "text ends")]
            case "[":
                return [Match(self.bracket())]
            case "\\":
                return self.escape()
        return [self.literal(symbol)]

    def escape(self) -> list[Node]:
        symbol = self.pattern[self.at : self.at + 1]
        if symbol in _ASSERTIONS:
            self.at += 1
            return [Assertion(_ASSERTIONS[symbol])]
        if symbol == "Q":
            quoted, _, _ = self.pattern[self.at + 1 :].partition("\\E")
            self.at = min(self.at + 1 + len(quoted) + 2, len(self.pattern))
            return [self.literal(c) for c in quoted]
        if (matcher := self.class_escape()) is not None:
            return [Match(matcher)]
        return [self.literal(self.character_escape())]

    def literal(self, symbol: str) -> Match:
        return Match(self.members(lambda c: c == symbol))

    def members(self, matcher: Matcher, *, negated: bool = False) -> Matcher:
        """The characters that match, and those of the other case under the flag i; or all but these."""
        if self.flags.ignore_case:
            return lambda c: any(matcher(same) for same in _same_but_for_case(c)) != negated
        return lambda c: matcher(c) != negated

    def class_escape(self) -> Matcher | None:
        r"""\d, \pL, \p{Lu} and their like, after the backslash; None where it is none of these."""
        symbol = self.pattern[self.at : self.at + 1]
        if symbol and symbol.lower() in _PERL:
            self.at += 1
            return self.members(_PERL[symbol.lower()], negated=symbol.isupper())
        if symbol not in ("p", "P"):
            return None
        self.at += 1
        name = self.take()
        if name == "{":
            name, brace, _ = self.pattern[self.at :].partition("}")
            if not brace:
                self.fail("missing }")
            self.at += len(name) + 1
        negated = (symbol == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name == "Any":
            return lambda _: not negated
        if not _CATEGORIES.fullmatch(name):
            self.fail(f"{name!r} is none of the general categories, the only classes of Unicode there are here,")
        return self.members(
            lambda c: (category := unicodedata.category(c)).startswith(name) and category != "Cn", negated=negated
        )

    def character_escape(self) -> str:
        if found := self.accept(_HEX):
            code = int(found[1] or found[2], 16)
            if code > 0x10FFFF:
                self.fail(f"no character has the number {code:#x}")
            return chr(code)
        if found := self.accept(_OCTAL):
            return chr(int(found[0], 8))
        symbol = self.take()
        if symbol in _CONTROLS:
            return _CONTROLS[symbol]
        if not symbol.isascii() or symbol.isalnum():
            self.fail(f"unknown escape \\{symbol}")
        return symbol

    def bracket(self) -> Matcher:
        """A class in brackets, after the first of them."""
        negated = self.rest("^")
        self.at += negated
        members: list[Matcher] = []
        while not members or not self.rest("]"):
            members.append(self.bracket_member())
        self.at += 1
        return lambda c: any(member(c) for member in members) != negated

    def bracket_member(self) -> Matcher:
        if self.rest("[:") and (end := self.pattern.find(":]", self.at)) > 0:
            name = self.pattern[self.at + 2 : end]
            if name.removeprefix("^") not in _POSIX:
                self.fail(f"unknown class [:{name}:]")
            self.at = end + 2
            return self.members(_POSIX[name.removeprefix("^")], negated=name.startswith("^"))
        if self.rest("\\"):
            self.at += 1
            if (matcher := self.class_escape()) is not None:
                return matcher
            self.at -= 1
        low = high = self.bracket_character()
        if self.rest("-") and not self.rest("-]"):
            self.at += 1
            high = self.bracket_character()
            if high < low:
                self.fail(f"a range from {low!r} down to {high!r}")
        return self.members(lambda c: low <= c <= high)

    def bracket_character(self) -> str:
        symbol = self.take()
        return self.character_escape() if symbol == "\\" else symbol


def _with_flags(flags: _Flags, on: str, off: str) -> _Flags:
    names = {"i": "ignore_case", "m": "multi_line", "s": "dot_all"}
    changes = {names[flag]: True for flag in on if flag in names}
    changes |= {names[flag]: False for flag in off if flag in names}
    return replace(flags, **changes)


def _repeats(node: Node) -> int:
    """How many copies of one element the counts in the tree make."""
    match node:
        case Repeat(inner, least, most):
            return _repeats(inner) * max(1, least if most is None else most)
        case Concatenation(nodes) | Alternation(nodes):
            return max(map(_repeats, nodes), default=1)
    return 1


def _folded(c: str) -> str:
    """The simple case folding: that to one character."""
    return next((same for same in (c.casefold(), c.lower()) if len(same) == 1), c)


@lru_cache(maxsize=1)
def _by_folding() -> dict[str, str]:
    """Folding -> the characters that have it, where there are several."""
    classes: dict[str, str] = {}
    for code in range(0x20000):  # no character beyond has another case
        c = chr(code)
        if (folded := _folded(c)) != c:
            classes[folded] = classes.get(folded, folded) + c
    return classes


def _same_but_for_case(c: str) -> str:
    return _by_folding().get(_folded(c), c)
