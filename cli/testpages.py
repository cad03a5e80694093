"""What `onnxeval test` shows: a table, JSON, and JUnit's XML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from onnxeval.files.writing import whole_file, write_failures
from onnxeval.testing.jobs import Outcome, Status

from .screen import Line

_STATUSES: tuple[Status, ...] = ("passed", "failed", "error", "crashed", "known")
_STYLES = {"passed": "good", "failed": "error", "error": "error", "crashed": "error", "known": "warning"}
_WORDS = {"error": "without a result", "known": "fail for wrong data"}
_LONGEST = 300
#: What XML 1.0 has no place for.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _counts(outcomes: Sequence[Outcome]) -> dict[Status, int]:
    counts: Counter[Status] = Counter(outcome.status for outcome in outcomes)
    return {status: counts[status] for status in _STATUSES}


def _groups(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.job.group, []).append(outcome)
    return groups


def lines(outcomes: Sequence[Outcome], heading: str) -> Iterator[Line]:
    """A line for each group, then what did not pass, then the sum."""
    groups = _groups(outcomes)
    width = max(map(len, (heading, *groups)))
    yield [(f"{heading.ljust(width)}  passed      of  seconds", "heading")]
    for name, found in groups.items():
        passed = sum(outcome.status == "passed" for outcome in found)
        seconds = sum(outcome.seconds for outcome in found)
        style = "" if passed == len(found) else "error"
        yield [(name.ljust(width), "name"), (f"  {passed:6}  {len(found):6}", style), (f"  {seconds:7.2f}", "faint")]
    wrong = [outcome for outcome in outcomes if outcome.status != "passed"]
    if wrong:
        yield []
    for outcome in wrong:
        yield [(outcome.status, _STYLES[outcome.status]), (f"  {outcome.job.name}", "name")]
        yield [(f"  {_short(outcome.message)}", "")]
    yield []
    yield _sum(outcomes)


def _sum(outcomes: Sequence[Outcome]) -> Line:
    line: Line = [(f"{len(outcomes)} case{'' if len(outcomes) == 1 else 's'}: ", "name")]
    parts = [(status, count) for status, count in _counts(outcomes).items() if count or status == "passed"]
    for place, (status, count) in enumerate(parts):
        line.append((", " if place else "", ""))
        line.append((f"{count} {_WORDS.get(status, status)}", _STYLES[status] if count else ""))
    return line


def _short(message: str) -> str:
    text = " ".join(message.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def form(outcomes: Sequence[Outcome], engine: str) -> dict[str, Any]:
    """Everything as an object that `jsonform.document` takes."""
    groups = {name: {"cases": len(found), **_counts(found)} for name, found in _groups(outcomes).items()}
    return {
        "engine": engine,
        "cases": len(outcomes),
        "counts": _counts(outcomes),
        "groups": [{"name": name, **counts} for name, counts in groups.items()],
        "outcomes": [
            {
                "name": outcome.job.name,
                "group": outcome.job.group,
                "status": outcome.status,
                "seconds": round(outcome.seconds, 6),
                "message": outcome.message,
            }
            for outcome in outcomes
        ],
    }


def write_junit(path: str, outcomes: Sequence[Outcome], engine: str) -> None:
    """Write the report, a suite for each group. Raises OutputError where that fails."""
    root = ElementTree.Element("testsuites", {"name": f"onnxeval test ({engine})", **_attributes(outcomes)})
    for name, found in _groups(outcomes).items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": _text(name), **_attributes(found)})
        for outcome in found:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=_text(name),
                name=_text(outcome.job.name),
                time=f"{outcome.seconds:.3f}",
            )
            if outcome.status == "known":
                ElementTree.SubElement(case, "skipped", message=_text(outcome.message))
            elif outcome.status != "passed":
                kind = "failure" if outcome.status == "failed" else "error"
                found_here = ElementTree.SubElement(case, kind, message=_text(_short(outcome.message)))
                found_here.text = _text(outcome.message)
    target = Path(path)
    with write_failures(target), whole_file(target) as partial:
        ElementTree.ElementTree(root).write(partial, encoding="utf-8", xml_declaration=True)


def _attributes(outcomes: Sequence[Outcome]) -> dict[str, str]:
    counts = _counts(outcomes)
    return {
        "tests": str(len(outcomes)),
        "failures": str(counts["failed"]),
        "errors": str(counts["error"] + counts["crashed"]),
        "skipped": str(counts["known"]),
        "time": f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    }


def _text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
