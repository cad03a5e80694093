"""Every example of docs/differences.md, in the engines that are installed; every accepted difference is told there."""

import contextlib
import importlib.util
import io
import re
import runpy
from pathlib import Path
from typing import Any

import onnx
import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "differences.md").read_text()
SECTIONS = [section for section in re.split(r"^(?=## )", PAGE, flags=re.MULTILINE) if "```python" in section]
HAS_ONNXRUNTIME = importlib.util.find_spec("onnxruntime") is not None
_LINE = re.compile(r"# (\w+) +(.*)")


def title_of(section: str) -> str:
    return section.splitlines()[0].lstrip("# ")


def calls_of(section: str) -> list[tuple[str, dict[str, str]]]:
    """Code up to and including a call of `show`, and what each engine should then print."""
    calls: list[tuple[str, dict[str, str]]] = []
    for block in re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        code: list[str] = []
        wanted: dict[str, str] = {}
        for line in [*block.splitlines(), ""]:
            if found := _LINE.fullmatch(line):
                wanted[found[1]] = found[2]
                continue
            if wanted:
                calls.append(("\n".join(code), wanted))
                code, wanted = [], {}
            code.append(line)
        if any(code):
            calls.append(("\n".join(code), {}))
    return calls


@pytest.mark.parametrize("section", SECTIONS, ids=title_of)
def test_examples(section: str) -> None:
    names: dict[str, Any] = runpy.run_path(str(DOCS / "show.py"))
    engines = dict(names["ENGINES"])
    for code, wanted in calls_of(section):
        names["ENGINES"].clear()
        names["ENGINES"].update({n: e for n, e in engines.items() if not wanted.get(n, "").startswith("(")})
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        told = dict(found.groups() for found in map(_LINE.fullmatch, printed.getvalue().splitlines()) if found)
        expected = {name: text for name, text in wanted.items() if is_checked(name) and not text.startswith("(")}
        assert {name: told.get(name) for name in expected} == expected, code
        assert not wanted or wanted.keys() == engines.keys(), code


def is_checked(engine: str) -> bool:
    """The page tells what these releases do."""
    if engine == "onnxruntime" and HAS_ONNXRUNTIME:
        import onnxruntime

        return str(onnxruntime.__version__).startswith("1.32.")
    return engine == "onnxeval" or (engine == "reference" and onnx.__version__ == "1.23.2")


def test_every_accepted_difference_is_shown() -> None:
    from differential.accepted import ACCEPTED, load

    load()
    told = {title_of(part): part for part in re.split(r"^(?=### )", PAGE, flags=re.MULTILINE)}
    shown = {
        title
        for title, part in told.items()
        if any(wanted and wanted["onnxeval"] != wanted["onnxruntime"] for _, wanted in calls_of(part))
    }
    assert not sorted({entry.heading for entry in ACCEPTED} - shown)


def test_links_lead_to_headings() -> None:
    headings = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]*)\)", PAGE)) <= anchors
