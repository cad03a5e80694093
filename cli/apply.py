"""`onnxeval apply`: one operator on values, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from onnxeval.errors import InputError

from .memory import kept_to_memory
from .ops import find_operator, names_starting_with
from .options import FILE, kernels_option, threads_option
from .outputs import with_types
from .printing import Printing, tell_notes, value_options
from .verdict import DIFFERS, Expectations, Tolerances, expect_options, verdict_form, verdict_lines

if TYPE_CHECKING:
    from onnx import AttributeProto

    from onnxeval.applying import Operator
    from onnxeval.files import Reading, Source
    from onnxeval.values import Value


@click.command(short_help="Run one operator, without a model.")
@click.argument("operator", metavar="OP", shell_complete=names_starting_with)
@click.option("--domain", metavar="D", help="The operator's domain, where several have one of that name.")
@click.option(
    "--opset", type=click.IntRange(min=1), metavar="N", help="Of this opset of its domain.  [default: newest]"
)
@click.option(
    "-i",
    "--input",
    "inputs",
    type=FILE,
    metavar="[NAME=]VALUE",
    multiple=True,
    help="An input, by the standard's name or in its order. Repeat it for each.",
)
@click.option("-a", "--attr", "attributes", metavar="NAME=VALUE", multiple=True, help="An attribute. Repeatable.")
@click.option(
    "--outputs", type=click.IntRange(min=1), metavar="N", help="So many outputs.  [default: the required ones]"
)
@value_options
@expect_options
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Make random operators repeat themselves.")
@click.option("--reference", is_flag=True, help="Run it by its readable kernel.")
@kernels_option
@threads_option
@click.pass_context
def apply(
    ctx: click.Context,
    operator: str,
    domain: str | None,
    opset: int | None,
    inputs: tuple[str, ...],
    attributes: tuple[str, ...],
    outputs: int | None,
    save: str | None,
    form: str,
    full: bool,
    stats: bool,
    hashes: bool,
    drawn: bool,
    seed: int | None,
    reference: bool,
) -> int:
    """Run the operator OP on values and print what it gives.

    \b
    Examples:
      onnxeval apply Add -i 1.5 -i '[1, 2]'
      onnxeval apply DepthToSpace --opset 28 -i x.npy -a blocksize=2 -a mode=CRD
      onnxeval apply Softmax --opset 11 -i rand:float32[2,3,4]
      onnxeval apply TopK -i x.npy -i K=[3] --outputs 2
      onnxeval apply Cast -i '[1.5, -2]' -a to=int8
      onnxeval apply Gelu --domain com.microsoft -i x.npy
      onnxeval apply Relu -i '[-1, 2]' --expect '[0, 2]'   exit code 1 if not
      onnxeval apply Softmax -i x.npy --stats              ranges, histograms

    VALUEs are those of `onnxeval run`. What is typed in place takes the type of the inputs that it must agree with, or
    one that the operator allows. VALUEs of attributes are numbers, text, lists such as [1, 2], and for tensors whatever
    an input can be. `onnxeval ops OP` tells the names.

    \b
    Exit codes:
      0  it ran, and gave what --expect says
      1  it gave something else
    """
    import onnxeval
    from onnxeval.applying import model_of, operator_at, outputs_of, require_inputs

    ctx.with_resource(kept_to_memory())
    printing = Printing(save, form, full, stats, hashes, drawn)
    printing.open()
    found = operator_at(*find_operator(operator, domain), opset)
    from onnxeval.files import Reading

    reading = Reading(seed=seed or 0)
    values = _read_inputs(found, inputs, reading)
    tell_notes(reading.notes)
    require_inputs(found, values)
    made = [_attribute(found, text) for text in attributes]
    proto = model_of(found, values, made, outputs_of(found, outputs))
    model = onnxeval.load(proto)
    feeds = {entry.name: value for entry, (_, value) in zip(model.inputs, sorted(values.items()), strict=True)}
    tolerances = Tolerances(ctx)
    types = {output.name: output.type for output in model.outputs}
    expected = Expectations(ctx, (), types, reading, tolerances)
    tolerances.refuse_others(expected.names)
    results = model.run(feeds, seed=seed, reference=reference)
    verdict = expected.verdict(results)
    tell_notes(reading.notes)
    printing.print(
        with_types(results, model),
        quiet=bool(verdict) and not full,
        form={"verdict": verdict_form(verdict)} if verdict else {},
        lines=verdict_lines(verdict),
    )
    return 0 if all(comparison.agrees for comparison in verdict) else DIFFERS


def _read_inputs(operator: Operator, arguments: Sequence[str], reading: Reading) -> dict[int, Value]:
    """The values by the places of the inputs that they are for."""
    from onnxeval.files.opening import StandardInput, open_source

    from .feeds import did_you_mean, split_argument

    names, standard_input = list(operator.inputs), StandardInput()
    sources: dict[int, tuple[str, Source]] = {}

    def put(place: int | None, label: str, inner: str, source: Source) -> None:
        if place is None:
            raise source.error(f"holds {inner!r}, which is no input of {operator.name}", did_you_mean(inner, names))
        if place in sources:
            raise InputError(f"the input {names[place]!r} is given twice, the second time by {label}")
        sources[place] = (inner, source)

    for argument in arguments:
        chosen, text = split_argument(argument, names)
        source = open_source(text, names, standard_input, reading)
        inside = source.names()
        if chosen:
            for name in chosen:
                put(operator.place_of(name), source.label, name, source)
        elif inside is None:
            free = next(place for place in range(len(sources) + 1) if place not in sources)
            if free >= len(names) and not operator.variadic:
                raise InputError(f"{operator.name} takes {len(names)} inputs, {source.label} is one more")
            put(free, source.label, "", source)
        else:
            for inner in inside:
                put(operator.place_of(inner), source.label, inner, source)
    return _as_types(operator, sources)


def _as_types(operator: Operator, sources: dict[int, tuple[str, Source]]) -> dict[int, Value]:
    """Files have types of their own; what is typed in place takes those that it must agree with."""
    import numpy as np

    from onnxeval.applying import wanted_type
    from onnxeval.files.jsonfile import Literal

    values: dict[int, Value] = {}
    known: dict[str, Any] = {}
    typed: dict[int, Any] = {}
    for place, (name, source) in sources.items():
        if isinstance(source, Literal):
            value = source.read(name, None)
            typed[place] = value.dtype if isinstance(value, np.ndarray) else None
            continue
        values[place] = source.read(name, None)
        if isinstance(values[place], np.ndarray) and (variable := operator.variable(place)):
            known.setdefault(variable, values[place].dtype)
    for place in typed:  # 1 beside 1.5 is a float, too
        variable = operator.variable(place)
        others = {dtype for other, dtype in typed.items() if operator.variable(other) == variable}
        if variable and np.dtype(np.float32) in others and typed[place] == np.int64:
            typed[place] = np.dtype(np.float32)
    for place in sorted(typed):
        name, source = sources[place]
        values[place] = source.read(name, wanted_type(operator, place, known, typed[place]))
        if isinstance(values[place], np.ndarray) and (variable := operator.variable(place)):
            known.setdefault(variable, values[place].dtype)
    return values


def _attribute(operator: Operator, argument: str) -> AttributeProto:
    import json

    from onnxeval.applying import attribute_of, wants_tensor
    from onnxeval.files.opening import open_source

    name, equals, text = argument.partition("=")
    if not equals:
        raise click.BadParameter(f"{argument!r} is not NAME=VALUE.", param_hint="--attr")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = [json_or_text(part) for part in text.split(",")] if "," in text else text
    tensor = open_source(text).read("", None) if wants_tensor(operator, name) else None
    return attribute_of(operator, name, content, text, tensor)


def json_or_text(text: str) -> Any:
    """A number where the text is one: `1,2` is a list of two."""
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text
