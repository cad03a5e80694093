"""`onnxeval inspect`: what a model is made of, and what running it costs."""

from __future__ import annotations

import click

from . import screen
from .dims import dim_option
from .memory import kept_to_memory
from .options import FILE, format_option, kernels_option


@click.command(short_help="Show what a model is made of, and what running it costs.")
@click.argument("model", type=FILE)
@click.option("--tree", is_flag=True, help="The graph, a node a line with what it reads and makes.")
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Unfold sub-graphs and functions this deep in the tree.",
)
@click.option("--cost", is_flag=True, help="MACs, parameters and memory of each node, and of the whole.")
@dim_option("The size of a dimension that the model leaves open, as in N=4. Repeatable, or with commas.")
@format_option("How to print: for people, or JSON, which holds everything.")
@kernels_option
@click.pass_context
def inspect(
    ctx: click.Context, model: str, tree: bool, depth: int, cost: bool, sizes: dict[str, int], form: str
) -> None:
    """Show what MODEL takes and gives, its parameters and operators, and what onnxeval cannot run, without running it.

    \b
    Examples:
      onnxeval inspect model.onnx                        in short
      onnxeval inspect model.onnx --tree                 node by node
      onnxeval inspect model.onnx --tree --depth 2       with sub-graphs
      onnxeval inspect model.onnx --cost --dim N=1       where the work is
      onnxeval inspect model.onnx --format json | jq '.operators'

    Sizes come from the standard's shape inference, with constants carried through shape arithmetic. What stays open is
    shown by its name; --dim gives it a size. A dimension without a name is called by its place: `--dim 'x[0]=4'`.

    A MAC is a multiplication with an addition. Those of convolutions, products of matrices, recurrent layers and
    attention are counted; of an If the dearer branch, of a Loop the body for each trip, once where their number is not
    known. Memory is that of the results; the peak is what is alive at once, each kept until its last reader has run.
    """
    from onnxeval.checks.recording import record
    from onnxeval.inspection.cost import cost_of
    from onnxeval.inspection.summary import summarise
    from onnxeval.loader import load_model
    from onnxeval.sizes import bind_sizes, check_names, open_sizes

    from . import inspectpages as pages

    if depth and not tree:
        raise click.UsageError("--depth unfolds the tree: it needs --tree.")
    ctx.with_resource(kept_to_memory())
    loaded = load_model(model)
    check_names(loaded.proto.graph, sizes)
    bind_sizes(loaded.proto.graph, sizes)
    recorded = record(loaded)
    seen = pages.Seen(model, recorded, summarise(recorded), tuple(open_sizes(loaded.proto.graph)))
    if form == "json":
        from onnxeval.files.jsonform import document

        screen.write(document(pages.form(seen, cost_of(recorded))))
    elif tree or cost:
        screen.show(
            [
                *(pages.tree_lines(seen, depth) if tree else ()),
                *([[]] if tree and cost else ()),
                *(pages.cost_lines(seen, cost_of(recorded), screen.screen()) if cost else ()),
            ]
        )
    else:
        screen.show(pages.summary_lines(seen))
