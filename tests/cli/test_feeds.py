"""Every way to say what an input is."""

import io
import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxeval.files.filenames import file_stem, name_from_file
from onnxeval_cli.feeds import split_argument

INPUT_ERROR = 5


def outputs_of(result):
    assert result.exit_code == 0, result.stderr
    return {entry["name"]: entry for entry in json.loads(result.stdout)["outputs"]}


def data_of(result, name="y"):
    return outputs_of(result)[name]["data"]


def npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


ROW = np.array([[1, -2, 3]], np.float32)


def test_the_only_input_needs_no_name(shell, model):
    np.save("x.npy", ROW)
    assert data_of(shell("run", model("relu"), "--input", "x.npy", "--format", "json")) == [[1, 0, 3]]


def test_by_name(shell, model):
    np.save("x.npy", ROW)
    result = shell("run", model("two"), "-i", "x=x.npy", "-i", "b=[0.5, 0, 0]", "--format", "json")
    assert data_of(result, "sum") == [[1.5, -4, 9]]


def test_a_bare_value_goes_to_the_input_that_is_left_wherever_it_stands(shell, model):
    np.save("x.npy", ROW)
    result = shell("run", model("two"), "-i", "x.npy", "-i", "b=[0, 0, 0]", "--format", "json")
    assert data_of(result, "sum") == [[1, -4, 9]]


def test_a_bare_value_for_two_inputs_is_an_error_that_lists_them(shell, model):
    np.save("x.npy", ROW)
    result = shell("run", model("two"), "-i", "x.npy")
    assert result.exit_code == INPUT_ERROR
    assert "2 are not given yet: x, b" in result.stderr
    assert "hint: name it: --input x=x.npy" in result.stderr


def test_a_bare_value_with_nothing_left_to_fill(shell, model):
    result = shell("run", model("relu"), "-i", "x=[[1, 2, 3]]", "-i", "[[1, 2, 3]]")
    assert result.exit_code == INPUT_ERROR
    assert "every input of the model is given already" in result.stderr


def test_a_bare_value_prefers_the_input_without_a_default(shell, model):
    assert data_of(shell("run", model("default"), "-i", "[1, 2]", "--format", "json")) == [11, 22]


def test_a_default_can_be_overridden(shell, model):
    result = shell("run", model("default"), "-i", "x=[1, 2]", "-i", "[0, 0]", "--format", "json")
    assert data_of(result) == [1, 2]


def test_an_input_given_twice(shell, model):
    result = shell("run", model("relu"), "-i", "x=[[1, 2, 3]]", "-i", "x=[[1, 2, 3]]")
    assert result.exit_code == INPUT_ERROR
    assert "'x' is given twice" in result.stderr


def test_names_that_hold_equals_signs_slashes_and_colons(shell, model):
    result = shell(
        "run", model("odd_names"), "-i", "a=[1, 1]", "-i", "a=b=[2, 2]", "-i", "/in:0=[3, 3]", "--format", "json"
    )
    assert data_of(result, "/out/0:y") == [6, 6]


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("a=x.npy", (["a"], "x.npy")),
        ("a=b=x.npy", (["a=b"], "x.npy")),
        ("/in:0=f.npz:k=1", (["/in:0"], "f.npz:k=1")),
        ("c=x.npy", ([], "c=x.npy")),
        ("x.npy", ([], "x.npy")),
        ("a", ([], "a")),
        ("a=", (["a"], "")),
        ("a*=zeros:", (["a", "a=b"], "zeros:")),
        ("*b=x.npy", (["a=b"], "x.npy")),
        ("z*=x.npy", ([], "z*=x.npy")),
    ],
)
def test_split_argument(argument, expected):
    assert split_argument(argument, ["a", "a=b", "/in:0"]) == expected


def test_an_unknown_name_is_recognised_as_one(shell, model):
    np.save("x.npy", ROW)
    for argument in ("X=x.npy", "X=[[1, 2, 3]]"):
        result = shell("run", model("relu"), "-i", argument)
        assert result.exit_code == INPUT_ERROR
        assert "'X' is no input of the model" in result.stderr
        assert "x" in result.stderr.partition("hint:")[2]


# .npz, folders, .pb


def test_npz_names_are_the_inputs(shell, model):
    np.savez("feeds.npz", x=ROW, b=np.zeros(3, np.float32))
    assert data_of(shell("run", model("two"), "-i", "feeds.npz", "--format", "json"), "sum") == [[1, -4, 9]]


def test_npz_with_a_name_that_is_no_input(shell, model):
    np.savez("feeds.npz", x=ROW, bias=np.zeros(3, np.float32))
    result = shell("run", model("two"), "-i", "feeds.npz")
    assert result.exit_code == INPUT_ERROR
    assert "holds 'bias', which is no input of the model" in result.stderr


def test_one_array_of_an_npz(shell, model):
    np.savez("f.npz", **{"p/q:0": ROW, "r": ROW})
    assert data_of(shell("run", model("relu"), "-i", "f.npz:p/q:0", "--format", "json")) == [[1, 0, 3]]
    assert data_of(shell("run", model("relu"), "-i", "x=f.npz:r", "--format", "json")) == [[1, 0, 3]]
    wrong = shell("run", model("relu"), "-i", "x=f.npz:s")
    assert wrong.exit_code == INPUT_ERROR
    assert "there is no 's' in it" in wrong.stderr
    assert "p/q:0, r" in wrong.stderr
    several = shell("run", model("relu"), "-i", "x=f.npz")
    assert several.exit_code == INPUT_ERROR
    assert "name one: --input x=f.npz:p/q:0" in several.stderr


def test_a_named_npz_gives_the_array_of_that_name_or_its_only_one(shell, model):
    np.savez("one.npz", anything=ROW)
    np.savez("two.npz", x=ROW, other=ROW)
    for file in ("one.npz", "two.npz"):
        assert data_of(shell("run", model("relu"), "-i", f"x={file}", "--format", "json")) == [[1, 0, 3]]


def test_a_test_data_set(shell, model):
    folder = Path("test_data_set_0")
    folder.mkdir()
    for place, array in enumerate((ROW, np.zeros(3, np.float32))):
        proto = numpy_helper.from_array(array, "a name of its own")
        (folder / f"input_{place}.pb").write_bytes(proto.SerializeToString())
    (folder / "output_0.pb").write_bytes(b"not read")
    assert data_of(shell("run", model("two"), "-i", folder, "--format", "json"), "sum") == [[1, -4, 9]]
    (folder / "input_2.pb").write_bytes(b"")
    result = shell("run", model("two"), "-i", folder)
    assert result.exit_code == INPUT_ERROR
    assert "holds 3 inputs, the model has 2" in result.stderr


def test_a_folder_of_files_named_as_the_inputs(shell, model):
    folder = Path("feeds")
    folder.mkdir()
    for name in ("a", "a=b", "/in:0"):
        np.save(folder / f"{file_stem(name)}.npy", np.ones(2, np.float32))
    assert data_of(shell("run", model("odd_names"), "-i", folder, "--format", "json"), "/out/0:y") == [3, 3]


@pytest.mark.parametrize(
    "name", ["x", "/a/b:0", "a%2Fb", "..", ".x", "x.", "a b", "日本語", 'q"<>|?*\\', "\n\t", "x.npy"]
)
def test_file_names_give_the_name_back(name):
    stem = file_stem(name)
    assert not set(stem) & set('/\\:*?"<>|\n')
    assert not stem.startswith(".")
    assert name_from_file(Path(f"{stem}.npy")) == name


def test_pb_of_a_tensor_a_sequence_and_an_optional(shell, model):
    tensor = numpy_helper.from_array(np.array([1, 2], np.float32))
    Path("t.pb").write_bytes(numpy_helper.from_array(ROW).SerializeToString())
    assert data_of(shell("run", model("relu"), "-i", "t.pb", "--format", "json")) == [[1, 0, 3]]
    sequence = onnx.SequenceProto(elem_type=onnx.SequenceProto.TENSOR, tensor_values=[tensor, tensor])
    Path("s.pb").write_bytes(sequence.SerializeToString())
    items = outputs_of(shell("run", model("sequence"), "-i", "s.pb", "--format", "json"))["t"]["items"]
    assert [item["data"] for item in items] == [[1, 2], [1, 2]]
    optional = onnx.OptionalProto(elem_type=onnx.OptionalProto.TENSOR, tensor_value=tensor)
    Path("o.pb").write_bytes(optional.SerializeToString())
    assert data_of(shell("run", model("optional"), "-i", "o.pb", "--format", "json"), "p") == [1, 2]


def test_standard_input(shell, model):
    for stdin in (npy(ROW), npy(np.asfortranarray(ROW))):
        assert data_of(shell("run", model("relu"), "-i", "-", "--format", "json", stdin=stdin)) == [[1, 0, 3]]
    archive = io.BytesIO()
    np.savez(archive, x=ROW, b=np.zeros(3, np.float32))
    result = shell("run", model("two"), "-i", "-", "--format", "json", stdin=archive.getvalue())
    assert data_of(result, "sum") == [[1, -4, 9]]


@pytest.mark.parametrize("stdin", [b"", b"hello"])
def test_standard_input_that_is_no_array(shell, model, stdin):
    result = shell("run", model("relu"), "-i", "-", stdin=stdin)
    assert result.exit_code == INPUT_ERROR
    assert "standard input holds" in result.stderr


def test_standard_input_can_be_taken_once(shell, model):
    result = shell("run", model("two"), "-i", "x=-", "-i", "b=-", stdin=npy(ROW))
    assert result.exit_code == INPUT_ERROR
    assert "only once" in result.stderr


def test_a_pipe_from_one_model_to_another(shell, model):
    relu = model("relu")
    command = [sys.executable, "-m", "onnxeval", "run", str(relu), "-i", "-", "--save", "y.npz", "--format", "json"]
    subprocess.run(command, input=npy(ROW), check=True, capture_output=True)
    assert data_of(shell("run", relu, "-i", "x=y.npz", "--format", "json")) == [[1, 0, 3]]


def test_what_json_printed_can_be_fed(shell, model):
    printed = shell(
        "run", model("two"), "-i", "x=[[NaN, 1, Infinity]]", "-i", "b=[0, 0, 0]", "-o", "x", "--format", "json"
    )
    Path("out.json").write_text(printed.stdout)
    assert data_of(shell("run", model("relu"), "-i", "out.json", "--format", "json")) == [["NaN", 1, "Infinity"]]


# What NumPy's files cannot say


@pytest.mark.parametrize(
    ("name", "dtype"), [("bfloat16", ml_dtypes.bfloat16), ("float8", ml_dtypes.float8_e4m3fn), ("int4", ml_dtypes.int4)]
)
def test_raw_bytes_take_the_declared_type(shell, model, name, dtype):
    np.save("x.npy", np.array([1, -2, 3], dtype))
    assert data_of(shell("run", model(name), "-i", "x.npy", "--format", "json")) == [1, -2, 3]


def test_raw_bytes_of_another_size(shell, model):
    np.save("x.npy", np.array([1, -2, 3], ml_dtypes.bfloat16))
    result = shell("run", model("relu"), "-i", "x.npy")
    assert result.exit_code == INPUT_ERROR
    assert "raw elements of 2 bytes without a type, the model declares float32" in result.stderr


def test_raw_bytes_that_are_no_such_number(shell, model):
    np.save("x.npy", np.array([0x55], np.uint8).view("V1"))
    result = shell("run", model("int4"), "-i", "x.npy")
    assert result.exit_code == INPUT_ERROR
    assert "the byte 85, which is no int4" in result.stderr


def test_strings_of_both_numpy_kinds(shell, model):
    for array in (np.array(["ä", "b"]), np.array(["ä".encode(), b"b"])):
        np.save("s.npy", array)
        assert data_of(shell("run", model("text"), "-i", "s.npy", "--format", "json"), "t") == ["ä", "b"]


def test_the_byte_order_of_another_machine(shell, model):
    np.save("x.npy", ROW.astype(">f4"))
    assert data_of(shell("run", model("relu"), "-i", "x.npy", "--format", "json")) == [[1, 0, 3]]


def test_nothing_is_cast(shell, model):
    np.save("x.npy", ROW.astype(np.float64))
    result = shell("run", model("relu"), "-i", "x.npy")
    assert result.exit_code == INPUT_ERROR
    assert "float64" in result.stderr
    assert "float32" in result.stderr


def test_a_model_without_inputs(shell, model):
    assert data_of(shell("run", model("no_inputs"), "--format", "json")) == [-1, -2]
    result = shell("run", model("no_inputs"), "-i", "1")
    assert result.exit_code == INPUT_ERROR


def test_feeding_every_kind_from_python_files_agrees_with_the_conformance_layout(shell):
    """The layout that onnx itself writes: a model beside its test_data_set folders."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"])],
        "g",
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in "ab"],
        [helper.make_tensor_value_info("c", onnx.TensorProto.FLOAT, [2])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), "model.onnx")
    folder = Path("test_data_set_0")
    folder.mkdir()
    for place, values in enumerate(([1, 2], [10, 20])):
        tensor = numpy_helper.from_array(np.array(values, np.float32), "ab"[place])
        (folder / f"input_{place}.pb").write_bytes(tensor.SerializeToString())
    assert data_of(shell("run", "model.onnx", "-i", folder, "--format", "json"), "c") == [11, 22]
