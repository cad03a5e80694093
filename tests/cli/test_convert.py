"""`onnxeval convert`."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def tensor_in(path):
    return numpy_helper.to_array(onnx.TensorProto.FromString(Path(path).read_bytes()))


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pb", ".json", ".safetensors", ".csv"])
def test_there_and_back(shell, suffix):
    np.save("x.npy", X)
    assert shell("convert", "x.npy", f"there{suffix}").exit_code == 0
    back = shell("convert", f"there{suffix}", "back.npz")
    assert back.exit_code == 0, back.stderr
    with np.load("back.npz") as saved:
        (name,) = saved.files
        np.testing.assert_array_equal(saved[name], X)


def test_names(shell):
    np.save("a.npy", X)
    np.savez("b.npz", c=X, d=X + 1)
    result = shell("convert", "first=a.npy", "b.npz", "e=[1, 2]", "all.npz")
    assert result.stderr == "saved first, c, d, e to all.npz\n"
    with np.load("all.npz") as saved:
        assert sorted(saved.files) == ["c", "d", "e", "first"]


def test_a_test_data_set_for_a_model_and_back(shell, model):
    path = model("two")
    np.savez("in.npz", b=np.ones(3, np.float32), x=X)
    np.savez("out.npz", sum=X, negative=-X)
    result = shell("convert", "in.npz", "out.npz", f"{path}:test_data_set_0")
    assert result.exit_code == 0, result.stderr
    folder = path.parent / "test_data_set_0"
    assert sorted(p.name for p in folder.iterdir()) == ["input_0.pb", "input_1.pb", "output_0.pb", "output_1.pb"]
    np.testing.assert_array_equal(tensor_in(folder / "input_0.pb"), X)
    np.testing.assert_array_equal(tensor_in(folder / "output_1.pb"), -X)
    assert onnx.TensorProto.FromString((folder / "input_1.pb").read_bytes()).name == "b"
    back = shell("convert", f"{path}:test_data_set_0", "back.npz")
    assert back.exit_code == 0, back.stderr
    with np.load("back.npz") as saved:
        assert {name: saved[name].shape for name in saved.files} == {
            "x": (2, 3),
            "b": (3,),
            "sum": (2, 3),
            "negative": (2, 3),
        }


def test_what_it_makes_is_what_test_takes(shell, model):
    path = model("relu")
    assert shell("run", path, "-i", "[[1, -2, 3]]", "--save", "y.npz", "--save-inputs", "x.npz").exit_code == 0
    assert shell("convert", "x.npz", "y.npz", f"{path}:test_data_set_0").exit_code == 0
    assert shell("test", path).stdout.splitlines()[-1] == "1 case: 1 passed"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["x.npy"], 2, "an IN and an OUT"),
        (["nowhere.npy", "y.npy"], 5, "no such file"),
        (["x.npy", "y.foo"], 8, "not written"),
        (["x.npy", "x.npy", "y.npz"], 5, "two values called 'x'"),
        (["x.npy", "nowhere/y.npy"], 8, "no folder"),
        (["d=x.npy", "two.onnx:test_data_set_0"], 5, "no input of the model"),
        (["b=[1, 2, 3]", "two.onnx:test_data_set_0"], 5, "no value for the input 'x'"),
        (["x=[[1, 2]]", "two.onnx:test_data_set_0"], 5, "has shape [1, 2]"),
        (["two.onnx:nowhere", "y.npz"], 5, "nowhere"),
        (["x.npy", "nowhere.onnx:test_data_set_0"], 3, "cannot read the model nowhere.onnx"),
        (["nowhere.pb:key", "y.npz"], 5, "nowhere.pb"),
    ],
)
def test_errors(shell, model, words, code, text):
    model("two")
    np.save("x.npy", X)
    before = sorted(Path().iterdir())
    result = shell("convert", *words)
    assert result.exit_code == code, result.stderr
    assert text in result.stderr
    assert sorted(Path().iterdir()) == before


def test_casts_are_said(shell, model):
    path = model("relu")
    np.save("x.npy", X.astype(np.float64))
    assert shell("convert", "x.npy", f"{path}:test_data_set_0").exit_code == 5
    result = shell("convert", "x.npy", f"{path}:test_data_set_0", "--cast")
    assert result.exit_code == 0
    assert "cast from float64 to float32" in result.stderr
