"""`--dim NAME=SIZE`: sizes for what a model leaves open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def dim_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--dim NAME=SIZE`, gathered as ``sizes``, a dict."""
    return click.option(
        "--dim",
        "sizes",
        metavar="NAME=SIZE",
        multiple=True,
        callback=_parse,
        help=what,
    )


def _parse(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for value in values:
        name, equals, digits = value.rpartition("=")
        if not (equals and name and digits.isascii() and digits.isdecimal()):
            raise click.BadParameter(f"{value!r} is not NAME=SIZE, as in N=4.")
        size = int(digits)
        if size >= 2**63:
            raise click.BadParameter(f"{digits} is larger than any size.")
        if sizes.setdefault(name, size) != size:
            raise click.BadParameter(f"{name} is given twice: {sizes[name]} and {size}.")
    return sizes
