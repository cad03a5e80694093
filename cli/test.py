"""`onnxeval test`: models against the outputs that come with them, in this engine or in another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from onnxeval.errors import InputError

from . import screen
from .options import FILE, SECONDS, NumberRange, fast_math_option, format_option, kernel_files, kernels_option

if TYPE_CHECKING:
    from onnxeval.comparing import Tolerance
    from onnxeval.testing.jobs import Job, Outcome

_ENGINES = ("onnxeval", "onnxruntime", "reference")
_FAILED = 1
_NAMED = 5


@click.command(short_help="Run models on their test data sets, or onnx's conformance cases.")
@click.argument("paths", type=FILE, metavar="[PATH]...", nargs=-1)
@click.option("--suite", is_flag=True, help="Run the conformance cases of the installed onnx package.")
@click.option("--only", multiple=True, metavar="GLOB", help="Of the suite, only cases of such names. Repeatable.")
@click.option(
    "--engine",
    type=click.Choice(_ENGINES),
    default=_ENGINES[0],
    show_default=True,
    help="What runs the models.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Processes at once."
)
@click.option("--timeout", type=SECONDS, metavar="S", help="Seconds that one may take.")
@click.option("--rtol", type=NumberRange(min=0), metavar="X", help="Relative tolerance of floats.  [default: 1e-3]")
@click.option("--atol", type=NumberRange(min=0), metavar="X", help="Absolute tolerance of floats.  [default: 1e-7]")
@click.option("--max-ulp", type=click.IntRange(min=0), metavar="N", help="Instead: so many representable numbers away.")
@click.option("--junit", type=FILE, metavar="FILE", help="Also write a report in JUnit's XML.")
@format_option("How to print: a table for people, or JSON with every case.")
@fast_math_option
@kernels_option
@click.pass_context
def test(
    ctx: click.Context,
    paths: tuple[str, ...],
    suite: bool,
    only: tuple[str, ...],
    engine: str,
    jobs: int,
    timeout: float | None,
    rtol: float | None,
    atol: float | None,
    max_ulp: int | None,
    junit: str | None,
    form: str,
    fast_math: bool,
) -> None:
    """Run every model in PATH on each test data set beside it, and compare.

    \b
    Examples:
      onnxeval test model.onnx                   its test_data_set_0, _1 ...
      onnxeval test zoo/ --jobs 4                all models in a folder
      onnxeval test zoo/ --junit report.xml      for a build server
      onnxeval test --suite                      ONNX's conformance cases
      onnxeval test --suite --only 'test_gru*'   some of them
      onnxeval test --suite --engine onnxruntime --jobs 2

    A test data set is a folder `test_data_set_N` in the model's own, with `input_0.pb`, `output_0.pb` and so on or a
    `.npy` file under the name of each input and output; or the model zoo's older `test_data_N.npz`.

    Models run in processes of their own: one that breaks its engine fails alone. Floats are compared by the tolerances,
    everything else exactly.

    \b
    Exit codes:
      0  everything passed
      1  something did not
      5  there is nothing to test, or a test data set cannot be read
    """
    if bool(paths) == suite:
        raise click.UsageError("--suite takes no PATH." if paths else "Missing argument 'PATH', or --suite.")
    if only and not suite:
        raise click.UsageError("--only chooses among the cases of --suite.")
    if fast_math and engine != _ENGINES[0]:
        raise click.UsageError(f"--fast-math is for this engine, not for --engine {engine}.")
    from onnxeval.benchmark.measuring import require
    from onnxeval.comparing import Tolerance
    from onnxeval.testing.pool import run_jobs

    from . import testpages
    from .progress import tracked

    require([engine])
    tolerance = Tolerance(rtol, atol, max_ulp)
    work = _of_suite(engine, only, tolerance) if suite else _of_paths(paths, tolerance)
    if not work:
        raise InputError("there is nothing to test" + (f": no case is called {' or '.join(only)}" if only else ""))
    engine += " --fast-math" * fast_math
    outcomes = run_jobs(work, engine, jobs, timeout, kernel_files(ctx))
    found = _in_order(work, list(tracked(outcomes, len(work))))
    if junit is not None:
        testpages.write_junit(junit, found, engine)
    if form == "json":
        from onnxeval.files.jsonform import document

        screen.write(document(testpages.form(found, engine)))
    else:
        screen.show(testpages.lines(found, "operator" if suite else "model"))
    ctx.exit(0 if all(outcome.status in ("passed", "known") for outcome in found) else _FAILED)


def _of_suite(engine: str, only: tuple[str, ...], tolerance: Tolerance) -> list[Job]:
    from dataclasses import replace

    from onnxeval.comparing import Tolerance
    from onnxeval.testing.suite_jobs import suite_jobs

    found = suite_jobs(engine, only)

    return found if tolerance == Tolerance() else [replace(job, tolerance=tolerance) for job in found]


def _of_paths(paths: tuple[str, ...], tolerance: Tolerance) -> list[Job]:
    from pathlib import Path

    from onnxeval.testing.jobs import Job
    from onnxeval.testing.stored import DATA_SETS, SUFFIXES, data_sets_beside, models_in

    models = list(dict.fromkeys(model for path in paths for model in models_in(Path(path))))
    if not models:
        raise InputError(f"there is nothing to test: no {' or '.join(SUFFIXES)} file is in {', '.join(paths)}")
    data = {model: data_sets_beside(model) for model in models}
    bare = [str(model) for model in models if not data[model]]
    if len(bare) == len(models):
        raise InputError(
            f"there is nothing to test: no test data set is beside {_some(bare)}",
            hint=f"a test data set is {DATA_SETS}; `onnxeval convert IN... MODEL:test_data_set_0` makes one of values",
        )
    if bare:
        screen.tell(f"note: no test data set is beside {_some(bare)}")
    return [Job(name, str(model), str(model), (name,), tolerance) for model, names in data.items() for name in names]


def _some(models: list[str]) -> str:
    rest = len(models) - _NAMED
    return ", ".join(models[:_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")


def _in_order(work: list[Job], outcomes: list[Outcome]) -> list[Outcome]:
    places = {job.name: place for place, job in enumerate(work)}
    return sorted(outcomes, key=lambda outcome: places[outcome.job.name])
