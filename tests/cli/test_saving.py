"""`--save`: files that are there whole or not at all, and that can be read again."""

import io
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

from onnxeval.files.jsonform import value_form
from onnxeval.files.opening import StandardInput, open_source
from onnxeval.files.targets import open_target
from onnxeval.values import EmptyOptional, OptionalType, Sequence, SequenceType, TensorType

OUTPUT_ERROR = 8


def typed(**values):
    return {name: (value, None) for name, value in values.items()}


def read(text, name, declared):
    return open_source(text, [name], StandardInput()).read(name, declared)


def test_npz(shell, model):
    result = shell("run", model("two"), "-i", "x=[[1, 2, 3]]", "-i", "b=[0, 0, 0]", "--save", "out.npz")
    assert result.exit_code == 0
    assert "sum  float32[1, 3]" in result.stdout
    assert result.stderr == "saved sum, negative to out.npz\n"
    with np.load("out.npz") as saved:
        assert saved.files == ["sum", "negative"]
        np.testing.assert_array_equal(saved["sum"], np.array([[1, 4, 9]], np.float32), strict=True)


def test_npy(shell, model):
    assert shell("run", model("relu"), "-i", "[[1, -2, 3]]", "--save", "y.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("y.npy"), np.array([[1, 0, 3]], np.float32), strict=True)


def test_npy_holds_one_output(shell, model):
    arguments = ("run", model("two"), "-i", "x=[[1, 2, 3]]", "-i", "b=[0, 0, 0]", "--save", "y.npy")
    result = shell(*arguments)
    assert result.exit_code == OUTPUT_ERROR
    assert "2 outputs: sum, negative" in result.stderr
    assert "--output" in result.stderr
    assert not Path("y.npy").exists()
    assert shell(*arguments, "-o", "scaled").exit_code == 0
    np.testing.assert_array_equal(np.load("y.npy"), [[1, 4, 9]])


def test_a_folder_and_names_that_are_no_file_names(shell, model):
    result = shell(
        "run", model("odd_names"), "-i", "a=[1, 1]", "-i", "a=b=[2, 2]", "-i", "/in:0=[3, 3]", "--save", "deep/out"
    )
    assert result.exit_code == 0, result.stderr
    assert sorted(p.name for p in Path("deep/out").iterdir()) == ["%2Fout%2F0%3Ay.npy", "C.npy"]
    assert open_source("deep/out", [], StandardInput()).names() == ["/out/0:y", "C"]


def test_a_folder_that_exists_keeps_its_other_files(shell, model):
    Path("out").mkdir()
    Path("out/other.txt").write_text("mine")
    Path("out/y.pb").write_bytes(b"of an earlier run")
    assert shell("run", model("scalar"), "-i", "1", "--save", "out").exit_code == 0
    assert sorted(p.name for p in Path("out").iterdir()) == ["other.txt", "y.npy"]


@pytest.mark.parametrize("save", ["out.npz", "out.npy", "out"])
def test_ordinary_permissions_and_nothing_left_beside(shell, model, save):
    before = set(Path.cwd().iterdir())
    assert shell("run", model("scalar"), "-i", "1", "--save", save).exit_code == 0
    assert {p.name for p in set(Path.cwd().iterdir()) - before} == {"scalar.onnx", save}
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(Path(save).stat().st_mode) == (0o777 if Path(save).is_dir() else 0o666) & ~mask


@pytest.mark.parametrize(
    ("save", "reason"),
    [
        ("nowhere/out.npz", "there is no folder nowhere"),
        ("out.xyz", "files of suffix '.xyz' are not written"),
        ("folder.npz", "is a folder"),
        ("file/", "is a file, not a folder"),
        ("file/below", "cannot write"),
        ("file/x.npz", "there is no folder file"),
    ],
)
def test_places_that_cannot_be_written(shell, model, save, reason):
    Path("folder.npz").mkdir()
    Path("file").write_text("")
    result = shell("run", model("scalar"), "-i", "1", "--save", save)
    assert result.exit_code == OUTPUT_ERROR
    assert reason in result.stderr
    assert result.stdout == ""


def test_a_wrong_place_is_found_before_the_model_is_read(shell):
    assert shell("run", "missing.onnx", "--save", "nowhere/out.npz").exit_code == OUTPUT_ERROR


def test_a_failure_half_way_leaves_the_old_file(monkeypatch):
    target = open_target("out.npz")
    target.save(typed(a=np.zeros(2)))
    before = Path("out.npz").read_bytes()

    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    for place in (target, open_target("folder")):
        with pytest.raises(Exception, match="No space left on device"):
            place.save(typed(a=np.ones(2)))
    assert Path("out.npz").read_bytes() == before
    assert [p.name for p in Path.cwd().iterdir()] == ["out.npz"]


ARRAYS = {
    "float32": np.array([[1, np.nan], [np.inf, -0.0]], np.float32),
    "rank 0": np.array(5, np.int8),
    "empty": np.zeros((2, 0, 3), np.float64),
    "bool": np.array([True, False]),
    "complex": np.array([1 + 2j], np.complex64),
    "uint64": np.array([2**64 - 1], np.uint64),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "strings": np.array(["", "日本", "a\nb"], object),
    "bfloat16": np.array([[1.5, np.nan]], ml_dtypes.bfloat16),
    "float8": np.array([1, 448], ml_dtypes.float8_e4m3fn),
    "float4": np.array([0.5, -6], ml_dtypes.float4_e2m1fn),
    "float6": np.array([0.5, -6, 28], ml_dtypes.float6_e3m2fn),
    "int4": np.array([-8, 7, -1], ml_dtypes.int4),
    "uint2": np.array([0, 3], ml_dtypes.uint2),
}


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("save", ["out.npz", "out.npy", "out"])
def test_every_type_comes_back(kind, save):
    array = ARRAYS[kind]
    notes = open_target(save).save({"v": (array, None)})
    again = read(save, "v", TensorType(array.dtype))
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tolist() == array.tolist() or again.tobytes() == array.tobytes()
    assert bool(notes) == (array.dtype.isbuiltin != 1)


def test_a_type_that_numpy_cannot_name_is_said(shell, model):
    result = shell("run", model("bfloat16"), "-i", "[1, 2]", "--save", "y.npy")
    assert result.exit_code == 0
    assert "note: y is bfloat16, a type that NumPy's files cannot name" in result.stderr
    assert np.load("y.npy").dtype.names == ("bfloat16",)


def test_strings_that_end_in_nul():
    array = np.array(["a\0", "b"], object)
    for save in ("out.npz", "out.npy"):
        with pytest.raises(Exception, match="end in NUL"):
            open_target(save).save({"v": (array, None)})
        assert not Path(save).exists()
    open_target("out").save({"v": (array, None)})
    assert [p.name for p in Path("out").iterdir()] == ["v.pb"]
    assert read("out", "v", TensorType(array.dtype)).tolist() == ["a\0", "b"]


FLOATS = TensorType(np.dtype(np.float32))
OTHERS = {
    "sequence": (Sequence([np.array([1, 2], np.float32), np.zeros((0,), np.float32)]), SequenceType(FLOATS)),
    "empty sequence": (Sequence([], FLOATS), SequenceType(FLOATS)),
    "filled optional": (np.array([1], np.float32), OptionalType(FLOATS)),
    "optional sequence": (Sequence([np.array([1], np.float32)]), OptionalType(SequenceType(FLOATS))),
    "sequence of sequences": (
        Sequence([Sequence([np.array([1], np.float32)])]),
        SequenceType(SequenceType(FLOATS)),
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_values_become_messages_in_a_folder(kind):
    value, value_type = OTHERS[kind]
    open_target("out").save({"v": (value, value_type)})
    name = next(Path("out").iterdir()).name
    if isinstance(value, np.ndarray):
        assert name == "v.npy"
    else:
        assert name == "v.pb"
        assert value_form(read("out", "v", value_type)) == value_form(value)
        with pytest.raises(Exception, match="NumPy's files hold only arrays"):
            open_target("out.npz").save({"v": (value, value_type)})


def test_an_empty_optional_comes_back():
    open_target("out").save({"v": (EmptyOptional(FLOATS), OptionalType(FLOATS))})
    assert read("out", "v", OptionalType(FLOATS)) == EmptyOptional(FLOATS)


def test_maps_come_back():
    from onnxeval.values import MapType

    for value, value_type in (
        ({1: 0.5, 2: 0.25}, MapType(np.dtype(np.int64), TensorType(np.dtype(np.float64)))),
        ({"a": "x"}, MapType(np.dtype(object), TensorType(np.dtype(object)))),
    ):
        open_target("out").save({"v": (value, value_type)})
        assert read("out/v.pb", "v", value_type) == value


def test_messages_are_onnx_s_own(shell, model):
    assert shell("run", model("sequence"), "-i", "[[1], [2, 3]]", "--save", "out").exit_code == 0
    message = onnx.SequenceProto.FromString(Path("out/t.pb").read_bytes())
    assert message.name == "t"
    assert [onnx.numpy_helper.to_array(t).tolist() for t in message.tensor_values] == [[1], [2, 3]]


def test_saved_files_feed_the_next_model(shell, model):
    np.save("x.npy", np.array([[1, -2, 3]], np.float32))
    for save in ("x1.npz", "folder"):
        assert shell("run", model("two"), "-i", "x.npy", "-i", "b=[0, 0, 0]", "-o", "x", "--save", save).exit_code == 0
        again = shell("run", model("relu"), "-i", save, "--format", "json")
        assert json.loads(again.stdout)["outputs"][0]["data"] == [[1, 0, 3]]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
@pytest.mark.parametrize("command", ["run", "convert", "extract"])
def test_a_pipe_stays_one_and_is_written_into(shell, model, command):
    place = "y.npy" if command == "run" else "y.onnx"
    os.mkfifo(place)
    relu = model("relu")
    before = {*Path.cwd().iterdir()}
    with ThreadPoolExecutor() as pool:
        content = pool.submit(Path(place).read_bytes)
        more = (place,) if command == "convert" else ("--save", place)
        result = shell(command, relu, *(("-i", "[[1, -2, 3]]") if command == "run" else ()), *more)
        assert result.exit_code == 0, result.stderr
        data = content.result(timeout=30)
    assert stat.S_ISFIFO(os.stat(place).st_mode)
    assert {*Path.cwd().iterdir()} == before
    if command == "run":
        np.testing.assert_array_equal(np.load(io.BytesIO(data)), [[1, 0, 3]])
    else:
        assert onnx.load_model_from_string(data).graph.node[0].op_type == "Relu"


def test_a_link_stays_one(shell, model):
    Path("deep").mkdir()
    Path("y.npy").symlink_to("deep/there.npy")
    for first in (1, 2):
        assert shell("run", model("relu"), "-i", f"[[{first}, -2, 3]]", "--save", "y.npy").exit_code == 0
        assert Path("y.npy").is_symlink()
        assert np.load("deep/there.npy")[0, 0] == first
    assert [path.name for path in Path("deep").iterdir()] == ["there.npy"]
