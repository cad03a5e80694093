"""Both engines' errors against float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from precision.wide import wide_model, wide_value

import onnxeval

ort = pytest.importorskip("onnxruntime")
ort.set_default_logger_severity(4)


@dataclass(frozen=True)
class Errors:
    """An output's largest errors in terms of its largest element: ours, theirs, and half a unit in the last place."""

    output: str
    ours: float
    theirs: float
    floor: float

    @property
    def is_small(self) -> bool:
        return self.ours <= 2 * max(self.theirs, self.floor)

    def __str__(self) -> str:
        return (
            f"{self.output}: {self.ours:.2e} where onnxruntime has {self.theirs:.2e}, the last place {self.floor:.1e}"
        )


def errors_of(model: ModelProto, feeds: dict[str, Any]) -> list[Errors]:
    """Those of each output of float32. Skips what one of the three runs cannot do."""
    try:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        theirs = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True))
    except Exception as error:  # its classes of error share no base but Exception
        pytest.skip(f"onnxruntime: {str(error).splitlines()[0]}")
    loaded = onnxeval.load(model)
    loaded.run(feeds)
    ours = loaded.run(feeds)  # by the plan for these shapes
    try:
        fed = {name: wide_value(value) for name, value in feeds.items()}
        right = onnxeval.load(wide_model(model)).run(fed, reference=True)
    except onnxeval.OnnxEvalError as error:
        pytest.skip(f"not in float64: {str(error).splitlines()[-1]}")
    return [  # what is float32 whatever goes in has no error to tell
        _errors(name, value, theirs[name], right[name])
        for name, value in ours.items()
        if getattr(right[name], "dtype", None) == np.float64 and value.dtype == np.float32 and value.size
    ]


def largest(runs: list[list[Errors]]) -> list[Errors]:
    """The largest errors of each output over several runs of one model."""
    return [
        Errors(of_one[0].output, *(max(getattr(e, part) for e in of_one) for part in ("ours", "theirs", "floor")))
        for of_one in zip(*runs, strict=True)
    ]


def moved(feeds: dict[str, Any], draw: np.random.Generator) -> dict[str, Any]:
    """The feeds with each number of float32 moved by less than a thousandth: what was luck is so no longer."""
    return {
        name: value * draw.uniform(0.999, 1.001, value.shape).astype(np.float32)
        if getattr(value, "dtype", None) == np.float32
        else value
        for name, value in feeds.items()
    }


def _errors(name: str, ours: np.ndarray, theirs: np.ndarray, right: np.ndarray) -> Errors:
    assert ours.shape == theirs.shape == right.shape
    counted = np.isfinite(right) & np.isfinite(theirs) & (np.abs(right) < np.finfo(np.float32).max)
    scale = np.abs(right[counted]).max(initial=0.0) or 1.0
    one, other = (np.abs(x[counted] - right[counted]).max(initial=0.0) / scale for x in (ours, theirs))
    return Errors(name, float(one), float(other), float(np.spacing(np.float32(scale))) / 2 / scale)
