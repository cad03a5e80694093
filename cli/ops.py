"""`onnxeval ops`: the standard's operators and this program's kernels, to be looked up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from . import screen
from .options import format_option, kernels_option
from .screen import Line

if TYPE_CHECKING:
    from onnxeval.opdocs import Page


def names_starting_with(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The operators that the shell may complete a word to."""
    from .oppages import versions

    return [name for _, name in versions(ctx.params.get("domain")) if name.lower().startswith(incomplete.lower())]


@click.command(short_help="Look up operators: versions, types, attributes, what changed.")
@click.argument("name", required=False, shell_complete=names_starting_with)
@click.option("--domain", metavar="D", help="Only this domain: ai.onnx, ai.onnx.ml, com.microsoft ...")
@click.option("--opset", type=click.IntRange(min=1), metavar="N", help="As of this opset instead of the newest one.")
@click.option(
    "--diff",
    nargs=2,
    type=click.IntRange(min=1),
    metavar="A B",
    help="What changed between the versions of NAME in force at opsets A and B, and whether it breaks a model.",
)
@format_option("How to print: for people, or JSON.")
@kernels_option
def ops(name: str | None, domain: str | None, opset: int | None, diff: tuple[int, int] | None, form: str) -> None:
    """Look up the operator NAME, or list all operators and their versions.

    \b
    Examples:
      onnxeval ops                        every operator and its versions
      onnxeval ops --opset 12             the versions in force at opset 12
      onnxeval ops MaxPool                text, types, attributes, history
      onnxeval ops MaxPool --opset 9      MaxPool as a model of opset 9 means it
      onnxeval ops Softmax --diff 11 13   what changed, and does it break?
      onnxeval ops --domain ai.onnx.ml --format json | jq '.totals'

    A difference is judged by the signature: slots, attributes, defaults and types. Where the text changed, its lines
    are shown, for a reader to judge.
    """
    from . import oppages

    if name is None:
        if diff:
            raise click.UsageError("--diff needs the NAME of an operator")
        _refuse_later(domain, opset)
        table = oppages.table(domain, opset)
        if not table.rows:
            raise click.UsageError(f"no operators in the domain {domain!r}; there are: {', '.join(oppages.domains())}")
        _print(form, oppages.table_form(table), oppages.table_lines(table))
        return
    domain, name = find_operator(name, domain)
    _refuse_later(domain, *(diff or (opset,)))
    if diff:
        older, newer = _page(domain, name, diff[0]), _page(domain, name, diff[1])
        from onnxeval.opdiff import difference

        result = difference(older, newer)
        _print(form, oppages.difference_form(result), oppages.difference_lines(result))
        return
    page = _page(domain, name, opset)
    _print(form, oppages.page_form(page), oppages.page_lines(page))


def _refuse_later(domain: str | None, *opsets: int | None) -> None:
    """Raise a UsageError for an opset that the standard does not have yet; without a domain it is one of ai.onnx."""
    from onnxeval.opdocs import standard

    newest = standard().opsets.get(domain or "ai.onnx")
    for opset in opsets:
        if newest is not None and opset is not None and opset > newest:
            raise click.UsageError(f"the newest opset of {domain or 'ai.onnx'} is {newest}, not {opset}")


def _print(form: str, content: dict[str, Any], lines: Iterable[Line]) -> None:
    if form == "json":
        from onnxeval.files.jsonform import document

        screen.write(document(content))
    else:
        screen.show(lines)


def find_operator(name: str, domain: str | None) -> tuple[str, str]:
    """The operator that was meant, by domain and name. A UsageError suggests others."""
    from . import oppages

    known = oppages.versions(domain)
    spellings = {other.lower(): (where, other) for where, other in reversed(list(known))}
    for where, other in known:
        if name in (other, f"{where or 'ai.onnx'}.{other}"):
            return where, other
    if name.lower() in spellings:
        return spellings[name.lower()]
    import difflib

    near = difflib.get_close_matches(name.lower(), spellings, n=3, cutoff=0.55)
    near += [spelling for spelling in spellings if len(name) > 2 and name.lower() in spelling and spelling not in near]
    suggestion = f" Did you mean {' or '.join(spellings[n][1] for n in near[:5])}?" if near else ""
    where = f" in the domain {domain}" if domain is not None else ""
    raise click.UsageError(f"There is no operator {name!r}{where}.{suggestion}")


def _page(domain: str, name: str, opset: int | None) -> Page:
    from . import oppages

    page = oppages.page(domain, name, opset)
    if page is None:
        versions = ", ".join(map(str, oppages.versions(domain)[domain, name]))
        raise click.UsageError(f"{name} does not exist at opset {opset}. Its versions: {versions}.")
    return page
