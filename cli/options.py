"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from . import screen

#: A name that the shell completes as a file; whether there is one is ours to find out.
FILE = click.Path(readable=False)

_KERNEL_FILES = "onnxeval.kernel_files"


class NumberRange(click.FloatRange):
    """Numbers in a range, which NaN is not in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value} is no number.", param, ctx)
        return number


#: A time to wait or to work: some, and not for ever.
SECONDS = NumberRange(min=0, min_open=True, max=1e6)


class InputCommand(click.Command):
    """A command on one MODEL: what stands beside it was meant as an input, most often."""

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            ctx.fail(f"Got unexpected extra argument {extra[0]!r}. An input is given as --input {extra[0]}")
        return extra


def input_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--input [NAME=]VALUE`, gathered as ``inputs``."""
    return click.option(
        "-i",
        "--input",
        "inputs",
        type=FILE,
        metavar="[NAME=]VALUE",
        multiple=True,
        help="A value for an input, or a file of several. Repeat it for each.",
    )(command)


def format_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--format text|json`, as ``form``."""
    return click.option(
        "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help=text
    )


def kernels_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--ops FILE`, loaded at once and not handed on: the registry knows, and `kernel_files` has the names."""
    return click.option(
        "--ops",
        type=FILE,
        metavar="FILE.py",
        multiple=True,
        callback=_load_kernels,
        expose_value=False,
        help="Also know the operators that this Python file registers with onnxeval.op. Repeatable.",
    )(command)


def _load_kernels(ctx: click.Context, _parameter: click.Parameter, files: tuple[str, ...]) -> None:
    ctx.meta[_KERNEL_FILES] = files
    if files and not ctx.resilient_parsing:
        from onnxeval.plugins import load_file

        for path in files:
            load_file(path)


def kernel_files(ctx: click.Context) -> tuple[str, ...]:
    """The files that `--ops` named."""
    files: tuple[str, ...] = ctx.meta.get(_KERNEL_FILES, ())
    return files


def threads_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--threads N`, heeded before NumPy is imported, and not handed on: `onnxeval.threads` knows."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        envvar="ONNXEVAL_NUM_THREADS",
        show_envvar=True,
        metavar="N",
        callback=_govern,
        is_eager=True,  # before --ops, whose files import NumPy
        expose_value=False,
        help="Use so many threads, those of NumPy's BLAS included, instead of one for each processor.",
    )(command)


def fast_math_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--fast-math`, handed on to `onnxeval.load`."""
    return click.option(
        "--fast-math",
        is_flag=True,
        callback=_tell_of_fast_math,
        help="Let convolutions of 3x3 lose a digit where that takes less time.",
    )(command)


def _tell_of_fast_math(ctx: click.Context, _parameter: click.Parameter, asked: bool) -> bool:
    if asked and not ctx.resilient_parsing:
        from onnxeval.fast.engine import native, status

        if native() is None:
            screen.tell(f"note: --fast-math changes nothing, compiled kernels: {status()}")
    return asked


def _govern(ctx: click.Context, _parameter: click.Parameter, count: int | None) -> None:
    if count is not None and not ctx.resilient_parsing:
        from onnxeval.threads import set_num_threads

        set_num_threads(count)
