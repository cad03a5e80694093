"""The table of rules as Markdown: ``python -m onnxeval.checks.document docs/check.md`` writes it anew."""

from __future__ import annotations

import sys
from pathlib import Path

from onnxeval.checks import RULES

_BEGIN, _END = "<!-- rules: begin -->", "<!-- rules: end -->"
#: What each family looks at, in the order of the document.
_FAMILIES = {
    "file": "The file",
    "proto": "The model message",
    "graph": "Graphs and function bodies",
    "node": "Nodes",
    "function": "Functions and their calls",
    "tensor": "Tensors",
    "type": "Types",
    "shape": "Shapes",
    "value": "Values of attributes",
    "evaluation": "What onnxeval runs",
}


def rules_table() -> str:
    """A table of rules for each family."""
    parts = []
    for family, title in _FAMILIES.items():
        rows = [
            f"| `{entry.id}` | {entry.severity} | {entry.page.what} |"
            for entry in sorted(RULES.values(), key=lambda entry: entry.id)
            if entry.id.startswith(f"{family}/")
        ]
        parts.append("\n".join([f"### {title}", "", "| Rule | Severity | What it finds |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def main() -> None:
    path = Path(sys.argv[1])
    before, _, rest = path.read_text().partition(_BEGIN)
    after = rest.partition(_END)[2]
    path.write_text(f"{before}{_BEGIN}\n\n{rules_table()}\n\n{_END}{after}")


if __name__ == "__main__":
    main()
