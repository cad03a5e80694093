"""`onnxeval convert`: values from one format to another, and test data sets for models."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxeval.errors import InputError

from . import screen
from .memory import kept_to_memory
from .options import FILE
from .printing import opened_target, tell_notes
from .reading import reading, reading_options

if TYPE_CHECKING:
    from onnxeval.files import Reading, Source
    from onnxeval.files.writing import Typed
    from onnxeval.model import Declared, Model

_MODELS = (".onnx", ".onnxtxt", ".json", ".textproto", ".pb")
_ONLY_MODELS = (".onnx", ".onnxtxt")
_SURE_MODELS = (*_ONLY_MODELS, ".textproto")


@click.command(short_help="Convert values and models between formats; make test data sets.")
@click.argument("values", type=FILE, metavar="IN... OUT", nargs=-1)
@reading_options
@click.pass_context
def convert(ctx: click.Context, values: tuple[str, ...]) -> None:
    """Read the values IN, or a model, and write them to OUT, in the format of its suffix.

    \b
    Examples:
      onnxeval convert x.npy x.pb
      onnxeval convert a=x.npy b=y.csv both.npz          names given
      onnxeval convert feeds.npz folder/                 a file for each
      onnxeval convert out.json out.safetensors
      onnxeval convert photo.jpg x.npy --layout NCHW --scale 1/255
      onnxeval convert inputs.npz model.onnx:test_data_set_0
      onnxeval convert in.npz out.npz model.onnx:test_data_set_0
      onnxeval convert model.onnx:test_data_set_0 values.npz
      onnxeval convert model.onnx model.textproto        a model, to be read

    IN and OUT are what `onnxeval run` reads by --input and writes by --save. MODEL:FOLDER is a test data set beside a
    model: its inputs and outputs, by name, become `input_0.pb` and `output_0.pb` and so on, of the types that it
    declares.

    A model is converted where the suffix of IN or OUT is .onnx, .onnxtxt or .textproto; .json may be one then. Its
    external data goes into the file, or into OUT.data beside it where it is more than 2 GB.
    """
    if len(values) < 2:
        raise click.UsageError("There are to be at least an IN and an OUT.")
    ctx.with_resource(kept_to_memory())
    *places, out = values
    if any(place.lower().endswith(_SURE_MODELS) for place in values):
        if len(places) > 1:
            raise click.UsageError("A model is converted alone: there are to be one IN and one OUT.")
        _convert_model(places[0], out)
        return
    how = reading(ctx)
    if (target := _of_model(out)) is not None:
        model, folder = target
        _save_data_set(model, folder, _read_for(model, places, how), how)
        return
    opened = opened_target(out)
    typed: dict[str, Typed] = {}
    for name, value in _read(places, how):
        if name in typed:
            raise InputError(f"there are two values called {name!r}", hint="give one another name: NAME=VALUE")
        typed[name] = value
    notes = opened.save(typed)
    tell_notes(how.notes)
    tell_notes(notes)
    if out != "-":
        screen.tell(f"saved {', '.join(typed)} to {opened.path}")


def _convert_model(model: str, out: str) -> None:
    from onnxeval.errors import OutputError
    from onnxeval.external import Files
    from onnxeval.loader import load_model
    from onnxeval.saving import save_model

    from .extract import refuse_same_file

    refuse_same_file(model, out)
    if not out.lower().endswith(_MODELS):
        raise OutputError(f"{out}: a model is written as {', '.join(_MODELS)}")
    loaded = load_model(model)
    notes = save_model(loaded.proto, out, Files(loaded.folders, loaded.held))
    tell_notes(notes)
    screen.tell(f"saved the model to {out}")


def _of_model(text: str) -> tuple[Model, Path] | None:
    """What MODEL:FOLDER means; None for what is none."""
    path, colon, folder = text.rpartition(":")
    if not colon or not folder or not path.lower().endswith(_MODELS):
        return None
    if not os.path.isfile(path) and not path.lower().endswith(_ONLY_MODELS):
        return None
    import onnxeval

    return onnxeval.load(path), Path(path).parent / folder


def _read(places: Sequence[str], how: Reading) -> Iterator[tuple[str, Typed]]:
    """The values with their names."""
    from onnxeval.files.filenames import name_from_file
    from onnxeval.files.opening import StandardInput, open_source

    standard_input = StandardInput()
    for text in places:
        if (found := _of_model(text)) is not None:
            yield from _data_set(*found, how)
            continue
        name, place = _split(text)
        source = open_source(place, (), standard_input, how)
        inside = source.names()
        if inside is None:
            stem = name_from_file(Path(place)) if os.path.exists(place) else "value"
            yield name or stem, (source.read("", None), None)
        elif name:
            if len(inside) != 1:
                raise source.error(f"holds {len(inside)} values, {name} is the name of one")
            yield name, (source.read(inside[0], None), None)
        else:
            for inner in inside:
                yield inner, (source.read(inner, None), None)


def _split(text: str) -> tuple[str, str]:
    """NAME and VALUE of what is no file as a whole."""
    name, equals, place = text.partition("=")
    return (name, place) if equals and name and not os.path.exists(text) else ("", text)


def _data_set(model: Model, folder: Path, how: Reading) -> Iterator[tuple[str, Typed]]:
    from onnxeval.files.opening import open_source

    stems: tuple[tuple[str, tuple[Declared, ...]], ...] = (("input", model.inputs), ("output", model.outputs))
    for stem, declared in stems:
        if any(folder.glob(f"{stem}_*.pb")) or not folder.is_dir():
            source = open_source(str(folder), [entry.name for entry in declared], reading=how, stem=stem)
            types = {entry.name: entry.type for entry in declared}
            for name in source.names() or ():
                yield name, (source.read(name, types[name]), types[name])


def _read_for(model: Model, places: Sequence[str], how: Reading) -> dict[str, Typed]:
    """The values for a model's inputs and outputs, of the types that it declares."""
    from .feeds import open_sources

    declared = [*model.inputs, *_wanted_outputs(model)]
    types = {entry.name: entry.type for entry in declared}
    sources: dict[str, Source] = open_sources(places, declared, how)
    return {name: (source.read(name, types[name]), types[name]) for name, source in sources.items()}


def _wanted_outputs(model: Model) -> list[Declared]:
    """The outputs, as what need not be given."""
    from dataclasses import replace

    inputs = {entry.name for entry in model.inputs}
    return [replace(entry, optional=True) for entry in model.outputs if entry.name not in inputs]


def _save_data_set(model: Model, folder: Path, typed: dict[str, Typed], how: Reading) -> None:
    from onnxeval.feeding import check_feeds
    from onnxeval.files.folders import FolderTarget
    from onnxeval.files.targets import format_of

    check_feeds(
        [entry for entry in model.inputs if entry.name in typed], {n: typed[n][0] for n in _names(model.inputs, typed)}
    )
    for stem, declared in (("input", model.inputs), ("output", model.outputs)):
        names = _names(declared, typed)
        expected = [entry.name for entry in declared][: len(names)]
        if names != expected:
            missing = next(name for name in expected if name not in names)
            raise InputError(f"there is no value for the {stem} {missing!r}, and the files are numbered in order")
        if names:
            FolderTarget(folder, format_of, numbered=stem).save({name: typed[name] for name in names})
    tell_notes(how.notes)
    screen.tell(f"saved {', '.join(typed)} to {folder}")


def _names(declared: Sequence[Declared], typed: dict[str, Typed]) -> list[str]:
    return [entry.name for entry in declared if entry.name in typed]
