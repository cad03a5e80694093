"""`--fast-math`: what runs with it gives a little less exact results, and says so where that is asked."""

import json
from functools import partial

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxeval.benchmark.cold import own_command
from onnxeval.fast.engine import VARIABLE, native

SHAPE = (1, 40, 24, 24)

needs_kernels = pytest.mark.skipif(native() is None, reason="there are no compiled kernels")


@pytest.fixture
def model(tmp_path, monkeypatch):
    """One convolution, with test data beside it that are as exact as floats are."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in (SHAPE, (40, 40, 3, 3)))
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, SHAPE)],
        [numpy_helper.from_array(w, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), "model.onnx")
    np.save("x.npy", x)
    np.save("many.npy", np.stack([x, -x, 2 * x]))
    padded = np.pad(x[0].astype(float), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    y = np.einsum("cyxij,mcij->myx", windows, w.astype(float), optimize=True)[None].astype(np.float32)
    np.save("y.npy", y)
    np.savez("test_data_0.npz", inputs=x[None], outputs=y[None])
    return "model.onnx"


@pytest.fixture
def close(shell, model):
    """Whether a run gives the exact result but for so much of its largest element."""
    return partial(shell, "run", model, "-i", "x.npy", "--expect", "y.npy", "--rtol", "0", "--atol")


@needs_kernels
def test_the_error_of_a_run(close):
    largest = np.abs(np.load("y.npy")).max()
    assert close(1e-6 * largest).exit_code == 0
    assert close(1e-6 * largest, "--fast-math").exit_code == 1
    assert close(5e-6 * largest, "--fast-math").exit_code == 0


def test_not_with_the_readable_path(shell, model):
    result = shell("run", model, "-i", "x.npy", "--reference", "--fast-math")
    assert result.exit_code == 2
    assert "--reference and --fast-math do not go together." in result.stderr


def test_without_compiled_kernels_it_is_said(shell, model, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    plain, fast = (shell("run", model, "-i", "x.npy", "--hash", *given) for given in ([], ["--fast-math"]))
    assert (plain.exit_code, fast.exit_code) == (0, 0)
    assert fast.stdout == plain.stdout
    assert not plain.stderr
    assert fast.stderr == f"note: --fast-math changes nothing, compiled kernels: off ({VARIABLE} is 0)\n"


@needs_kernels
def test_every_item_of_a_batch_and_in_other_processes(shell, model):
    for place, given in (("plain", []), ("fast", ["--fast-math"]), ("jobs", ["--fast-math", "--jobs", "2"])):
        result = shell("run", model, "-i", "many.npy", "--each", "--save", f"{place}.npy", *given)
        assert result.exit_code == 0, result.stderr
    plain, fast, jobs = (np.load(f"{place}.npy") for place in ("plain", "fast", "jobs"))
    np.testing.assert_array_equal(fast, jobs)
    assert (plain != fast).any((1, 2, 3, 4)).all()
    np.testing.assert_allclose(plain, fast, rtol=0, atol=1e-5 * np.abs(plain).max())


@needs_kernels
def test_models_on_their_test_data(shell, model):
    largest = np.abs(np.load("y.npy")).max()
    given = ("--rtol", 0, "--atol", 1e-6 * largest, "--format", "json")
    plain, fast = (json.loads(shell("test", model, *given, *more).stdout) for more in ([], ["--fast-math"]))
    assert (plain["engine"], fast["engine"]) == ("onnxeval", "onnxeval --fast-math")
    assert (plain["counts"]["passed"], fast["counts"]["failed"]) == (1, 1)


def test_other_engines_are_tested_as_they_are(shell, model):
    result = shell("test", model, "--engine", "reference", "--fast-math")
    assert result.exit_code == 2
    assert "--fast-math is for this engine, not for --engine reference." in result.stderr


def test_whole_processes_are_timed_with_it():
    assert own_command("m.onnx", None, fast_math=True)[-3:] == ["run", "m.onnx", "--fast-math"]
