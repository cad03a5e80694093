"""Models with test data sets beside them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

_TWICE = '<ir_version: 10, opset_import: ["": 21]> g (float[N] x) => (float[N] y) { y = Add(x, x) }'


@pytest.fixture
def with_data(tmp_path: Path) -> Callable[..., Path]:
    """`with_data("a/model.onnx", [(inputs, outputs), ...])`: a model that doubles, with data sets in onnx's layout."""

    def write(name: str, sets, text: str = _TWICE) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(onnx.parser.parse_model(text), path)
        for number, (inputs, outputs) in enumerate(sets):
            folder = path.parent / f"test_data_set_{number}"
            folder.mkdir()
            for stem, values in (("input", inputs), ("output", outputs)):
                for place, value in enumerate(values):
                    tensor = numpy_helper.from_array(np.asarray(value, np.float32))
                    (folder / f"{stem}_{place}.pb").write_bytes(tensor.SerializeToString())
        return path

    return write
