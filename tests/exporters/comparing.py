"""Run a model that an exporter wrote, and hold what it gives against what its source framework gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import onnxeval


def run(model: onnx.ModelProto | Path | str, feeds: Mapping[str, Any] | Sequence[Any]) -> list[Any]:
    """The outputs in order; ``feeds`` by name, or in the order of the inputs."""
    loaded = onnxeval.load(model.SerializeToString() if isinstance(model, onnx.ModelProto) else model)
    if not isinstance(feeds, Mapping):
        feeds = dict(zip((entry.name for entry in loaded.inputs), feeds, strict=True))
    return list(loaded.run(feeds).values())


def assert_matches(got: Any, wanted: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Labels exactly, numbers within the tolerances, of one shape; class probabilities may come as maps."""
    if isinstance(got, list):
        got = np.array([list(row.values()) for row in got])
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape
    if wanted.dtype.kind in "OUTS":
        assert got.tolist() == wanted.tolist()
    elif wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(got, wanted)
    else:
        np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol)
