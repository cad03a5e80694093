"""Every command in README.md and docs/ is run, and must print what stands below it.

A ``console`` block holds lines that start with ``$ `` and what they print; a line ``...`` stands for any lines. A
``pycon`` block is a doctest. The blocks of a document run in order, in a folder of their own with the sample models.
"""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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


def as_pattern(expected: list[str]) -> str:
    parts = [r"(?:.*\n)*" if line.strip() == "..." else re.escape(line.rstrip()) + r"\n" for line in expected]
    return "".join(parts)


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    (tmp_path / "sample_models").symlink_to(ROOT / "sample_models")
    (tmp_path / "onnxeval").symlink_to(ROOT / "onnxeval")
    return tmp_path


@pytest.mark.skipif(os.name != "posix", reason="the examples are for a POSIX shell")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples(document: Path, workshop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    monkeypatch.chdir(workshop)
    for language, block in _BLOCK.findall(document.read_text()):
        if language == "console":
            for command, expected in commands_of(block):
                done = subprocess.run(
                    ["bash", "-c", command],
                    cwd=workshop,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=120,
                    check=False,
                )
                printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
                wanted = "\n".join(expected)
                assert re.fullmatch(as_pattern(expected), printed), f"$ {command}\n{printed}\n--- expected\n{wanted}"
        elif language == "pycon":
            test = doctest.DocTestParser().get_doctest(block, {}, document.name, str(document), 0)
            report: list[str] = []
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
            assert not report, "".join(report)


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
