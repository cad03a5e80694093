"""`onnxeval check`: the findings of each model, and a verdict; and the rules that find them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from onnxeval.errors import ModelError

from . import screen
from .memory import kept_to_memory
from .options import kernels_option

if TYPE_CHECKING:
    from onnxeval.checks import Finding, Rule

    from .fixing import Mended

_UNREADABLE = "file/unreadable"
_FOUND = 1
#: The files that are taken for models in a folder.
_SUFFIXES = (".onnx", ".onnxtxt")


def _split(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Patterns, several of which may stand in one value."""
    return tuple(pattern.strip() for value in values for pattern in value.split(",") if pattern.strip())


def _completed(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The rules that the shell may complete a word to."""
    from onnxeval.checks import RULES

    return [rule for rule in RULES if rule.startswith(incomplete)]


@click.command(short_help="List every defect of a model, each with its place and a hint.")
@click.argument("models", type=click.Path(readable=False), metavar="MODEL...", nargs=-1)
@click.option(
    "--select",
    multiple=True,
    metavar="RULES",
    callback=_split,
    shell_complete=_completed,
    help="Only these rules: ids, families or patterns, separated by commas.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="RULES",
    callback=_split,
    shell_complete=_completed,
    help="Not these rules.",
)
@click.option("--strict", is_flag=True, help="Let warnings count as errors do.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
    help="How to print: grouped for people, JSON, annotations of GitHub's workflows, or SARIF 2.1.0.",
)
@click.option(
    "--fix",
    "target",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Mend what is safe to mend, write the model to FILE, and check that.",
)
@click.option("--rules", "list_rules", is_flag=True, help="List the rules, and check nothing.")
@click.option(
    "--explain",
    metavar="RULE",
    shell_complete=_completed,
    help="Tell what a rule finds, why that matters and how to mend it, with an example.",
)
@kernels_option
@click.pass_context
def check(
    ctx: click.Context,
    models: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict: bool,
    form: str,
    target: str | None,
    list_rules: bool,
    explain: str | None,
) -> None:
    """List everything that is wrong with each MODEL, without running it. A folder stands for the models in it.

    \b
    Examples:
      onnxeval check model.onnx
      onnxeval check models/ --strict                   warnings fail, too
      onnxeval check model.onnx --ignore 'graph/unused-*'
      onnxeval check model.onnx --select type,shape     these families alone
      onnxeval check --explain graph/order              what, why, how to mend
      onnxeval check model.onnx --fix mended.onnx
      onnxeval check models/ --format sarif > found.sarif

    Each finding has a place (`graph/node[12] (Conv "conv1")`), a severity, a message that holds the values, the name of
    its rule, and a hint where there is one.

    --fix sorts nodes, gives doubled node names new ones, declares outputs that lack a type, writes the domain ai.onnx
    as the empty name, and removes what nobody needs. It changes no result. FILE may be the MODEL's own path.

    \b
    Exit codes:
      0  no errors; warnings count under --strict, notes never
      1  errors
      3  a file that cannot be read as a model
    """
    rules = _chosen(select, ignore)
    if explain is not None or list_rules:
        if models:
            raise click.UsageError("--rules and --explain look at no MODEL")
        _show_rules(rules if explain is None else _chosen((explain,), ()), form, pages=explain is not None)
        return
    if not models:
        raise click.UsageError("Missing argument 'MODEL...'.")
    ctx.with_resource(kept_to_memory())
    mended = None if target is None else _fix(models, target)
    results = _results(models if mended is None else [mended.saved or mended.model], select, ignore)
    _show(results, form, mended)
    found = [finding for findings in results.values() for finding in findings]
    counting = ("error", "warning") if strict else ("error",)
    if any(finding.rule == _UNREADABLE for finding in found):
        ctx.exit(ModelError.exit_code)
    ctx.exit(_FOUND if any(finding.severity in counting for finding in found) else 0)


def _chosen(select: Sequence[str], ignore: Sequence[str]) -> list[Rule]:
    from onnxeval.checks import RULES
    from onnxeval.checks.selection import chosen

    try:
        rules = chosen(select, ignore)
    except ValueError as error:
        text = str(error)
        stop = "" if text.endswith("?") else "."
        raise click.UsageError(f"{text[0].upper()}{text[1:]}{stop} `onnxeval check --rules` lists them.") from error
    return [rule for rule_id, rule in RULES.items() if rule_id in rules]


def _show_rules(rules: list[Rule], form: str, *, pages: bool) -> None:
    from . import checkpages

    if form == "json":
        from onnxeval.files.jsonform import document

        from .reports import rules_form

        screen.write(document(rules_form(rules)))
    elif form != "text":
        raise click.UsageError(f"--rules and --explain have no format {form}")
    elif pages:
        for place, rule in enumerate(rules):
            screen.show([*([[]] if place else []), *checkpages.page_lines(rule)])
    else:
        screen.show(checkpages.table_lines(rules))


def _results(models: Sequence[str], select: Sequence[str], ignore: Sequence[str]) -> dict[str, list[Finding]]:
    from .progress import tracked

    paths = list(dict.fromkeys(path for model in models for path in _models_of(model)))
    return {path: _checked(path, select, ignore) for path in tracked(paths, len(paths))}


def _checked(path: str, select: Sequence[str], ignore: Sequence[str]) -> list[Finding]:
    import onnxeval

    if os.path.isdir(path):
        return [onnxeval.Finding(_UNREADABLE, "error", path, f"the folder holds no models ({', '.join(_SUFFIXES)})")]
    return onnxeval.check(path, select=select, ignore=ignore)


def _fix(models: Sequence[str], target: str) -> Mended | None:
    from .fixing import fix

    paths = [path for model in models for path in _models_of(model)]
    if len(paths) != 1:
        raise click.UsageError(f"--fix writes one model, {len(paths)} are given")
    return fix(paths[0], target)


def _models_of(path: str) -> Iterator[str]:
    """The path itself, or the models in a folder, hidden folders left out. A folder without any is given back."""
    found = []
    for folder, inner, files in os.walk(path):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        found += [os.path.join(folder, name) for name in sorted(files) if name.endswith(_SUFFIXES)]
    yield from found or [path]


def _show(results: Mapping[str, Sequence[Finding]], form: str, mended: Mended | None) -> None:
    if form == "text":
        from .checkpages import result_lines

        if mended is not None:
            from .fixing import mended_lines

            screen.show([*mended_lines(mended), []])
        screen.show(result_lines(results))
        return
    from onnxeval.files.jsonform import document

    from . import reports

    for line in () if mended is None else mended.done:
        screen.tell(f"mended: {line}")

    if form == "github":
        screen.write("".join(f"{line}\n" for line in reports.github_lines(results)))
    else:
        content = reports.sarif_form(results) if form == "sarif" else reports.results_form(results)
        screen.write(document(content))
