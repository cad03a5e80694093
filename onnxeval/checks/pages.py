"""A rule's page: what it finds, why that matters, how to mend it, an example. It is the rule's own docstring.

Its first paragraphs say what, those that start with ``Why:``, ``Mend:``, ``Example:`` and ``Instead:`` the rest. An
example is a graph in ONNX's text form (a whole model where it starts with ``<``); lines that start with ``>>>`` are
Python and change that model, or `PLAIN` where there is no other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import cleandoc
from typing import Final

#: Stands before an example that shows the graph alone.
HEADER: Final = '<ir_version: 10, opset_import: ["": 21]>'
#: The model that an example of Python lines alone changes.
PLAIN: Final = "g (float[2] x) => (float[2] y) { y = Neg(x) }"

_PARTS = ("Why", "Mend", "Example", "Instead")


@dataclass(frozen=True, slots=True)
class Page:
    """What there is to read about a rule. ``instead`` is the example mended, "" where that needs no words."""

    what: str
    why: str
    mend: str
    example: str
    instead: str


def page_from(docstring: str) -> Page:
    """The page in a docstring; a part that it does not have is ""."""
    what, *rest = re.split(rf"^({'|'.join(_PARTS)}):", cleandoc(docstring), flags=re.MULTILINE)
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    why, mend, example, instead = (cleandoc(parts.get(name, "")) for name in _PARTS)
    return Page(_flowing(what), _flowing(why), _flowing(mend), example, instead)


def _flowing(text: str) -> str:
    """A text without line breaks, its first letter a capital."""
    return " ".join((text[:1].upper() + text[1:]).split())


def split_example(example: str) -> tuple[str, str]:
    """The model of an example in ONNX's text form, and the Python lines that change it ("" where there are none)."""
    lines = example.splitlines()
    python = "\n".join(line[4:] for line in lines if line.startswith(">>> "))
    text = "\n".join(line for line in lines if not line.startswith(">>> ")) or PLAIN
    return (text if text.startswith("<") else f"{HEADER} {text}"), python
