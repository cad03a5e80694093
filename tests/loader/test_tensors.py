"""TensorProto and its like to values: every element type and field, external data, and messages that lie."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxeval.dtypes import BY_ELEMENT_TYPE, FLOAT8E8M0, STRING, SUB_BYTE_BITS, name_of
from onnxeval.errors import ModelError
from onnxeval.external import Files
from onnxeval.tensors import (
    array_from,
    dense_from,
    map_from,
    optional_from,
    sequence_from,
    type_from,
    type_proto,
)
from onnxeval.values import EmptyOptional, MapType, OptionalType, SequenceType, TensorType, type_string


def sample(dtype: np.dtype, count: int = 7) -> np.ndarray:
    if dtype == STRING:
        return np.array(["", "a", "é", "\0nul", "tail\0", "日本", "b"][:count], object)
    if dtype == np.bool_:
        return np.arange(count) % 2 == 1
    if dtype.kind == "c":
        return (np.arange(count) - 2j * np.arange(count)).astype(dtype)
    if dtype == FLOAT8E8M0:  # powers of two alone
        return (2.0 ** (np.arange(count) - 3)).astype(dtype)
    values = np.array([0, 1, 2, 3, 1, 0, 2], np.float64)[:count]
    return values.astype(dtype) if dtype.kind == "u" or "uint" in dtype.name else (values - 1).clip(-2, 1).astype(dtype)


@pytest.mark.parametrize("dtype", BY_ELEMENT_TYPE.values(), ids=name_of)
@pytest.mark.parametrize("shape", [(7,), (), (0, 3), (7, 1)], ids=str)
def test_what_onnx_writes_is_read_back(dtype: np.dtype, shape: tuple[int, ...]) -> None:
    array = sample(dtype)[: int(np.prod(shape))].reshape(shape)
    got = array_from(numpy_helper.from_array(array, "t"))
    assert got.dtype == dtype
    assert got.shape == shape
    assert got.tolist() == array.tolist()
    assert not got.flags.writeable


@pytest.mark.parametrize(
    "element_type", [t for t in BY_ELEMENT_TYPE if t != TensorProto.STRING], ids=TensorProto.DataType.Name
)
def test_the_typed_field_holds_the_same_as_raw_data(element_type: int) -> None:
    array = sample(BY_ELEMENT_TYPE[element_type])
    proto = helper.make_tensor("t", element_type, [7], array if array.dtype.kind != "c" else array.tolist())
    assert not proto.HasField("raw_data")
    assert array_from(proto).tolist() == array.tolist()


def test_every_code_of_the_narrow_types_survives_packing() -> None:
    for dtype in SUB_BYTE_BITS:
        codes = np.arange(2 ** SUB_BYTE_BITS[dtype], dtype=np.uint8)
        array = codes.view(dtype)
        got = array_from(numpy_helper.from_array(array))
        np.testing.assert_array_equal(got.astype(float), array.astype(float))


def test_half_precision_stands_as_bit_patterns_in_int32_data() -> None:
    proto = TensorProto(data_type=TensorProto.FLOAT16, dims=[2], int32_data=[0x3C00, 0xC000])
    assert array_from(proto).tolist() == [1.0, -2.0]
    proto = TensorProto(data_type=TensorProto.BFLOAT16, dims=[2], int32_data=[0x3F80, 0xC000])
    assert array_from(proto).tolist() == [1.0, -2.0]
    assert array_from(proto).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (TensorProto(dims=[1], float_data=[1]), "element type 0 is undefined"),
        (TensorProto(data_type=77, dims=[1]), "element type 77 is unknown"),
        (TensorProto(data_type=1, dims=[-1]), "negative size"),
        (
            TensorProto(data_type=1, dims=[2**31, 2**31], raw_data=b"1234"),
            "take 18446744073709551616 bytes, the data has 4",
        ),
        (TensorProto(data_type=1, dims=[2], float_data=[1]), "2 elements of float32 take 2 entries, the data has 1"),
        (TensorProto(data_type=1, dims=[2], int64_data=[1, 2]), "stands in int64_data, float32 belongs in float_data"),
        (TensorProto(data_type=1, dims=[1], float_data=[1], int32_data=[1]), "several fields: float_data, int32_data"),
        (TensorProto(data_type=8, dims=[1], string_data=[b"\xff"]), "string 0 is not UTF-8"),
        (TensorProto(data_type=8, dims=[1], raw_data=b"a"), "strings cannot stand in raw_data"),
    ],
)
def test_a_tensor_that_lies_is_a_model_error(proto: TensorProto, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        array_from(proto)


def external(location: str, **entries: int) -> TensorProto:
    proto = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        proto.external_data.add(key=key, value=str(value))
    return proto


def test_external_data_is_a_map_of_its_slice(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(np.arange(5, dtype=np.float32).tobytes())
    got = array_from(external("data.bin", offset=4, length=8), Files([tmp_path]))
    assert got.tolist() == [1, 2]
    assert not got.flags.writeable
    assert not got.flags.owndata


def test_tensors_of_one_file_share_one_map_of_it(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(np.arange(5, dtype=np.float32).tobytes())
    files = Files([tmp_path])
    first, second = (array_from(external("data.bin", offset=offset, length=8), files) for offset in (0, 1))
    assert first.tolist() == [0, 1]
    assert second.tolist() == np.frombuffer(np.arange(5, dtype=np.float32).tobytes()[1:9], np.float32).tolist()
    assert second.ctypes.data - first.ctypes.data == 1


def test_an_empty_file_holds_an_empty_tensor(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"")
    proto = external("data.bin")
    proto.dims[0] = 0
    assert array_from(proto, Files([tmp_path])).shape == (0,)


@pytest.mark.parametrize(
    ("location", "entries", "message"),
    [
        ("data.bin", {"offset": 16}, r"bytes 16 to 24 of its external file data.bin are past the end \(20 bytes\)"),
        ("data.bin", {"offset": -4}, "the offset '-4', expected a non-negative integer"),
        ("data.bin", {"length": 4}, "2 elements of float32 take 8 bytes, the data has 4"),
        ("none.bin", {}, "is not there"),
        ("", {}, "has no location"),
        ("../secret.bin", {}, "leaves the model's folder"),
        ("/etc/hostname", {}, "leaves the model's folder"),
        ("link.bin", {}, "is a link out of the model's folder"),
        ("circle.bin", {}, "is not there"),
        ("n" * 300, {}, "is not there"),
    ],
)
def test_external_data_must_be_there_and_inside(
    tmp_path: Path, location: str, entries: dict[str, int], message: str
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "data.bin").write_bytes(bytes(20))
    (tmp_path / "secret.bin").write_bytes(bytes(20))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "circle.bin").symlink_to("circle.bin")
    with pytest.raises(ModelError, match=message):
        array_from(external(location, **entries), Files([folder]))


def test_a_model_from_bytes_has_no_external_data() -> None:
    with pytest.raises(ModelError, match="the model does not come from a file"):
        array_from(external("data.bin"))


def test_caches_link_a_model_and_its_data_into_one_folder(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    (blobs / "abc").write_bytes(bytes(8))
    (snapshot / "data.bin").symlink_to(blobs / "abc")
    assert Files([snapshot, blobs]).path("data.bin") == blobs / "abc"


def sparse(dims: list[int], indices: np.ndarray, values: list[float]) -> onnx.SparseTensorProto:
    proto = onnx.SparseTensorProto(dims=dims)
    proto.values.CopyFrom(numpy_helper.from_array(np.array(values, np.float32), "s"))
    proto.indices.CopyFrom(numpy_helper.from_array(indices.astype(np.int64)))
    return proto


def test_sparse_tensors_become_dense() -> None:
    linear = dense_from(sparse([2, 3], np.array([1, 5]), [7, 8]))
    coordinates = dense_from(sparse([2, 3], np.array([[0, 1], [1, 2]]), [7, 8]))
    assert linear.tolist() == coordinates.tolist() == [[0, 7, 0], [0, 0, 8]]


@pytest.mark.parametrize(
    ("dims", "indices", "message"),
    [
        ([2, 3], [6], r"index \[6\] is outside dims \[2, 3\]"),
        ([2, 3], [[0, 3]], r"index \[0, 3\] is outside"),
        ([2, 3], [-1], "outside"),
        ([2, 3], [0, 1], "do not fit"),
        ([2**40, 2**40], [0], "do not fit in memory"),
    ],
)
def test_a_sparse_tensor_that_lies_is_a_model_error(dims: list[int], indices: list, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        dense_from(sparse(dims, np.array(indices), [1]))


def test_sequences_optionals_and_maps() -> None:
    arrays = [np.array([1, 2]), np.array([3])]
    assert [a.tolist() for a in sequence_from(numpy_helper.from_list(arrays))] == [[1, 2], [3]]
    assert optional_from(numpy_helper.from_optional(np.array([4]))).tolist() == [4]
    assert isinstance(optional_from(onnx.OptionalProto(elem_type=onnx.OptionalProto.TENSOR)), EmptyOptional)
    assert map_from(numpy_helper.from_dict({1: np.array(0.5), 2: np.array(1.5)})) == {1: 0.5, 2: 1.5}


@pytest.mark.parametrize(
    "value_type",
    [
        TensorType(np.dtype(np.float32), (1, "N", None)),
        TensorType(np.dtype(ml_dtypes.bfloat16)),
        SequenceType(TensorType(STRING, ())),
        OptionalType(SequenceType(TensorType(np.dtype(np.int64), (2,)))),
        MapType(STRING, TensorType(np.dtype(np.float32))),
    ],
    ids=str,
)
def test_types_survive_their_protos(value_type) -> None:
    assert type_from(type_proto(value_type)) == value_type


def test_type_strings_are_the_schemas() -> None:
    schema = onnx.defs.get_schema("OptionalGetElement", 28)
    assert type_string(OptionalType(SequenceType(TensorType(np.dtype(np.float64))))) in schema.inputs[0].types
    vectorizer = onnx.defs.get_schema("DictVectorizer", 1, "ai.onnx.ml")
    assert type_string(MapType(STRING, TensorType(np.dtype(np.int64)))) in vectorizer.inputs[0].types
