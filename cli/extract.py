"""`onnxeval extract`: a part of a model as a model of its own, in any format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from onnxeval.errors import InputError, OutputError

from . import screen
from .memory import kept_to_memory
from .options import FILE, format_option
from .outputs import choose_outputs
from .printing import tell_notes
from .progress import waiting
from .screen import Line

if TYPE_CHECKING:
    from onnx import ValueInfoProto


@click.command(short_help="Cut a part out of a model, as a model of its own.")
@click.argument("model", type=FILE)
@click.option(
    "-i",
    "--input",
    "inputs",
    metavar="NAME|GLOB",
    multiple=True,
    help="Begin at these values: they become inputs. Repeatable, or with commas.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="NAME|GLOB",
    multiple=True,
    help="End at these values: they become the outputs, instead of the model's. Repeatable, or with commas.",
)
@click.option(
    "--save",
    type=FILE,
    metavar="PATH",
    required=True,
    help="Where to write it: .onnx, .onnxtxt, .textproto or .json, by the suffix.",
)
@format_option("How to tell what the part takes and gives: for people, or JSON.")
@click.pass_context
def extract(
    ctx: click.Context, model: str, inputs: tuple[str, ...], outputs: tuple[str, ...], save: str, form: str
) -> None:
    """Cut the part of MODEL that computes some of its values from others, and write it as a model of its own.

    \b
    Examples:
      onnxeval extract model.onnx -o my_conv --save first.onnx      up to a value
      onnxeval extract model.onnx -i my_conv --save last.onnx       from there on
      onnxeval extract model.onnx -i 'zero,my_conv' -o y --save part.onnxtxt

    Values are those of the model's own graph, by name or by pattern, as `onnxeval run --output` takes them; of a
    pattern for inputs those count that the outputs depend on. What else the outputs depend on among the model's inputs
    stays an input. Names, types and shapes stay, and so do the parameters, functions and imports that the part needs;
    a new input gets the type that the standard's inference finds.

    External data goes into the file, or into PATH.data beside it where it is more than 2 GB. `onnxeval convert` writes
    a whole model in another format.
    """
    from onnxeval.extracting import part_of
    from onnxeval.files.jsonform import document
    from onnxeval.loader import load_model
    from onnxeval.model import Model
    from onnxeval.saving import save_model

    ctx.with_resource(kept_to_memory())
    refuse_same_file(model, save)
    with waiting(f"loading {model}"):
        loaded = load_model(model)
    whole = Model(loaded)
    begin = {pattern: choose_outputs([pattern], (), whole) for pattern in inputs}
    end = choose_outputs(outputs, (), whole) if outputs else [output.name for output in whole.outputs]
    asked = {*begin}
    cuts = dict.fromkeys(name for names in begin.values() for name in names if name in asked or name not in end)
    with waiting(f"extracting from {model}"):
        part = part_of(loaded, list(cuts), end)
        for pattern, names in begin.items():
            if {*names} <= {*part.unused, *end}:
                raise InputError(f"no output depends on {pattern!r}", hint=f"the outputs are: {', '.join(end)}")
        told = {"path": save, "nodes": len(part.model.graph.node), "of": len(loaded.proto.graph.node)}
        told |= {"inputs": _values(part.model.graph.input), "outputs": _values(part.model.graph.output)}
        notes = save_model(part.model, save, part.files)
    if form == "json":
        screen.write(document(told))
    else:
        screen.show(_lines(told))
    if part.untold:
        screen.tell(f"note: nothing tells all of the type of {', '.join(part.untold)}, which a model has to declare")
    tell_notes(notes)


def _values(declared: Iterable[ValueInfoProto]) -> list[dict[str, str | None]]:
    from onnxeval.tensors import type_from

    types = {value.name: type_from(value.type) for value in declared}
    return [{"name": name, "type": None if told is None else str(told)} for name, told in types.items()]


def _lines(told: Mapping[str, Any]) -> Iterator[Line]:
    of = f" of {told['of']:,}" if told["nodes"] != told["of"] else ""
    yield [(told["path"], "name"), (f"  {told['nodes']:,}{of} node{'s' * (told['of'] != 1)}", "")]
    for title in ("inputs", "outputs"):
        values = told[title]
        yield [(title, "heading"), ("" if values else "  none", "")]
        width = max((len(value["name"]) for value in values), default=0)
        for value in values:
            yield [(f"  {value['name'].ljust(width)}", "name"), (f"  {value['type'] or 'unknown'}", "type")]


def refuse_same_file(model: str, target: str) -> None:
    """Raise OutputError where a model would be written over the one that it is made of."""
    from onnxeval.saving import is_same_file

    if is_same_file(model, target):
        raise OutputError(f"{target} is the model itself", hint="write to another file")
