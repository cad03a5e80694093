"""The command group: a static table of commands, and what an error means to the shell.

Nothing here imports NumPy, onnx or rich, and a command's module is imported when the command is used, so that help and
completion answer at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from onnxeval.errors import OnnxEvalError, OutputError, ResourceLimitError

from .screen import NoReaderError, flush, standard_streams, tell
from .timeout import TimeUp

#: Command -> the module of this package that holds it, under its own name, and the line that help shows for it.
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Run a model and print or save its outputs."),
    "test": ("test", "Run models on their test data sets, or onnx's conformance cases."),
    "bench": ("bench", "Measure a model: time, memory, and how others do."),
    "check": ("check", "List every defect of a model, each with its place and a hint."),
    "inspect": ("inspect", "Show what a model is made of, and what running it costs."),
    "apply": ("apply", "Run one operator, without a model."),
    "extract": ("extract", "Cut a part out of a model, as a model of its own."),
    "convert": ("convert", "Convert values and models between formats; make test data sets."),
    "ops": ("ops", "Look up operators: versions, types, attributes, what changed."),
}

_INTERRUPTED = 130
_BUG = 70

_EPILOG = """\b
Exit codes:
  0  success                        5  a wrong or unreadable input
  1  a negative verdict             6  a node that failed
  2  wrong usage                    7  too much memory, or too long
  3  not a valid model              8  an output that cannot be written
  4  an operator without a kernel   9  an optional package is missing
                                   10  another engine cannot run the model

`onnxeval COMMAND --help` shows the options of a command, with examples."""


class _Shell(click.Group):
    """Commands by the table, imported on demand; errors become a message on stderr and an exit code."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".{COMMANDS[cmd_name][0]}", __package__)
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            if os.path.exists(args[0]):
                hint = f" To run a model: onnxeval run {args[0]}"
            else:
                hint = f" Did you mean {close[0]!r}?" if close else f" Commands: {', '.join(COMMANDS)}."
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def main(  # type: ignore[override]  # click overloads it by standalone_mode, which is settled here
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        extra.pop("standalone_mode", None)
        with standard_streams():
            code = _guarded(lambda: super(_Shell, self).main(args, prog_name, standalone_mode=False, **extra))
        sys.exit(code)


def _guarded(command: Any) -> int:
    """Run the command; the exit code for whatever happens."""
    try:
        code = command()
        flush()
    except NoReaderError as error:
        _discard_output()
        return error.exit_code
    except OutputError as error:
        _discard_output()
        if not isinstance(error.__cause__, BrokenPipeError):  # as with NoReaderError: whoever read has seen enough
            _complain(str(error), error.hint)
        return error.exit_code
    except OnnxEvalError as error:
        _complain(str(error), error.hint)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except TimeUp as end:
        _complain(f"{end}{_place(end)}")
        return ResourceLimitError.exit_code
    except (click.Abort, KeyboardInterrupt) as interrupt:
        _complain(f"interrupted{_place(interrupt.__cause__ or interrupt)}")
        return _INTERRUPTED
    except MemoryError as error:
        _complain(f"out of memory{f': {error}' if str(error) else ''}")
        return ResourceLimitError.exit_code
    except Exception:
        import traceback

        traceback.print_exc()
        _complain("this is a fault of onnxeval itself, not of your model: please report it with the lines above")
        return _BUG
    return code if isinstance(code, int) else 0


def _place(stopped: BaseException) -> str:
    """Where a model was stopped, as `run_step` noted it: from the innermost node outwards."""
    labels = getattr(stopped, "__notes__", [])
    return f" in {' > '.join(reversed(labels))}" if labels else ""


def _discard_output() -> None:
    """Let what is left in the buffer of standard output go nowhere: it would complain once more at exit."""
    try:
        flush()
    except OutputError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, hint: str = "") -> None:
    red = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    click.echo(click.style("error: ", fg="red", bold=True) if red else "error: ", nl=False, err=True)
    tell(message)
    if hint:
        tell(f"hint: {hint}")


def _print_versions(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    import platform

    import numpy

    import onnxeval
    from onnxeval.fast.engine import status
    from onnxeval.opdocs import standard

    about = standard()
    opsets = ", ".join(f"{domain} {version}" for domain, version in about.opsets.items())
    click.echo(f"onnxeval {onnxeval.__version__}")
    click.echo(f"onnx {about.release} (opsets: {opsets}; IR {about.ir_version})")
    click.echo(f"compiled kernels: {status()}")
    click.echo(f"numpy {numpy.__version__}, Python {platform.python_version()}")
    ctx.exit()


@click.group(
    cls=_Shell,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Show the versions of onnxeval, onnx and NumPy, the opsets and IR version they know, the compiled kernels.",
)
def main() -> None:
    """Run, check and explain ONNX models, exactly as the standard says.

    \b
    Examples:
      onnxeval run model.onnx --input x.npy   run a model, print its outputs
      onnxeval check model.onnx               list all that is wrong with it
      onnxeval bench model.onnx               measure how long it takes
      onnxeval ops MaxPool                    look up an operator
    """
