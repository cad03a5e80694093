"""`onnxeval run`: feed a model, run it, show and save what comes out."""

from __future__ import annotations

from itertools import chain
from typing import Any

import click

from . import screen
from .batches import batch_options, is_batch, run_batch
from .memory import kept_to_memory
from .options import FILE, InputCommand, fast_math_option, input_option, kernels_option, threads_option
from .outputs import choose_outputs, known_values, with_types
from .printing import Printing, tell_notes, value_options
from .random import filled, given_sizes, random_options
from .reading import reading, reading_options
from .stepping import run_model, step_options
from .timeout import timeout_option
from .verdict import DIFFERS, Expectations, Tolerances, expect_options, verdict_form, verdict_lines
from .versus import Against, report_form, report_lines, versus_option


@click.command(cls=InputCommand, short_help="Run a model and print or save its outputs.")
@click.argument("model", type=FILE)
@input_option
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="NAME|GLOB",
    multiple=True,
    help="Show only these values: outputs or any value inside the graph, by name or by pattern. Repeatable, or with "
    "commas.",
)
@click.option(
    "--output-type",
    "operators",
    metavar="OP",
    multiple=True,
    help="Show what the nodes of this operator make, as in --output-type Conv. Repeatable, or with commas.",
)
@value_options
@expect_options
@versus_option
@step_options
@reading_options
@random_options
@batch_options
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="Make random operators and inputs repeat themselves."
)
@click.option("--reference", is_flag=True, help="Run each node by itself, by its readable kernel: nothing rewritten.")
@fast_math_option
@kernels_option
@threads_option
@timeout_option
def run(
    model: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    operators: tuple[str, ...],
    save: str | None,
    form: str,
    full: bool,
    stats: bool,
    hashes: bool,
    drawn: bool,
    seed: int | None,
    reference: bool,
    fast_math: bool,
) -> int:
    """Run MODEL (.onnx, .onnxtxt, .textproto or .json) and print its outputs: name, type, range and elements.

    \b
    Examples:
      onnxeval run model.onnx --input x.npy           the only input, from a file
      onnxeval run model.onnx -i x.npy -i mask=true   two inputs, one by name
      onnxeval run model.onnx -i 'x=[[1, 2, 3]]'      elements typed in place
      onnxeval run model.onnx -i feeds.npz            all inputs, by name
      onnxeval run model.onnx -i test_data_set_0      input_0.pb, input_1.pb ...
      onnxeval run model.onnx -i x.npy -o '*conv*'    values inside the graph
      onnxeval run model.onnx -i x.npy --save y.npz   keep the outputs
      onnxeval run model.onnx --random --dim N=4      inputs made up
      onnxeval run model.onnx -i x.npy --expect y.npy  exit code 1 if not
      onnxeval run model.onnx -i x.npy --vs onnxruntime -o '*'   where they part
      onnxeval run model.onnx -i 'rand:[1,3]' --stats   ranges, histograms
      onnxeval run model.onnx -i many.npy --each --save out/ --jobs 2
      onnxeval run model.onnx -i 'x=many/*.npy' --each --save out/
      onnxeval run a.onnx -i x.npy --save - | onnxeval run b.onnx -i -
      onnxeval run model.onnx -i x.npy --ops mine.py  operators of your own
      onnxeval run model.onnx -i x.npy --format json | jq '.outputs[0].data'

    \b
    VALUE is one of:
      x.npy  x.pb  x.csv  x.txt  x.png   one tensor; a table or a picture too
      feeds.npz  x.safetensors  out.json values by name; feeds.npz:key is one
      test_data_set_0                    input_0.pb ..., or files by name
      x.bin:float32[2,3]                 bytes of that type
      3.5  true  "text"  [[1, 2]]        typed in place, as in JSON
      rand:  randn:  zeros:  ones:  range:  full:7   made on the spot
      -                                  .npy, .npz or .json from a pipe

    \b
    --save PATH is one of:
      y.npy  y.pb  y.csv  y.txt  y.png  y.bin   the only value
      out.npz  out.safetensors  out.json        all values, by name
      folder/  folder/*.pb  test_data_set_0     a file for each
      -                                         .npy or .npz, to a pipe

    A VALUE without NAME goes to the one input that no other option fills, one for a NAME with * to all that it matches.
    The types have to be what the model declares: nothing is cast without --cast. In a GLOB, * stands for any text.

    --random looks at what the nodes do with an input: indices stay inside what they point into, shapes can be made,
    masks are 0 and 1, arguments of a logarithm are positive. Sizes that the model leaves open are 1, or the least that
    its nodes can work with, where --dim gives none. What was made up is told, with the line that repeats it.

    --vs compares by --rtol, --atol and --max-ulp as --expect does, and says at which node differences begin: among the
    values shown, so -o '*' looks at all. The values themselves are printed with --full.

    --each runs the model on each row of a .npy file that has one dimension more than the model declares, or on each
    file of a pattern, and appends what it gives to one .npy file for each output. Neither is ever in memory as a whole.
    What was interrupted goes on with --resume. --dask hands the items to the machines of a cluster.

    \b
    Exit codes:
      0  the model ran, and gave what --expect or --vs says
      1  it gave something else
    """
    import numpy as np

    import onnxeval

    from .feeds import read_feeds
    from .progress import waiting

    ctx = click.get_current_context()
    ctx.with_resource(kept_to_memory())
    ctx.with_resource(np.errstate(all="ignore"))
    printing = Printing(save, form, full, stats, hashes, drawn)
    if reference and fast_math:
        raise click.UsageError("--reference and --fast-math do not go together.")
    batch = is_batch(ctx)
    if not batch:
        printing.open()
    with waiting(f"loading {model}"):
        loaded = onnxeval.load(model, fast_math=fast_math)
    chosen = choose_outputs(outputs, operators, loaded) if outputs or operators else None
    how = reading(ctx, seed, given_sizes(ctx))
    shown = [output.name for output in loaded.outputs] if chosen is None else chosen
    if batch:
        run_batch(ctx, model, loaded, inputs, shown, save, form, how, seed, reference)
        return 0
    types = {output.name: output.type for output in loaded.outputs}
    tolerances = Tolerances(ctx)
    expected = Expectations(ctx, known_values(loaded), types, how, tolerances)
    against = Against(ctx, tolerances, reference=reference, fast_math=fast_math) if Against.asked(ctx) else None
    tolerances.refuse_others(shown if against else expected.names)
    names = chosen if {*expected.names} <= {*shown} else list(dict.fromkeys([*shown, *expected.names]))
    given = read_feeds(inputs, loaded.inputs, how)
    tell_notes(how.notes)
    feeds, seed = filled(ctx, model, loaded, inputs, given, seed)
    if against is not None and seed is None:
        seed = 0  # both models draw the same numbers
    try:
        results, last = run_model(ctx, loaded, feeds, names, reference=reference, seed=seed)
    finally:
        for warning in loaded.warnings:
            screen.tell(f"warning: {warning}")
    verdict = expected.verdict(last)
    report = against.report(loaded, feeds, last, seed) if against else None
    tell_notes([*how.notes, *(report.notes if report else ())])
    unseen = {*expected.names}.difference(shown)
    typed = with_types({name: value for name, value in results.items() if name not in unseen}, loaded)
    added: dict[str, Any] = {"verdict": verdict_form(verdict)} if verdict else {}
    lines = verdict_lines(verdict)
    if report is not None:
        added["versus"] = report_form(report)
        lines = chain(report_lines(report, printing.on), lines)
    printing.print(
        typed,
        quiet=not full and (report is not None or (bool(verdict) and not chosen)),
        bare=report is not None and not full,
        form=added,
        lines=lines,
    )
    agrees = all(comparison.agrees for comparison in verdict) and (report is None or report.agrees)
    return 0 if agrees else DIFFERS
