"""`--carry` and `--steps`: outputs fed back as inputs, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from .timeout import limits

if TYPE_CHECKING:
    from onnxeval.model import Model
    from onnxeval.values import Value

_META = "onnxeval.carry"


def step_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options, not handed on: `run_model` knows them."""
    for option in (
        click.option(
            "--every-step",
            is_flag=True,
            callback=_keep,
            expose_value=False,
            help="Show and save the values of every step, as NAME[0], NAME[1] and so on, not only of the last.",
        ),
        click.option(
            "--steps",
            type=click.IntRange(min=1),
            metavar="N",
            callback=_keep,
            expose_value=False,
            help="Run the model so many times, with --carry.",
        ),
        click.option(
            "--carry",
            metavar="OUTPUT=INPUT",
            multiple=True,
            callback=_keep,
            expose_value=False,
            help="Feed an output back as an input of the next step; * is the same text on both sides. Repeatable.",
        ),
    ):
        command = option(command)
    return command


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    ctx.meta.setdefault(_META, {})[str(parameter.name)] = value


def carries(ctx: click.Context) -> bool:
    """Whether the options ask for steps."""
    return any(ctx.meta.get(_META, {}).values())


def run_model(
    ctx: click.Context, model: Model, feeds: Mapping[str, Value], names: list[str] | None, **how: Any
) -> tuple[Mapping[str, Value], Mapping[str, Value]]:
    """The results of a run, or of the steps that the options ask for; and those of the last step alone."""
    options = ctx.meta.get(_META, {})
    patterns, steps = options.get("carry"), options.get("steps")
    if bool(patterns) != (steps is not None) or (options.get("every_step") and not steps):
        raise click.UsageError("--carry and --steps go together: --carry 'present.*=past.*' --steps 8.")
    from .progress import tracked, waiting

    how["limits"] = limits(ctx)
    if not steps:
        with waiting("running"):
            results = model.run(feeds, names, **how)
        return results, results
    from onnxeval.carrying import pairs_of, run_steps

    outputs = [output.name for output in model.outputs]
    wanted = outputs if names is None else names
    pairs = pairs_of(patterns, list(dict.fromkeys([*outputs, *wanted])), [entry.name for entry in model.inputs])
    asked = list(dict.fromkeys([*wanted, *pairs.values()]))
    kept: dict[str, Value] = {}
    last: Mapping[str, Value] = {}
    every = bool(options.get("every_step"))
    passes = run_steps(lambda fed: model.run(fed, asked, **how), feeds, pairs, steps)
    for step, last in zip(tracked(range(steps), steps), passes, strict=True):
        kept.update((f"{name}[{step}]" if every else name, last[name]) for name in wanted)
    return kept, last
