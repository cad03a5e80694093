"""docs/reading_list.md: what became of the meaning where a version has another text and the same signature.

``python tests/standard/reading_list.py`` writes the page anew from prose_steps.toml.
"""

import ast
import functools
import itertools
import re
import sys
import tomllib
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from standard.steps import Step, prose_steps, steps

from onnxeval.registry import Registry

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "reading_list.md"
VERDICTS = ("same", "clearer", "changed")
#: `file.py: name`, a place in onnxeval/ops/.
PLACE = re.compile(r"`([\w/]+\.py): (\w+)`")

_HEAD = """\
<!-- Written by tests/standard/reading_list.py from tests/standard/prose_steps.toml. -->

# Reading list

The standard has {steps} steps from one version of an operator to the next. {same_signature} of them keep every
attribute, input and output with its default and option; of those, {prose} have another text. What a text means no
program can tell: both texts of each of the {prose} were read, and the kernels held against them.

| verdict | steps | |
|---|---|---|
| same | {same} | wording, form, examples, a list of types: nothing that a model could notice |
| clearer | {clearer} | the newer text settles what the older one left open or had wrong; all versions are run by it |
| changed | {changed} | a model that is right under one text is wrong under the other, or means something else |

Models of both sides of each change are run by tests/standard/test_meaning_steps.py, along with those of the steps that
change the signature.

Few texts before opset 11 say whether axes may be negative. They count from the back there too, but for those that the
text rules out: Flatten-1 and -9, Squeeze-1 and Unsqueeze-1.

`onnxeval ops NAME --diff OLDER NEWER` shows the lines that changed. Below, after the verdict: whether one kernel serves
both versions, and how many words are new and gone.
"""


@functools.cache
def verdicts() -> dict[str, tuple[str, str]]:
    """Step -> its verdict and its sentence."""
    tables = tomllib.loads(Path(__file__).with_name("prose_steps.toml").read_text())
    return {step: (verdict, sentence) for verdict, table in tables.items() for step, sentence in table.items()}


def is_defined(file: str, name: str) -> bool:
    """Whether a file of onnxeval/ops/ has a function, a class, a method or a table of that name."""
    path = ROOT / "onnxeval" / "ops" / file
    if not path.exists():
        return False
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    return name in names


def page() -> str:
    everything, read = list(steps()), prose_steps()
    by_verdict = {verdict: sum(of == verdict for of, _ in verdicts().values()) for verdict in VERDICTS}
    head = _HEAD.format(
        steps=len(everything),
        same_signature=sum(step.keeps_signature() for step in everything),
        prose=len(read),
        **by_verdict,
    )
    parts = [head]
    for (domain, name), group in itertools.groupby(read, key=lambda step: step.operator[:2]):
        parts.append(f"\n## {domain + '.' if domain else ''}{name}\n\n" + "".join(map(_item, group)))
    return "".join(parts)


def _item(step: Step) -> str:
    verdict, sentence = verdicts()[str(step)]
    registry = Registry.standard()
    older, newer = (registry.get(schema.key) for schema in step)
    kernels = "one kernel" if older is newer else "two kernels"
    new, gone = step.words()
    linked = PLACE.sub(r"[`\1: \2`](../onnxeval/ops/\1)", sentence)
    versions = f"{step.older.key.since_version} → {step.newer.key.since_version}"
    return f"- [x] **{versions}, {verdict}** ({kernels}, +{new} −{gone}). {linked}\n"


if __name__ == "__main__":
    PAGE.write_text(page())
