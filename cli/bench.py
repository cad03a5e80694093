"""`onnxeval bench`: how long a model takes, where the time goes, and how others do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxeval.errors import OutputError

from . import screen
from .dims import dim_option
from .options import (
    FILE,
    SECONDS,
    InputCommand,
    fast_math_option,
    format_option,
    input_option,
    kernel_files,
    kernels_option,
    threads_option,
)
from .printing import tell_notes
from .reading import reading, reading_options

if TYPE_CHECKING:
    from onnxeval.model import Model
    from onnxeval.values import Value

_FAILED = 1
#: How many processors may be busy with something else before figures need a word of warning.
_DISTURBING = 0.2


@click.command(cls=InputCommand, short_help="Measure a model: time, memory, and how others do.")
@click.argument("model", type=FILE)
@input_option
@click.option(
    "--vs",
    "others",
    type=click.Choice(["onnxruntime", "reference"]),
    multiple=True,
    help="Measure another engine beside: onnxruntime, or the ReferenceEvaluator of onnx. Repeatable.",
)
@click.option(
    "--seconds",
    type=SECONDS,
    default=2.0,
    show_default=True,
    metavar="S",
    help="Run each engine for so long, three times at least.",
)
@click.option(
    "--cold",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="Also time N whole processes that run the model once, fewer where they take long.",
)
@click.option("--profile", is_flag=True, help="Also show where the time goes, by operator and by node.")
@format_option("How to print: for people, or JSON.")
@dim_option("The size of a dimension that the model leaves open, as in N=4. Repeatable, or with commas.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Of inputs that are made up: as `onnxeval run --random --seed N` makes them.",
)
@reading_options
@fast_math_option
@kernels_option
@threads_option
@click.pass_context
def bench(
    ctx: click.Context,
    model: str,
    inputs: tuple[str, ...],
    others: tuple[str, ...],
    seconds: float,
    cold: int,
    profile: bool,
    form: str,
    sizes: dict[str, int],
    seed: int,
    fast_math: bool,
) -> None:
    """Measure how long MODEL takes to load and to run, and the memory it needs.

    \b
    Examples:
      onnxeval bench model.onnx -i x.npy                    time and memory
      onnxeval bench model.onnx --dim N=1                   made-up inputs
      onnxeval bench model.onnx -i x.npy --profile          where it goes
      onnxeval bench model.onnx -i x.npy --vs onnxruntime   and by others
      onnxeval bench model.onnx -i x.npy --vs reference --threads 1
      onnxeval bench model.onnx -i x.npy --fast-math        less exact
      onnxeval bench model.onnx -i x.npy --format json | jq '.engines[0].median'

    Inputs are given as to `onnxeval run`. Those that are not given are made up as by its --random, with the sizes that
    the model declares and --dim gives: there have to be all.

    Each engine runs in a process of its own, on as many threads. They take turns, so that what else happens on the
    machine happens to all; ratios are those of the turns, median, lowest and highest. The outputs are compared.

    \b
    Exit codes:
      0  everything was measured
      1  another engine cannot run the model; the rest was measured
    """
    import tempfile

    import onnxeval
    from onnxeval.benchmark.measuring import Setting, measure, require

    from . import benchpages
    from .feeds import read_feeds
    from .random import made_up

    require(others)
    loaded = onnxeval.load(model)
    how = reading(ctx, seed, sizes)
    given = read_feeds(inputs, loaded.inputs, how)
    tell_notes(how.notes)
    feeds = made_up(loaded, given, sizes, seed, assume=False).feeds
    with tempfile.TemporaryDirectory(prefix="onnxeval-") as folder:
        report = measure(
            model,
            feeds,
            others,
            Setting(seconds=seconds, cold=cold, profile=profile, kernels=kernel_files(ctx), fast_math=fast_math),
            feeds_path=_saved(feeds, loaded, Path(folder)) if cold else None,
            model_for_others=_readable_by_others(loaded, model, Path(folder)) if others else None,
        )
    if form == "json":
        from onnxeval.files.jsonform import document

        screen.write(document(benchpages.form(model, feeds, report)))
    else:
        on = screen.screen()
        screen.show(benchpages.lines(model, feeds, report, on), on)
    _note_bystanders(report.others)
    failures = [measured for measured in report.engines if measured.failure]
    for measured in failures:
        click.echo(f"warning: {benchpages.called(measured)} cannot run the model: {measured.failure}", err=True)
    ctx.exit(_FAILED if failures else 0)


def _note_bystanders(others: float | None) -> None:
    if others is not None and others > _DISTURBING:
        click.echo(f"note: other processes kept {others:.1f} processors busy meanwhile: times are too long", err=True)


def _saved(feeds: Mapping[str, Value], model: Model, folder: Path) -> str | None:
    """Where the feeds lie for `onnxeval run --input`; None for feeds that no file can hold, and for none at all."""
    from onnxeval.files.targets import open_target

    declared = {entry.name: entry.type for entry in model.inputs}
    if not feeds:
        return None
    target = open_target(f"{folder / 'feeds'}{os.sep}")
    try:
        target.save({name: (value, declared[name]) for name, value in feeds.items()})
    except OutputError as error:
        click.echo(f"note: whole processes are not timed: {error}", err=True)
        return None
    return str(target.path)


def _readable_by_others(model: Model, path: str, folder: Path) -> Path | None:
    """The model as others read it, where its file is a text; None where they read the file itself."""
    if Path(path).suffix.lower() not in (".onnxtxt", ".json", ".textproto"):
        return None
    copy = folder / "model.onnx"
    copy.write_bytes(model.proto.SerializeToString())
    return copy
