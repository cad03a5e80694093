"""`onnxeval check --fix`: a model mended, and written to a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from onnxeval.checks.mending import has_external_data, mend
from onnxeval.errors import ModelError, OutputError
from onnxeval.files.writing import whole_file
from onnxeval.loader import parse_model
from onnxeval.saving import is_same_file, model_bytes

from .screen import Line


class Mended(NamedTuple):
    """Where a mended model was written, and what was done to it; nothing was written where ``saved`` is ""."""

    model: str
    saved: str
    done: Sequence[str]


def fix(model: str, target: str) -> Mended | None:
    """Mend a model into ``target``; None where it cannot be read.

    ``target`` may be the model itself, under the very path it was read from. Raises OutputError, and leaves
    what was there, where it cannot be written.
    """
    try:
        loaded = parse_model(model)
    except ModelError:
        return None
    same = is_same_file(model, target)
    if same and model != target:
        raise OutputError(f"{target} is the model itself", hint=f"write --fix {model} to replace it")
    if not same and has_external_data(loaded) and Path(model).absolute().parent != Path(target).absolute().parent:
        raise OutputError(
            f"{target}: the model's external data lies in the folder of {model}", hint="write the file into that folder"
        )
    done = mend(loaded)
    if same and not done:
        return Mended(model, "", done)
    try:
        data, losses = model_bytes(loaded.proto, target)
    except ModelError as error:
        raise OutputError(f"{target}: {error}") from error
    if losses:
        raise OutputError(f"{target}: {losses[0]}")
    if os.path.isdir(target):
        raise OutputError(f"{target} is a folder")
    with whole_file(Path(target)) as partial:
        partial.write_bytes(data)
    return Mended(model, target, done)


def mended_lines(mended: Mended) -> Iterator[Line]:
    """What was done to a model, and where it stands now."""
    where = f"saved to {mended.saved}" if mended.saved else "left as it is"
    if not mended.done:
        yield [(mended.model, "name"), (f": nothing to mend, {where}", "")]
        return
    yield [(mended.model, "name"), (f": mended, {where}", "good")]
    yield from ([(f"  {line}", "")] for line in mended.done)
