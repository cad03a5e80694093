"""The sample models: they run to what is expected, nothing is wrong with them, and the script makes them anew."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest

import onnxeval

SAMPLES = Path(__file__).parents[2] / "sample_models"
FOLDERS = sorted(path.parent for path in SAMPLES.glob("*/model.onnx"))
#: Inputs are STEM.npy, what is expected is STEM.OUTPUT.npy.
INPUTS = sorted(path for folder in FOLDERS for path in folder.glob("*.npy") if "." not in path.stem)


def read(path: Path) -> np.ndarray:
    array = np.load(path, allow_pickle=False)
    return array.astype(object) if array.dtype.kind == "U" else array


def label(path: Path) -> str:
    return str(path.relative_to(SAMPLES))


@pytest.mark.parametrize("path", INPUTS, ids=label)
def test_expected_outputs(path: Path) -> None:
    model = onnxeval.load(path.parent / "model.onnx")
    (given,) = model.inputs
    got = model.run({given.name: read(path)})
    for name, value in got.items():
        expected = read(path.with_name(f"{path.stem}.{name}.npy"))
        assert value.dtype == expected.dtype
        assert value.shape == expected.shape
        if value.dtype.kind == "f":
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)
        else:
            np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("folder", FOLDERS, ids=label)
def test_nothing_is_wrong_with_them(folder: Path) -> None:
    assert onnxeval.check(folder / "model.onnx") == []
    onnx.checker.check_model(folder / "model.onnx", full_check=True)


@pytest.mark.parametrize("path", INPUTS, ids=label)
def test_onnxruntime_agrees(path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = onnx.load(path.parent / "model.onnx")
    if model.opset_import[0].version > 24:
        pytest.skip("newer than onnxruntime knows")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        if "locale" in str(error):
            pytest.skip("this machine lacks the locale that onnxruntime's StringNormalizer asks for")
        raise
    got = session.run(None, {session.get_inputs()[0].name: read(path)})
    for output, value in zip(session.get_outputs(), got, strict=True):
        expected = read(path.with_name(f"{path.stem}.{output.name}.npy"))
        if value.dtype.kind == "f":
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)
        else:
            np.testing.assert_array_equal(value, expected)


def test_the_digits_are_what_their_files_say() -> None:
    for digit in range(10):
        assert read(SAMPLES / "digits" / f"digit_{digit}.class.npy").tolist() == [digit]


def test_the_classifier_is_right_on_pictures_it_was_not_trained_on() -> None:
    pictures = read(SAMPLES / "digits" / "test_set" / "pictures.npy").astype(np.float32)
    labels = read(SAMPLES / "digits" / "test_set" / "labels.npy")
    got = onnxeval.load(SAMPLES / "digits" / "model.onnx").run({"picture": pictures})
    assert np.mean(got["class"] == labels) > 0.97
    np.testing.assert_allclose(got["probabilities"].sum(axis=1), 1, rtol=1e-5)


def test_they_are_small_and_explained() -> None:
    text = (SAMPLES / "README.md").read_text()
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()) < 1_000_000
    for folder in FOLDERS:
        assert f"`{folder.name}`" in text


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """make_samples.py, which finds its network beside itself."""
    sys.path.insert(0, str(SAMPLES))
    try:
        spec = importlib.util.spec_from_file_location("make_samples", SAMPLES / "make_samples.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SAMPLES))
    return module


def test_the_script_knows_every_sample(script: ModuleType) -> None:
    assert sorted(script.SAMPLES) == [folder.name for folder in FOLDERS]


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f.name != "digits"], ids=label)
def test_the_script_makes_them_anew(script: ModuleType, folder: Path, tmp_path: Path) -> None:
    script.SAMPLES[folder.name](tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {p.name for p in folder.iterdir()}
    for path in folder.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_the_gradients_of_the_training(script: ModuleType) -> None:
    """Against differences of the loss, at weights with nothing on the edge of a Relu."""
    chance = np.random.default_rng(3)
    network = script.Network(chance)
    for name in ("conv1_b", "conv2_b", "dense_b"):
        network.weights[name] += chance.normal(0, 0.1, network.weights[name].shape)
    pictures, labels = chance.uniform(0, 16, (4, 1, 8, 8)), np.array([0, 3, 9, 3])

    def loss() -> float:
        return float(-np.log(network.probabilities(pictures)[np.arange(4), labels]).mean())

    for name, slope in network.gradients(pictures, labels).items():
        weight = network.weights[name].reshape(-1)
        place = int(np.abs(slope).argmax())
        before = weight[place]
        weight[place] = before + 1e-6
        above = loss()
        weight[place] = before - 1e-6
        below = loss()
        weight[place] = before
        np.testing.assert_allclose((above - below) / 2e-6, slope.reshape(-1)[place], rtol=1e-4)


@pytest.mark.slow
def test_the_classifier_can_be_trained_anew(script: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    script.SAMPLES["digits"](tmp_path)
    labels = read(tmp_path / "test_set" / "labels.npy")
    got = onnxeval.load(tmp_path / "model.onnx").run(
        {"picture": read(tmp_path / "test_set" / "pictures.npy").astype(np.float32)}
    )
    assert np.mean(got["class"] == labels) > 0.97
