"""Weights outside the model: in one file or many, at any offset, mapped into memory and not copied."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxeval

X = np.array([1.0, -2.0, 3.0], np.float32)
W = np.array([10, 20, 30], np.float32)
B = np.array([0.5, 0.25, -1], np.float32)


def affine(**initializers: np.ndarray) -> onnx.ModelProto:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[3] x) => (float[3] y) <float[3] w, float[3] b>'
        "{ t = Mul (x, w) y = Add (t, b) }"
    )
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in initializers.items())
    return model


def placed(tensor: TensorProto, folder: Path, location: str, offset: int | None = None, length: bool = True) -> None:
    """Move the raw data of a tensor to a file, at ``offset`` or at its start with nothing said of it."""
    path = folder / location
    path.parent.mkdir(exist_ok=True)
    data = bytearray(path.read_bytes() if path.exists() else b"")
    end = (offset or 0) + len(tensor.raw_data)
    data.extend(bytes(max(0, end - len(data))))
    data[offset or 0 : end] = tensor.raw_data
    path.write_bytes(data)
    entries = {"location": location, "offset": offset, "length": len(tensor.raw_data) if length else None}
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))


@pytest.mark.parametrize("one_file", [True, False])
def test_data_as_onnx_itself_saves_it(tmp_path: Path, one_file: bool) -> None:
    onnx.save_model(
        affine(w=W, b=B),
        tmp_path / "model.onnx",
        save_as_external_data=True,
        all_tensors_to_one_file=one_file,
        location="weights" if one_file else None,
        size_threshold=0,
    )
    assert len(list(tmp_path.iterdir())) == (2 if one_file else 3)
    assert onnxeval.load(tmp_path / "model.onnx").run({"x": X})["y"].tolist() == (X * W + B).tolist()


@pytest.mark.parametrize(
    ("places", "length"),
    [
        ({"w": ("all.bin", 0), "b": ("all.bin", 12)}, True),
        ({"w": ("all.bin", 4096), "b": ("all.bin", 64)}, True),
        ({"w": ("all.bin", 4096), "b": ("all.bin", 64)}, False),
        ({"w": ("all.bin", 3), "b": ("all.bin", 17)}, True),  # no boundary of an element
        ({"w": ("data/w.bin", None), "b": ("data/b", None)}, False),
        ({"w": ("w ∂.bin", 5), "b": ("b", None)}, True),
    ],
)
def test_data_lies_where_the_tensor_says(tmp_path: Path, places: dict, length: bool) -> None:
    model = affine(w=W, b=B)
    for tensor in model.graph.initializer:
        placed(tensor, tmp_path, *places[tensor.name], length=length)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    assert onnxeval.load(path).run({"x": X})["y"].tolist() == (X * W + B).tolist()


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.5, -2], ml_dtypes.bfloat16),
        np.array([1, -2, 3], ml_dtypes.int4),
        np.array([True, False]),
        np.array([1 + 2j], np.complex64),
        np.zeros((0, 3), np.int64),
        np.array(7, np.uint64),
        np.arange(6, dtype=np.float64).reshape(2, 1, 3),
    ],
    ids=lambda array: str(array.dtype),
)
def test_every_element_type_lies_in_files(tmp_path: Path, array: np.ndarray) -> None:
    tensor = numpy_helper.from_array(array, "w")
    placed(tensor, tmp_path, "w.bin", 1)
    output = helper.make_tensor_value_info("w", tensor.data_type, None)
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(helper.make_graph([], "g", [], [output], [tensor])).SerializeToString())
    got = onnxeval.load(path).run({})["w"]
    assert got.dtype == array.dtype
    assert got.shape == array.shape
    assert got.tolist() == array.tolist()


def test_tensors_of_attributes_sub_graphs_and_functions_lie_in_files_too(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "loc": 1]> g (float[3] x, bool c) => (float[3] y) {
            w = Constant <value = float[3] {0, 0, 0}> ()
            t = If (c) <
                then_branch = one () => (float[3] r) <float[3] v = {0, 0, 0}> { r = Mul (x, v) },
                else_branch = other () => (float[3] r) { r = Identity (x) }
            >
            u = Mul (t, w)
            y = loc.f (u)
        }
        <domain: "loc", opset_import: ["" : 21]> f (a) => (b) {
            c = Constant <value = float[3] {0, 0, 0}> ()
            b = Add (a, c)
        }"""
    )
    branch = model.graph.node[1].attribute[0].g
    tensors = [model.graph.node[0].attribute[0].t, branch.initializer[0], model.functions[0].node[0].attribute[0].t]
    for place, (tensor, array) in enumerate(zip(tensors, (W, B, X), strict=True)):
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        placed(tensor, tmp_path, "all.bin", 100 * place)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    got = onnxeval.load(path).run({"x": X, "c": np.array(True)})["y"]
    assert got.tolist() == (X * B * W + X).tolist()


def test_data_is_the_map_of_its_file_and_no_copy(tmp_path: Path) -> None:
    model = affine(w=W, b=B)
    for place, tensor in enumerate(model.graph.initializer):
        placed(tensor, tmp_path, "all.bin", 64 * place)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    loaded = onnxeval.load(path)
    got = loaded.run({"x": X}, ["w", "b"])
    again = loaded.run({"x": X}, ["y", "b"])
    assert got["b"].ctypes.data - got["w"].ctypes.data == 64
    assert again["b"].ctypes.data == got["b"].ctypes.data
    assert not got["w"].flags.writeable


def test_files_are_looked_at_when_they_are_needed(tmp_path: Path) -> None:
    model = affine(w=W, b=B)
    for tensor in model.graph.initializer:
        placed(tensor, tmp_path, f"{tensor.name}.bin")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    (tmp_path / "b.bin").unlink()
    loaded = onnxeval.load(path)
    assert loaded.run({"x": X}, ["t"])["t"].tolist() == (X * W).tolist()
    with pytest.raises(onnxeval.ModelError, match=r"tensor \"b\": its external data file 'b.bin' is not there"):
        loaded.run({"x": X})


@pytest.mark.slow
def test_a_model_above_two_gigabytes(tmp_path: Path) -> None:
    """Two tables of 1.25 GB in one sparse file: zeros but for the rows that are read."""
    rows, width = 2**20 + 2**18, 256
    size = rows * width * 4
    last = np.arange(width, dtype=np.float32)
    with open(tmp_path / "tables.bin", "wb") as file:
        for table in (1, 2):
            file.seek(table * size - last.nbytes)
            file.write((table * last).tobytes())
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 21]> g (int64[N] i) => (float[N, {width}] y)
            <float[{rows}, {width}] one, float[{rows}, {width}] two> {{
                a = Gather (one, i) b = Gather (two, i) y = Add (a, b)
            }}"""
    )
    for place, name in enumerate(("one", "two")):
        tensor = model.graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=[rows, width])
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": "tables.bin", "offset": place * size, "length": size}.items():
            tensor.external_data.add(key=key, value=str(value))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    assert (tmp_path / "tables.bin").stat().st_size > 2**31
    got = onnxeval.load(path).run({"i": np.array([0, rows - 1, -1])})["y"]
    np.testing.assert_array_equal(got, [0 * last, 3 * last, 3 * last])
