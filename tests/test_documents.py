"""Every command in README.md and docs/ is run, and must print what stands below it.

A ``console`` block holds lines that start with ``$ `` and what they print; a line ``...`` stands for any lines. A
``pycon`` block is a doctest. The blocks of a document run in order, in a folder of their own with the sample models.
"""

import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_FRACTION = re.compile(r"-?\d+(?:\.\d+)?e-?\d+|-?\d+\.\d+")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_of(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that it should print."""
    command, expected = "", list[str]()
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, expected
            command, expected = line[2:], []
        elif command.endswith("\\"):
            command = command[:-1] + line.strip()
        else:
            expected.append(line)
    if command:
        yield command, expected


def agree(expected: list[str], printed: list[str]) -> bool:
    """Whether the lines are those expected; a line ``...`` stands for any."""
    if not expected:
        return not printed
    if expected[0].strip() == "...":
        return any(agree(expected[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and _same(expected[0], printed[0]) and agree(expected[1:], printed[1:])


def _same(expected: str, printed: str) -> bool:
    """Whether two lines are the same; fractions may differ as much as another machine's sums do."""
    if [*_FRACTION.split(expected.rstrip())] == [*_FRACTION.split(printed.rstrip())]:
        pairs = zip(_FRACTION.findall(expected), _FRACTION.findall(printed), strict=True)
        return all(math.isclose(float(one), float(other), rel_tol=1e-3) for one, other in pairs)
    return False


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    (tmp_path / "sample_models").symlink_to(ROOT / "sample_models")
    return tmp_path


@pytest.mark.skipif(os.name != "posix", reason="the examples are for a POSIX shell")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples(document: Path, workshop: Path) -> None:
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}

    def printed_by(*command: str) -> str:
        options = {"cwd": workshop, "env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.run(command, text=True, timeout=120, check=False, **options).stdout

    blocks = _BLOCK.findall(document.read_text())
    for command, expected in (
        pair for language, block in blocks if language == "console" for pair in commands_of(block)
    ):
        printed = printed_by("bash", "-c", command)
        if not agree(expected, printed.splitlines()):
            pytest.fail(f"$ {command}\n{printed}--- expected\n" + "\n".join(expected), pytrace=False)
    session = workshop / "session.txt"
    session.write_text("\n".join(block for language, block in blocks if language == "pycon"))
    if complaint := printed_by(sys.executable, "-m", "doctest", "-o", "ELLIPSIS", str(session)):
        pytest.fail(complaint, pytrace=False)


def test_the_two_set_up_lines() -> None:
    lines = [line for line in DOCUMENTS[0].read_text().splitlines() if line.startswith("python3 -m venv .venv && ")]
    assert len(lines) == 2
    assert ".venv/bin/onnxeval run sample_models/" in lines[0]
    assert lines[1].endswith(".venv/bin/pytest") or ".venv/bin/pytest " in lines[1]


def links_of(document: Path) -> list[str]:
    return [link for link in re.findall(r"\]\(([^)#]+)", document.read_text()) if "://" not in link]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in links_of(document):
        assert (document.parent / link).exists(), f"{document.name} links to {link}"


def test_the_tree_in_the_readme_is_the_tree() -> None:
    block = next(block for language, block in _BLOCK.findall(DOCUMENTS[0].read_text()) if language == "text")
    folders: list[str] = []
    for line in block.splitlines():
        found = re.match(r"( *)(\S+)", line)
        assert found
        depth = len(found[1]) // 2
        folders = [*folders[:depth], found[2]]
        assert (ROOT / "".join(folders)).exists(), "".join(folders)
