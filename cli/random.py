"""`--random`, `--dim` and `--save-inputs`: inputs made up for a model, told so that the run can be repeated."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from . import screen
from .dims import dim_option
from .options import FILE

if TYPE_CHECKING:
    from onnxeval.model import Model
    from onnxeval.random_feeds import Made
    from onnxeval.values import Value

_META = "onnxeval.random"
_SEEDS = 2**31
_GENERATED = "(?:^|=)(?:rand|randn|zeros|ones|range|full):"


def random_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The three options, not handed on: `filled` knows them."""
    for option in (
        click.option(
            "--save-inputs",
            type=FILE,
            metavar="PATH",
            callback=_keep,
            expose_value=False,
            help="Also save the inputs that the model was run on, as --save does.",
        ),
        dim_option(
            "The size of a dimension that the model leaves open, for --random and for generators. Repeatable, or with "
            "commas.",
            keep=_keep,
        ),
        click.option(
            "--random",
            is_flag=True,
            callback=_keep,
            expose_value=False,
            help="Make up the inputs that are not given: values that the model can take, by --seed.",
        ),
    ):
        command = option(command)
    return command


def given_sizes(ctx: click.Context) -> dict[str, int]:
    """What `--dim` says."""
    sizes: dict[str, int] = ctx.meta.get(_META, {}).get("sizes") or {}
    return sizes


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    ctx.meta.setdefault(_META, {})[str(parameter.name)] = value


def filled(
    ctx: click.Context,
    path: str,
    model: Model,
    arguments: tuple[str, ...],
    feeds: Mapping[str, Value],
    seed: int | None,
) -> tuple[Mapping[str, Value], int | None]:
    """The feeds with what is made up, and the seed for what runs: one that can be told, where values are made up."""
    options = ctx.meta.get(_META, {})
    if options.get("random"):
        import secrets
        import shlex

        seed = secrets.randbelow(_SEEDS) if seed is None else seed
        made = made_up(model, feeds, options["sizes"], seed)
        feeds = made.feeds
        sizes = {**options["sizes"], **made.sizes}
        given = [word for argument in arguments for word in ("-i", argument)]
        dims = [word for name, size in sizes.items() for word in ("--dim", f"{name}={size}")]
        screen.tell(f"replay: {shlex.join(['onnxeval', 'run', path, *given, '--random', '--seed', str(seed), *dims])}")
    elif options.get("sizes") and not any(re.search(_GENERATED, argument) for argument in arguments):
        raise click.UsageError(
            "--dim is for inputs that are made up: it needs --random, or a generator as in -i rand:."
        )
    else:
        from onnxeval.feeding import refuse_missing

        refuse_missing(model.inputs, feeds, hint="--input NAME=VALUE gives one, --random makes up what is not given")
    if (place := options.get("save_inputs")) is not None:
        from onnxeval.feeding import check_feeds
        from onnxeval.files.targets import open_target

        check_feeds(model.inputs, feeds)
        types = {entry.name: entry.type for entry in model.inputs}
        target = open_target(place)
        for note in target.save({name: (value, types.get(name)) for name, value in feeds.items()}):
            screen.tell(f"note: {note}")
        screen.tell(f"saved the inputs {', '.join(feeds)} to {target.path}")
    return feeds, seed


def made_up(
    model: Model, given: Mapping[str, Value], sizes: Mapping[str, int], seed: int, *, assume: bool = True
) -> Made:
    """The feeds with what is made up, and that is told. InputError for open sizes where none may be assumed."""
    from onnxeval.errors import InputError
    from onnxeval.random_feeds import make_feeds
    from onnxeval.sizes import open_sizes
    from onnxeval.values import type_of

    made = make_feeds(model, given, sizes, seed)
    if made.sizes and not assume:
        readers = open_sizes(model.proto.graph)
        named = ", ".join(f"{name} (of {', '.join(readers[name])})" if name in readers else name for name in made.sizes)
        raise InputError(
            f"the model leaves sizes open: {named}",
            hint=f"--dim gives them, as in --dim {next(iter(made.sizes))}=1, or --input a value of that size",
        )
    for name in made.names:
        screen.tell(f"note: made up {name} {type_of(made.feeds[name])}")
    for name, size in made.sizes.items():
        screen.tell(f"note: took {size} for the size {name}, which --dim can set")
    return made
