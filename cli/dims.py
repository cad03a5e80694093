"""`--dim NAME=SIZE`: sizes for what a model leaves open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def dim_option(
    what: str, keep: Callable[[click.Context, click.Parameter, Any], Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--dim NAME=SIZE`, gathered as ``sizes``, a dict; ``keep`` takes it where it is not handed on."""

    def parsed(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
        sizes = _parsed(values)
        return sizes if keep is None else keep(ctx, parameter, sizes)

    return click.option(
        "--dim",
        "sizes",
        metavar="NAME=SIZE",
        multiple=True,
        callback=parsed,
        expose_value=keep is None,
        help=what,
    )


def _parsed(values: tuple[str, ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for value in (part for text in values for part in _parts(text)):
        name, _, digits = value.rpartition("=")
        if not _is_size(value):
            raise click.BadParameter(f"{value!r} is not NAME=SIZE, as in N=4.")
        size = int(digits)
        if size >= 2**63:
            raise click.BadParameter(f"{digits} is larger than any size.")
        if sizes.setdefault(name, size) != size:
            raise click.BadParameter(f"{name} is given twice: {sizes[name]} and {size}.")
    return sizes


def _parts(text: str) -> list[str]:
    """Several in one, `B=2,S=3`; the comma of a name such as `max(B,S)` is no separator."""
    parts = text.split(",")
    return parts if all(map(_is_size, parts)) else [text]


def _is_size(text: str) -> bool:
    name, _, digits = text.rpartition("=")
    return bool(name) and digits.isascii() and digits.isdecimal()
