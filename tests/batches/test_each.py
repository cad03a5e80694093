"""`onnxeval run --each`."""

import json
from pathlib import Path

import numpy as np
import pytest

NEG = "g (float[3] x) => (float[3] y) { y = Neg(x) }"
X = np.arange(300, dtype=np.float32).reshape(100, 3)


def load(path):
    return np.load(path)


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_rows(shell, model, jobs):
    np.save("x.npy", X)
    result = shell("run", model(NEG), "-i", "x.npy", "--each", "--save", "out/", *jobs)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "y  float32[100, 3]  out/y.npy\n"
    np.testing.assert_array_equal(load("out/y.npy"), -X)
    assert [p.name for p in Path("out").iterdir()] == ["y.npy"]


def test_one_file_and_json(shell, model):
    np.save("x.npy", X)
    result = shell("run", model(NEG), "-i", "x=x.npy", "--each", "--save", "y.npy", "--format", "json")
    assert json.loads(result.stdout) == {
        "items": 100,
        "outputs": [{"name": "y", "dtype": "float32", "shape": [100, 3], "path": "y.npy"}],
    }
    np.testing.assert_array_equal(load("y.npy"), -X)
    assert sorted(p.name for p in Path().iterdir()) == ["model.onnx", "x.npy", "y.npy"]


def test_some_inputs_are_the_same_for_all(shell, model):
    path = model(
        "g (float[3] x, float[3] b, float c) => (float[3] y, float z) "
        "{ t = Add(x, b)  y = Mul(t, c)  z = ReduceSum<keepdims = 0>(y) }"
    )
    np.save("x.npy", X)
    np.save("b.npy", np.ones(3, np.float32))
    np.save("c.npy", np.arange(100, dtype=np.float32))
    result = shell("run", path, "-i", "x=x.npy", "-i", "b=b.npy", "-i", "c=c.npy", "--each", "--save", "out")
    assert result.exit_code == 0, result.stderr
    wanted = (X + 1) * np.arange(100, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(load("out/y.npy"), wanted)
    np.testing.assert_allclose(load("out/z.npy"), wanted.sum(1))


def test_files_by_a_pattern_in_the_order_of_their_names(shell, model):
    Path("many").mkdir()
    for place in range(12):
        np.save(f"many/{place:02}.npy", X[place])
    result = shell("run", model(NEG), "-i", "x=many/*.npy", "--each", "--save", "y.npy")
    assert result.exit_code == 0, result.stderr
    np.testing.assert_array_equal(load("y.npy"), -X[:12])


def test_a_dimension_that_is_open_goes_by_ones(shell, model):
    np.save("x.npy", X)
    result = shell(
        "run", model("g (float[N, 3] x) => (float[N, 3] y) { y = Neg(x) }"), "-i", "x.npy", "--each", "--save", "y.npy"
    )
    assert result.exit_code == 0, result.stderr
    np.testing.assert_array_equal(load("y.npy"), -X[:, None])


def test_values_that_are_no_npy_files(shell, model):
    np.savez("x.npz", x=X)
    result = shell("run", model(NEG), "-i", "x.npz", "--each", "--save", "y.npy")
    assert result.exit_code == 0, result.stderr
    np.testing.assert_array_equal(load("y.npy"), -X)


def test_types_that_numpy_lacks_are_kept(shell, model):
    path = model("g (float[3] x) => (bfloat16[3] y) { y = Cast<to = 16>(x) }")
    np.save("x.npy", X)
    assert shell("run", path, "-i", "x.npy", "--each", "--save", "y.npy").exit_code == 0
    back = shell("convert", "y.npy", "y.json")
    assert back.exit_code == 0, back.stderr
    (entry,) = json.loads(Path("y.json").read_text())["outputs"]
    assert (entry["dtype"], entry["shape"]) == ("bfloat16", [100, 3])


def test_big_endian_rows(shell, model):
    np.save("x.npy", X.astype(">f4"))
    assert shell("run", model(NEG), "-i", "x.npy", "--each", "--save", "y.npy").exit_code == 0
    np.testing.assert_array_equal(load("y.npy"), -X)


def test_random_operators_repeat_themselves_by_item(shell, model):
    path = model("g (float[3] x) => (float[3] y) { y = RandomNormalLike(x) }")
    np.save("x.npy", X)
    for place, jobs in enumerate(((), ("--jobs", "2"))):
        assert (
            shell("run", path, "-i", "x.npy", "--each", "--save", f"{place}.npy", "--seed", "1", *jobs).exit_code == 0
        )
    np.testing.assert_array_equal(load("0.npy"), load("1.npy"))
    assert len(np.unique(load("0.npy"))) > 200


#: Slow enough to be interrupted.
_SLOW = """import time, onnxeval

@onnxeval.op("Slow", domain="test", versions=(1,))
def slow(x):
    time.sleep(0.003)
    return -x
"""


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_a_run_that_was_killed_goes_on(shell, outside, model, kill_half_way, jobs):
    path = model("g (float[3] x) => (float[3] y, float s) { y = test.Slow(x)  s = ReduceSum<keepdims = 0>(y) }")
    Path("slow.py").write_text(_SLOW)
    x = np.random.default_rng(0).random((700, 3)).astype(np.float32)
    np.save("x.npy", x)
    command = ("run", path, "--ops", "slow.py", "-i", "x.npy", "--each", *jobs)
    done = kill_half_way(*command, "--save", "out", done=Path("out/.onnxeval-each.done"))
    assert 0 < done < 22
    assert not Path("out/y.npy").exists()
    # other inputs are another run
    np.save("other.npy", x + 1)
    refused = outside("run", path, "--ops", "slow.py", "-i", "x=other.npy", "--each", "--save", "out", "--resume")
    assert refused.returncode == 5
    assert "the run that was interrupted here had another" in refused.stderr
    resumed = outside(*command, "--save", "out", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert outside(*command, "--save", "whole").returncode == 0
    for name in ("y.npy", "s.npy"):
        assert Path("out", name).read_bytes() == Path("whole", name).read_bytes()
    np.testing.assert_array_equal(load("out/y.npy"), -x)


def test_resuming_what_was_never_begun_begins(shell, model):
    np.save("x.npy", X)
    assert shell("run", model(NEG), "-i", "x.npy", "--each", "--save", "out", "--resume").exit_code == 0
    np.testing.assert_array_equal(load("out/y.npy"), -X)


def test_an_item_that_fails_is_told_and_what_is_done_stays(shell, model):
    path = model("g (float[4] x, int64 i) => (float y) { y = Gather(x, i) }")
    places = np.zeros(100, np.int64)
    places[70] = 9
    np.save("i.npy", places)
    result = shell("run", path, "-i", "x=[1, 2, 3, 4]", "-i", "i=i.npy", "--each", "--save", "out")
    assert result.exit_code == 6
    assert "item 70" in result.stderr
    assert "64 of 100 items are done: --resume goes on with the rest" in result.stderr
    assert not Path("out/y.npy").exists()


def test_rows_of_unequal_shapes(shell, model):
    path = model("g (float[3] x) => (int64[1, N] y) { y = NonZero(x) }")
    x = X.copy()
    x[50] = 0
    np.save("x.npy", x + 1)
    assert shell("run", path, "-i", "x.npy", "--each", "--save", "out").exit_code == 0
    np.save("x.npy", x)
    result = shell("run", path, "-i", "x.npy", "--each", "--save", "other")
    assert result.exit_code == 8
    assert "that of the first item is int64[1, 2]" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["-i", "x.npy", "--each"], 2, "it needs --save"),
        (["-i", "x.npy", "--resume"], 2, "it needs --each"),
        (["-i", "x.npy", "--each", "--save", "o", "--expect", "1"], 2, "do not go together"),
        (["-i", "x.npy", "--each", "--save", "o", "--random"], 2, "do not go together"),
        (["-i", "x.npy", "--each", "--save", "y.npz"], 8, ".npy files alone"),
        (["-i", "x.npy", "--each", "--save", "nowhere/y.npy"], 8, "no folder"),
        (["-i", "x=*.png", "--each", "--save", "o"], 5, "no file is called like that"),
        (["-i", "[1, 2, 3]", "--each", "--save", "o"], 5, "no input has items"),
        (["-i", "cut.npy", "--each", "--save", "o"], 5, "elements take"),
        (["-i", "pickle.npy", "--each", "--save", "o"], 5, "pickled"),
        (["-i", "nonsense.npy", "--each", "--save", "o"], 5, "nonsense.npy"),
        (["-i", "fortran.npy", "--each", "--save", "o"], 5, "Fortran"),
        (["-i", "none.npy", "--each", "--save", "o"], 5, "there are no items"),
        (["-i", "wide.npy", "--each", "--save", "o"], 5, "has shape [4]"),
        (["-i", "double.npy", "--each", "--save", "o"], 5, "float64"),
        (
            ["-i", "x.npy", "--each", "--save", "o", "--dask", "tcp://127.0.0.1:1", "--jobs", "2"],
            2,
            "do not go together",
        ),
    ],
)
def test_errors(shell, model, words, code, text):
    path = model(NEG)
    np.save("x.npy", X)
    data = Path("x.npy").read_bytes()
    Path("cut.npy").write_bytes(data[:-5])
    Path("nonsense.npy").write_bytes(b"nonsense")
    np.save("pickle.npy", np.array([[{}], [1]], object))
    np.save("fortran.npy", np.asfortranarray(X))
    np.save("none.npy", X[:0])
    np.save("wide.npy", np.ones((5, 4), np.float32))
    np.save("double.npy", X.astype(np.float64))
    before = sorted(Path().iterdir())
    result = shell("run", path, *words)
    assert result.exit_code == code, result.stderr
    assert text in result.stderr
    assert sorted(Path().iterdir()) == before


def test_different_numbers_of_items(shell, model):
    path = model("g (float[3] x, float[3] z) => (float[3] y) { y = Add(x, z) }")
    np.save("x.npy", X)
    np.save("z.npy", X[:5])
    result = shell("run", path, "-i", "x=x.npy", "-i", "z=z.npy", "--each", "--save", "o")
    assert result.exit_code == 5
    assert "x 100, z 5" in result.stderr
