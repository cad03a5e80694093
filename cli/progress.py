"""A progress bar on standard error, for a person who has waited a second."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any, TypeVar

T = TypeVar("T")

_DELAY = 1.0
_LONGEST = 30


def tracked(items: Iterable[T], total: int) -> Iterator[T]:
    """The items one by one, with a bar that tells how far they are where it takes long and a terminal shows it."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield from items
        return
    with _bar(total) as (bar, task):
        for place, item in enumerate(items):
            text = str(item)
            short = text if len(text) <= _LONGEST else f"…{text[-_LONGEST:]}"
            bar.update(task, description=short, completed=place)
            yield item


@contextmanager
def _bar(total: int) -> Iterator[tuple[Any, Any]]:
    """A bar that appears after a while, and vanishes at the end. A lone item has no measure: the bar moves then."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), *([MofNCompleteColumn()] if total > 1 else []), TimeElapsedColumn())
    text = TextColumn("{task.description}", markup=False)
    bar = Progress(*columns, text, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=total if total > 1 else None)
    timer = Timer(_DELAY, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield bar, task
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
