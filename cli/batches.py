"""`--each`: a model on many items, one by one; where the items come from, and where the results go."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onnxeval.errors import InputError, OutputError

from . import screen
from .options import kernel_files
from .printing import tell_notes
from .timeout import limits

if TYPE_CHECKING:
    from onnxeval.batches.items import Items
    from onnxeval.batches.results import Column, Results
    from onnxeval.batches.running import Work
    from onnxeval.files import Reading
    from onnxeval.model import Declared, Model

_META = "onnxeval.each"
_JOURNAL = ".onnxeval-each.json"
#: What has no meaning for many items.
_SINGLE = (
    "expect",
    "vs",
    "rtol",
    "atol",
    "max_ulp",
    "carry",
    "steps",
    "random",
    "save_inputs",
    "stats",
    "hashes",
    "drawn",
)


def batch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options, not handed on: `is_batch` and `run_batch` know them."""
    for option in (
        click.option(
            "--dask",
            metavar="ADDRESS",
            callback=_keep,
            expose_value=False,
            help="With --each: run the items on the Dask cluster whose scheduler is there.",
        ),
        click.option(
            "--jobs",
            type=click.IntRange(min=1),
            metavar="N",
            callback=_keep,
            expose_value=False,
            help="With --each: so many processes.",
        ),
        click.option(
            "--resume",
            is_flag=True,
            callback=_keep,
            expose_value=False,
            help="With --each: go on where the same run was interrupted.",
        ),
        click.option(
            "--each",
            is_flag=True,
            callback=_keep,
            expose_value=False,
            help="Run the model on each row of an input that has one more dimension, or on each file of a pattern.",
        ),
    ):
        command = option(command)
    return command


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    ctx.meta.setdefault(_META, {})[str(parameter.name)] = value


def is_batch(ctx: click.Context) -> bool:
    """Whether `--each` is given. A UsageError for options that do not go together."""
    options = ctx.meta.get(_META, {})
    if not options.get("each"):
        for name in ("resume", "jobs", "dask"):
            if options.get(name):
                raise click.UsageError(f"--{name} is for a batch: it needs --each.")
        return False
    given = click.core.ParameterSource.COMMANDLINE
    for parameter in ctx.command.params:
        if parameter.name in _SINGLE and ctx.get_parameter_source(parameter.name) is given:
            raise click.UsageError(f"{parameter.opts[0]} and --each do not go together.")
    if options.get("jobs") and options.get("dask"):
        raise click.UsageError("--jobs and --dask do not go together.")
    return True


def run_batch(
    ctx: click.Context,
    path: str,
    model: Model,
    arguments: Sequence[str],
    outputs: Sequence[str],
    save: str | None,
    form: str,
    how: Reading,
    seed: int | None,
    reference: bool,
) -> None:
    """Run the model on every item and append what it gives to a file for each output."""
    from onnxeval.batches.running import Here, Work, blocks_of

    options = ctx.meta[_META]
    place = _place(save, outputs)
    items, fixed = _items(model, arguments, how)
    tell_notes(how.notes)
    counts = {name: found.count for name, found in items.items()}
    if len(set(counts.values())) > 1:
        raise InputError(
            f"the inputs have different numbers of items: {', '.join(f'{n} {c}' for n, c in counts.items())}"
        )
    if not min(counts.values()):
        raise InputError(f"there are no items for {', '.join(counts)}")
    work = Work(
        os.path.abspath(path),
        items,
        fixed,
        tuple(outputs),
        seed,
        reference,
        tuple(map(os.path.abspath, kernel_files(ctx))),
        model.fast_math,
        limits(ctx),
    )
    first = Here(model, work).run(0, 1)
    columns = [_column(place, name, work.count, first[name][0]) for name in outputs]
    blocks = blocks_of(work.count, work.block_size(sum(column.bytes_each for column in columns)))
    results = _results(place, columns, work, fixed, len(blocks))
    todo = [(block, *blocks[block]) for block in results.begin(resume=options.get("resume", False))]
    _run_all(_runner(model, work, options), results, todo, work.count)
    results.finish()
    for column in columns:
        tell_notes(column.notes)
    _print(columns, work.count, form)


def _runner(model: Model, work: Work, options: Mapping[str, Any]) -> Any:
    from onnxeval.batches.running import Here

    if options.get("dask"):
        from onnxeval.batches.cluster import Cluster

        return Cluster(work, options["dask"])
    if (options.get("jobs") or 1) > 1:
        from onnxeval.batches.local import Processes

        return Processes(work, options["jobs"])
    return Here(model, work)


def _run_all(runner: Any, results: Results, todo: Sequence[tuple[int, int, int]], count: int) -> None:
    from .progress import tracked

    left = sum(stop - start for _, start, stop in todo)
    done = count - left

    def steps() -> Iterator[str]:
        nonlocal done
        sizes = {block: stop - start for block, start, stop in todo}
        for block, start, rows in runner.each(todo):
            for column in results.columns:
                column.write(start, rows[column.name])
            results.note(block)
            done += sizes[block]
            yield f"{done:,} of {count:,} items"

    if not todo:
        return
    try:
        for _ in tracked(steps(), len(todo)):
            pass
    except BaseException:
        screen.tell(f"{done:,} of {count:,} items are done: --resume goes on with the rest")
        raise


# Where the items come from


def _items(model: Model, arguments: Sequence[str], how: Reading) -> tuple[dict[str, Items], dict[str, Any]]:
    """The items by input, and the values of inputs that are the same for all."""
    from onnxeval.batches.items import Files, Held, rows_of

    from .feeds import read_feeds, split_argument

    declared = {entry.name: entry for entry in model.inputs}
    items: dict[str, Items] = {}
    stacks: dict[str, str] = {}
    rest: list[str] = []
    for argument in arguments:
        chosen, text = split_argument(argument, list(declared))
        paths = _matching(text)
        if not paths and not _is_npy(text):
            rest.append(argument)
            continue
        for name in chosen or [_only_free(model, {*items, *stacks}, len(arguments), text)]:
            if paths:
                items[name] = Files(tuple(paths), declared[name].type, how)
            elif _rank(declared[name]) is None or len(rows_of(text, None).shape) == _rank(declared[name]):
                stacks[name] = text
            else:
                items[name] = rows_of(text, declared[name].type)
    given = read_feeds([*rest, *(f"{name}={text}" for name, text in stacks.items() if items)], model.inputs, how)
    for name in [name for name, value in given.items() if _is_stack(declared[name], value)]:
        array = given.pop(name)
        items[name] = Held(array, _digest(array))
    if not items:  # then batches of one
        from dataclasses import replace

        for name, text in stacks.items():
            if _is_open(declared[name]):
                items[name] = replace(rows_of(text, declared[name].type), kept=True)
        fixed = [f"{name}={text}" for name, text in stacks.items() if name not in items]
        given = read_feeds([*rest, *fixed], model.inputs, how)
    if not items:
        raise InputError(
            "no input has items: one that has a dimension more than the model declares, or several files by a pattern"
        )
    return items, given


def _matching(text: str) -> list[str]:
    """The files of a pattern; none where it is none."""
    if text[:1] in ("[", "{", '"') or os.path.exists(text) or not any(sign in text for sign in "*?["):
        return []
    if not (found := sorted(glob.glob(text, recursive=True))):
        raise InputError(f"{text}: no file is called like that")
    return found


def _is_npy(text: str) -> bool:
    return text.lower().endswith(".npy") and os.path.isfile(text)


def _only_free(model: Model, taken: set[str], arguments: int, text: str) -> str:
    free = [entry.name for entry in model.inputs if not entry.optional and entry.name not in taken]
    if len(free) == 1 or (free and arguments == 1 == len(model.inputs)):
        return free[0]
    raise InputError(f"{text}: which input is it for? {', '.join(free) or 'all are given'}", hint=f"NAME={text}")


def _rank(entry: Declared) -> int | None:
    return None if entry.shape is None else len(entry.shape)


def _is_open(entry: Declared) -> bool:
    """Whether the first dimension may be 1."""
    shape = entry.shape
    return shape is not None and len(shape) > 0 and (not isinstance(shape[0], int) or shape[0] == 1)


def _is_stack(entry: Declared, value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.ndarray) and entry.shape is not None and value.ndim == len(entry.shape) + 1


def _digest(array: Any) -> str:
    import hashlib

    data = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return hashlib.sha256(repr((array.dtype, array.shape)).encode() + data).hexdigest()


# Where the results go


def _place(save: str | None, outputs: Sequence[str]) -> Path:
    """A folder, or the one file."""
    if save is None:
        raise click.UsageError("--each appends to files: it needs --save, a folder or a .npy file.")
    path = Path(save)
    if path.name == "*.npy":
        return path.parent
    if path.suffix.lower() == ".npy" and not os.path.isdir(path):
        if len(outputs) != 1:
            raise OutputError(
                f"{save}: a .npy file holds one value, there are {len(outputs)} outputs: {', '.join(outputs)}",
                hint="choose one with --output, or save to a folder",
            )
        if not os.path.isdir(path.parent):
            raise OutputError(f"{save}: there is no folder {path.parent}")
        return path
    if path.suffix and not save.endswith(("/", os.sep)) and not os.path.isdir(path):
        raise OutputError(f"{save}: --each appends to .npy files alone", hint="save to a folder")
    if os.path.exists(path) and not os.path.isdir(path):
        raise OutputError(f"{save} is a file, not a folder")
    return path


def _column(place: Path, name: str, count: int, first: Any) -> Column:
    from onnxeval.batches.results import Column
    from onnxeval.files.filenames import file_stem

    is_file = place.suffix.lower() == ".npy" and not os.path.isdir(place)
    return Column(place if is_file else place / f"{file_stem(name)}.npy", name, count, first)


def _results(place: Path, columns: list[Column], work: Work, fixed: Mapping[str, Any], blocks: int) -> Results:
    import hashlib

    from onnxeval.batches.results import Results

    is_file = place.suffix.lower() == ".npy" and not os.path.isdir(place)
    journal = place.with_name(f".{place.name}{_JOURNAL}") if is_file else place / _JOURNAL
    with open(str(work.model), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    identity = {
        "model": digest,
        "items": {name: items.identity for name, items in work.items.items()},
        "fixed": {name: hashlib.sha256(repr(value).encode()).hexdigest() for name, value in fixed.items()},
        "seed": work.seed,
        "reference": work.reference,
        "fast_math": work.fast_math,
    }
    return Results(journal, columns, identity, blocks)


def _print(columns: Sequence[Column], count: int, form: str) -> None:
    if form == "json":
        from onnxeval.files.jsonform import document

        entries = [
            {
                "name": column.name,
                "dtype": column.element_type,
                "shape": column.form["shape"],
                "path": str(column.path),
            }
            for column in columns
        ]
        screen.write(document({"items": count, "outputs": entries}))
        return
    for column in columns:
        shape = ", ".join(map(str, column.form["shape"]))
        screen.show([[(column.name, "name"), (f"  {column.element_type}[{shape}]", "type"), (f"  {column.path}", "")]])
