"""docs/coverage.md: how much of the standard has kernels, by section and by element type.

``python tests/standard/coverage_page.py`` writes the page anew from the schemas and the registry.
"""

import itertools
import re
from collections.abc import Iterable
from pathlib import Path

from onnxeval.dtypes import BY_NAME, name_of
from onnxeval.opdocs import standard
from onnxeval.registry import Registry
from onnxeval.schema import Schema, all_schemas

PAGE = Path(__file__).parent.parent.parent / "docs" / "coverage.md"
_ELEMENT = re.compile(r"tensor\((\w+)\)")


def without_kernel() -> list[Schema]:
    registry = Registry.standard()
    return [schema for schema in all_schemas() if schema.key not in registry]


def element_types(schema: Schema) -> set[str]:
    """The types of the elements that an operator takes and gives, inside sequences and optionals too."""
    allowed = itertools.chain.from_iterable(slot.allowed for slot in (*schema.inputs, *schema.outputs))
    return {name_of(BY_NAME[name]) for text in allowed for name in _ELEMENT.findall(text)}


def page() -> str:
    schemas, missing = all_schemas(), without_kernel()
    names = {schema.key[:2] for schema in schemas}
    if missing:
        verdict = f"{len(missing)} have no kernel: {', '.join(schema.label for schema in missing)}."
    else:
        verdict = "Every one of them has a kernel, deprecated ones included."
    lines = [
        "<!-- Written by tests/standard/coverage_page.py from the schemas and the registry. -->",
        "",
        "# Coverage",
        "",
        f"onnx {standard().release} describes {len(schemas)} versions of {len(names)} operators. {verdict}",
        "`onnxeval ops` lists them one by one, [the reading list](reading_list.md) says how versions that look alike",
        "were told apart.",
        "",
        "## By section",
        "",
        "| domain | section | operators | versions | with a kernel | element types |",
        "|---|---|---:|---:|---:|---:|",
    ]
    sections = sorted({(schema.key.domain, schema.section) for schema in schemas})
    for domain, section in sections:
        group = [s for s in schemas if (s.key.domain, s.section) == (domain, section)]
        lines.append(_row(domain or "ai.onnx", section, *_counts(group)))
    lines += [
        _row("**all**", "", *_counts(schemas)),
        "",
        "## By element type",
        "",
        "How many operators, and versions of them, take or give tensors of a type, bare or inside sequences and",
        "optionals, and how many of the versions have a kernel. A type that a version does not list is refused, at",
        "inputs and at outputs alike; only Constant gives whatever tensor the model holds.",
        "",
        "| element type | operators | versions | with a kernel |",
        "|---|---:|---:|---:|",
    ]
    for name in dict.fromkeys(name_of(dtype) for dtype in BY_NAME.values()):
        lines.append(_row(name, *_counts([s for s in schemas if name in element_types(s)])[:3]))
    return "\n".join(lines) + "\n"


def _counts(schemas: Iterable[Schema]) -> tuple[int, int, int, int]:
    """Operators, versions, versions with a kernel, element types."""
    group = list(schemas)
    covered = len(group) - len(set(group).intersection(without_kernel()))
    types = set[str]().union(*map(element_types, group))
    return len({schema.key[:2] for schema in group}), len(group), covered, len(types)


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |".replace("  ", " ")


if __name__ == "__main__":
    PAGE.write_text(page())
