"""known_failures.toml as a table."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple


class Failure(NamedTuple):
    """Why the data of a case is wrong. ``agree`` are the engines that give it all the same."""

    reason: str
    agree: frozenset[str]


def _load() -> dict[str, Failure]:
    failures: dict[str, Failure] = {}
    for entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["failure"]:
        for case in entry["cases"]:
            assert case not in failures, f"{case} is listed twice"
            failures[case] = Failure(entry["reason"], frozenset(entry.get("agree", ())))
    return failures


#: ``1.6.0/node/test_abs`` -> why it fails.
KNOWN_FAILURES = _load()
