"""A progress bar on standard error, for a person who has waited a second."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

_DELAY = 1.0
_LONGEST = 30


def tracked(items: Iterable[T], total: int) -> Iterator[T]:
    """The items one by one, with a bar that tells how far they are where it takes long and a terminal shows it."""
    with _Bar(total).shown() as bar:
        for place, item in enumerate(items):
            bar.tell(str(item), place)
            yield item


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """The same for one thing, which takes as long as it takes."""
    bar = _Bar(1)
    bar.tell(text, 0)
    with bar.shown():
        yield


class _Bar:
    """A bar that appears after a while, and vanishes at the end. A lone item has no measure: the bar moves then."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._text, self._completed = "", 0
        self._bar: Progress | None = None

    def tell(self, text: str, completed: int) -> None:
        """How far it is."""
        self._text = text if len(text) <= _LONGEST else f"…{text[-_LONGEST:]}"
        self._completed = completed
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=self._text, completed=completed)

    @contextmanager
    def shown(self) -> Iterator[_Bar]:
        """The bar, where there is a terminal to show it."""
        if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            yield self
            return
        timer = Timer(_DELAY, self._appear)
        timer.daemon = True
        timer.start()
        try:
            yield self
        finally:
            timer.cancel()
            timer.join()
            if self._bar is not None:
                self._bar.stop()

    def _appear(self) -> None:
        """Only now rich is imported: most of what might take long does not."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (BarColumn(), *([MofNCompleteColumn()] if self._total > 1 else []), TimeElapsedColumn())
        text = TextColumn("{task.description}", markup=False)
        bar = Progress(*columns, text, console=Console(stderr=True), transient=True)
        bar.add_task(self._text, total=self._total if self._total > 1 else None, completed=self._completed)
        bar.start()
        self._bar = bar
