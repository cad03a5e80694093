"""Options on how values are read: `--cast`, and what becomes of pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from onnxeval.files import Reading

_META = "onnxeval.reading"
_COLORS = ("L", "RGB", "BGR", "RGBA")


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options, not handed on: `reading` knows them."""
    for option in (
        click.option(
            "--color",
            type=click.Choice(_COLORS, case_sensitive=False),
            callback=_keep,
            expose_value=False,
            help="Convert pictures to these channels.",
        ),
        click.option(
            "--resize",
            metavar="HxW|fit",
            callback=_keep_resize,
            expose_value=False,
            help="Resize pictures, `fit` to the size that the model declares.",
        ),
        click.option(
            "--std",
            metavar="X[,Y,Z]",
            callback=_keep_numbers,
            expose_value=False,
            help="Divide pictures by this, after --mean; one number or one for each channel.",
        ),
        click.option(
            "--mean",
            metavar="X[,Y,Z]",
            callback=_keep_numbers,
            expose_value=False,
            help="Subtract this from pictures, after --scale; one number or one for each channel.",
        ),
        click.option(
            "--scale",
            metavar="X",
            callback=_keep_numbers,
            expose_value=False,
            help="Multiply the bytes of pictures by this: 1/255 brings them to 0 .. 1.",
        ),
        click.option(
            "--layout",
            metavar="NCHW|NHWC|...",
            callback=_keep,
            expose_value=False,
            help="The axes of pictures, where the declared shape leaves them open.",
        ),
        click.option(
            "--cast",
            is_flag=True,
            callback=_keep,
            expose_value=False,
            help="Convert values of another element type to the declared one, and say what changed.",
        ),
    ):
        command = option(command)
    return command


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    ctx.meta.setdefault(_META, {})[str(parameter.name)] = value


def _number(text: str) -> float:
    from fractions import Fraction  # 1/255 is one

    return float(Fraction(text.strip()))


def _keep_numbers(ctx: click.Context, parameter: click.Parameter, text: str | None) -> None:
    try:
        numbers = tuple(map(_number, text.split(","))) if text else ()
    except (ValueError, ZeroDivisionError):
        raise click.BadParameter(f"{text!r} is no number, nor several with commas between them.") from None
    if parameter.name == "scale" and len(numbers) > 1:
        raise click.BadParameter(f"{text!r} is more than one number.")
    if parameter.name == "std" and 0 in numbers:
        raise click.BadParameter("nothing can be divided by 0.")
    _keep(ctx, parameter, numbers)


def _keep_resize(ctx: click.Context, parameter: click.Parameter, text: str | None) -> None:
    if text in (None, "fit"):
        _keep(ctx, parameter, text == "fit")
        return
    parts = str(text).lower().split("x")
    if len(parts) != 2 or not all(part.isascii() and part.isdecimal() and 0 < int(part) < 10**6 for part in parts):
        raise click.BadParameter(f"{text!r} is neither HxW, as in 224x224, nor fit.")
    _keep(ctx, parameter, (int(parts[0]), int(parts[1])))


def reading(ctx: click.Context, seed: int | None = None, sizes: Mapping[str, int] | None = None) -> Reading:
    """What the options say. ``sizes`` are those of symbolic dimensions."""
    from onnxeval.files.source import PictureForm, Reading

    options = ctx.meta.get(_META, {})
    scale = options.get("scale") or ()
    form = PictureForm(
        layout=options.get("layout") or "",
        scale=scale[0] if scale else None,
        mean=options.get("mean") or (),
        std=options.get("std") or (),
        resize=options.get("resize") or False,
        color=options.get("color") or "",
    )
    return Reading(cast=bool(options.get("cast")), can_cast=True, seed=seed or 0, sizes=sizes or {}, picture=form)
