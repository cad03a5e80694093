"""`onnxeval run`: feed a model, run it, show and save what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from onnxeval.errors import InputError

from . import screen
from .memory import kept_to_memory
from .options import FILE, input_option, kernels_option, threads_option
from .random import filled, random_options

if TYPE_CHECKING:
    from onnxeval.model import Model
    from onnxeval.values import Value, ValueType


@click.command(short_help="Run a model and print or save its outputs.")
@click.argument("model", type=FILE)
@input_option
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="NAME|GLOB",
    multiple=True,
    help="Show only these values: outputs or any value inside the graph, by name or by pattern. Repeatable.",
)
@click.option(
    "--save",
    type=FILE,
    metavar="PATH",
    help="Also save the values: all to a .npz file, one to a .npy file, or a file each to a folder.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print: laid out for people, or JSON with every element.",
)
@click.option("--full", is_flag=True, help="Print every element of large tensors.")
@random_options
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="Make random operators and inputs repeat themselves."
)
@click.option("--reference", is_flag=True, help="Run each node by itself, by its readable kernel: nothing rewritten.")
@kernels_option
@threads_option
def run(
    model: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    save: str | None,
    form: str,
    full: bool,
    seed: int | None,
    reference: bool,
) -> None:
    """Run MODEL (.onnx, .onnxtxt or .json) and print its outputs: name, type, range and elements.

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
      onnxeval run model.onnx -i x.npy --ops mine.py  operators of your own
      onnxeval run model.onnx -i x.npy --format json | jq '.outputs[0].data'

    \b
    VALUE is one of:
      x.npy             an array
      feeds.npz         arrays under the inputs' names; feeds.npz:key is one
      x.pb              a TensorProto, or another message of ONNX by type
      test_data_set_0   input_0.pb ..., or files named as the inputs
      out.json          what --format json printed
      3.5  true  "text"  [[1, 2]]   typed in place, as in JSON
      -                 a .npy or .npz file on standard input

    A VALUE without NAME goes to the one input that no other option fills. The types have to be what the model declares:
    nothing is cast. In a GLOB, * stands for any text, / included.

    --random looks at what the nodes do with an input: indices stay inside what they point into, shapes can be made,
    masks are 0 and 1, arguments of a logarithm are positive. Sizes that the model leaves open are 1, or the least that
    its nodes can work with, where --dim gives none. What was made up is told, with the line that repeats it.
    """
    import onnxeval

    from .feeds import read_feeds

    click.get_current_context().with_resource(kept_to_memory())
    target = None
    if save is not None:
        from onnxeval.files.targets import open_target

        target = open_target(save)
    loaded = onnxeval.load(model)
    names = choose_outputs(outputs, loaded) if outputs else None
    feeds, seed = filled(click.get_current_context(), model, loaded, inputs, read_feeds(inputs, loaded.inputs), seed)
    try:
        results = loaded.run(feeds, names, reference=reference, seed=seed)
    finally:
        for warning in loaded.warnings:
            screen.tell(f"warning: {warning}")
    typed = _with_types(results, loaded)
    notes = [] if target is None else target.save(typed)
    if form == "json":
        from onnxeval.files.jsonform import document, value_form

        entries = [{"name": name, **value_form(value)} for name, (value, _) in typed.items()]
        screen.write(document({"outputs": entries}))
    else:
        on = screen.screen()
        screen.show(_lines(typed, on, full), on)
    if target is not None:
        screen.flush()
        for note in notes:
            screen.tell(f"note: {note}")
        screen.tell(f"saved {', '.join(typed)} to {target.path}")


def choose_outputs(patterns: Sequence[str], model: Model) -> list[str]:
    """The values that `--output` names, in the order asked, those of a pattern in the graph's order."""
    from fnmatch import translate
    from re import compile as compile_pattern

    declared = [output.name for output in model.outputs]
    known = list(dict.fromkeys([*model.values, *declared]))
    every = set(known)
    chosen: dict[str, None] = {}
    for pattern in patterns:
        if pattern in every:
            chosen[pattern] = None
            continue
        matches = compile_pattern(translate(pattern)).match
        found = [name for name in known if matches(name)]
        if not found:
            from difflib import get_close_matches

            near = get_close_matches(pattern, known, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"the outputs are: {', '.join(declared)}"
            raise InputError(f"the model has no value {pattern!r}, as a name or as a pattern", hint=hint)
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _with_types(results: Mapping[str, Value], model: Model) -> dict[str, tuple[Value, ValueType | None]]:
    """Each result with the type that the model declares for it; an optional that holds nothing says so."""
    from onnxeval.values import EmptyOptional, OptionalType

    declared = {output.name: output.type for output in model.outputs}
    typed = {}
    for name, value in results.items():
        value_type = declared.get(name)
        if value is None:
            value = EmptyOptional(value_type.element if isinstance(value_type, OptionalType) else None)
        typed[name] = (value, value_type)
    return typed


def _lines(typed: Mapping[str, tuple[Value, Any]], on: Any, full: bool) -> Iterator[Any]:
    from .render import value_lines

    for place, (name, (value, _)) in enumerate(typed.items()):
        if place:
            yield []
        yield from value_lines(name, value, on, full=full)
    if not typed:
        screen.tell("the model has no outputs")
