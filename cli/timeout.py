"""`--timeout S`: what takes longer is given up, wherever it is."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from .options import SECONDS

if TYPE_CHECKING:
    from onnxeval.limits import Limits

_META = "onnxeval.timeout"
#: Seconds until it is said once more: what is raised inside a finaliser, or a callback of C, is lost.
_AGAIN = 2.0


class TimeUp(BaseException):  # as KeyboardInterrupt: no `except Exception` stops it
    """The seconds of `--timeout` are over."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"gave up after {seconds:g} s")


def timeout_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option, heeded from here on and not handed on: `limits` knows it."""
    return click.option(
        "--timeout",
        type=SECONDS,
        metavar="S",
        callback=_keep,
        expose_value=False,
        help="Give up after so many seconds.  [default: after 20 million nodes]",
    )(command)


def limits(ctx: click.Context) -> Limits | None:
    """The bounds of each run: with a time, the number of nodes is none."""
    if ctx.meta.get(_META) is None:
        return None
    from onnxeval.limits import Limits

    return Limits(steps=None)


def _keep(ctx: click.Context, _parameter: click.Parameter, seconds: float | None) -> None:
    if seconds is None or ctx.resilient_parsing:
        return
    if not hasattr(signal, "setitimer"):
        raise click.UsageError("--timeout needs the timers of POSIX, which this system lacks.")
    ctx.meta[_META] = seconds
    ctx.with_resource(_timed(seconds))


@contextmanager
def _timed(seconds: float) -> Iterator[None]:
    """A timer that stops the main thread between two instructions of Python: it costs nothing while it runs."""

    def give_up(_signal: int, _frame: object) -> None:
        raise TimeUp(seconds)

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
