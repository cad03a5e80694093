"""Files that others wrote are read, and others read ours: NumPy, onnx, safetensors, Pillow."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from files.values import DTYPES, examples_of, same
from onnx import helper, numpy_helper

from onnxeval.dtypes import ELEMENT_TYPES, STRING, name_of
from onnxeval.errors import InputError
from onnxeval.files import Reading, read, write
from onnxeval.files.source import PictureForm
from onnxeval.values import TensorType

NARROW = [dtype for dtype in DTYPES if dtype.isbuiltin != 1 and dtype != STRING]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_onnx_reads_our_messages_and_we_those_of_onnx(dtype):
    for array in examples_of(dtype):
        write("v.pb", {"v": array})
        message = onnx.TensorProto.FromString(Path("v.pb").read_bytes())
        assert message.data_type == ELEMENT_TYPES[dtype]
        theirs = numpy_helper.to_array(message)
        if dtype == STRING and any(text.endswith("\0") for text in array.flat):
            continue  # NumPy's own strings, which onnx uses, lose that
        assert same(theirs.astype(object) if dtype == STRING else theirs, array)
        Path("theirs.pb").write_bytes(numpy_helper.from_array(array, "x").SerializeToString())
        assert same(read("theirs.pb"), array)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.isbuiltin == 1 and d != STRING], ids=name_of)
def test_numpy_reads_our_arrays_and_we_those_of_numpy(dtype):
    for array in examples_of(dtype):
        write("v.npy", {"v": array})
        write("v.npz", {"v": array})
        assert same(np.load("v.npy"), array)
        with np.load("v.npz") as saved:
            assert same(saved["v"], array)
        np.save("theirs.npy", array.astype(dtype.newbyteorder(">")))
        assert same(read("theirs.npy"), array)
        np.savez_compressed("theirs.npz", x=np.array(array, order="F"))
        assert same(read("theirs.npz:x"), array)


@pytest.mark.parametrize("dtype", NARROW, ids=name_of)
def test_arrays_of_ml_dtypes_take_the_declared_type(dtype):
    for array in examples_of(dtype):
        np.save("theirs.npy", array)
        assert same(read("theirs.npy", TensorType(dtype)), array)
    with pytest.raises(InputError, match="raw elements"):
        read("theirs.npy")


def test_the_structures_of_older_onnx_packages():
    codes = np.array([0, 1, 0x7E], np.uint8)
    for field, dtype in (("e4m3fn", ml_dtypes.float8_e4m3fn), ("e5m2fnuz", ml_dtypes.float8_e5m2fnuz)):
        np.save("v.npy", codes.view(np.dtype([(field, np.uint8)])))
        assert same(read("v.npy"), codes.view(dtype))
    np.save("v.npy", np.array([0x3F80], np.uint16).view([("bfloat16", np.uint16)]))
    assert read("v.npy").tolist() == [1.0]


def test_numpy_views_our_narrow_types():
    array = np.array([[1.5, -2]], ml_dtypes.bfloat16)
    write("v.npy", {"v": array})
    assert same(np.load("v.npy").view(ml_dtypes.bfloat16), array)


def test_bytes_as_text():
    np.save("v.npy", np.array(["é".encode(), b"b"]))
    assert read("v.npy").tolist() == ["é", "b"]


NUMPY_SAFE = ["float64", "float32", "float16", "int64", "uint64", "int8", "bool", "complex64"]


@pytest.mark.parametrize("name", NUMPY_SAFE)
def test_safetensors_reads_ours_and_we_theirs(name):
    theirs = pytest.importorskip("safetensors.numpy")
    dtype = np.dtype(name)
    arrays = {f"v{place}": array for place, array in enumerate(examples_of(dtype))}
    write("v.safetensors", arrays)
    found = theirs.load_file("v.safetensors")
    assert all(same(found[key], array) for key, array in arrays.items())
    theirs.save_file(arrays, "theirs.safetensors", metadata={"format": "np"})
    again = read("theirs.safetensors")
    assert all(same(again[key], array) for key, array in arrays.items())


def test_safetensors_takes_every_type_of_ours():
    safetensors = pytest.importorskip("safetensors")
    arrays = {name_of(d): next(iter(examples_of(d))) for d in DTYPES if d != STRING}
    write("v.safetensors", arrays)
    with safetensors.safe_open("v.safetensors", "np") as file:
        assert set(file.keys()) == set(arrays)
        types = {key: file.get_slice(key).get_dtype() for key in arrays}
        assert "onnxeval.types" in file.metadata()
    assert types["bfloat16"] == "BF16"
    assert types["float8e4m3fn"] == "F8_E4M3"
    assert types["int4"] == "U8"
    assert types["complex128"] == "F64"


def test_packed_types_of_safetensors():
    header = b'{"x":{"dtype":"F4","shape":[2,2],"data_offsets":[0,2]}}'
    Path("v.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes([0x21, 0x43]))
    if safetensors := pytest.importorskip("safetensors"):
        with safetensors.safe_open("v.safetensors", "np") as file:
            assert file.get_slice("x").get_shape() == [2, 2]
    found = read("v.safetensors:x")
    assert found.dtype == ml_dtypes.float4_e2m1fn
    assert found.view(np.uint8).tolist() == [[1, 2], [3, 4]]


@pytest.fixture
def pillow():
    return pytest.importorskip("PIL.Image")


COLORS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 10


def picture(path, reading=None, shape=None, dtype=np.uint8):
    return read(path, TensorType(np.dtype(dtype), shape), reading)


def test_pictures(pillow):
    pillow.fromarray(COLORS).save("c.png")
    pillow.fromarray(COLORS[:, :, 0]).save("g.png")
    assert same(read("c.png"), COLORS)
    assert same(picture("c.png", shape=(1, 3, None, None)), COLORS.transpose(2, 0, 1)[None])
    assert same(picture("c.png", shape=("N", "H", "W", 3)), COLORS[None])
    assert same(picture("g.png", shape=(1, 1, 2, 3)), COLORS[None, None, :, :, 0])
    assert same(picture("g.png", shape=(2, 3)), COLORS[:, :, 0])
    chw = Reading(picture=PictureForm(layout="CHW"))
    assert same(picture("c.png", chw, (None, None, None)), COLORS.transpose(2, 0, 1))


def test_pictures_as_floats(pillow):
    pillow.fromarray(COLORS).save("c.png")
    with pytest.raises(InputError, match="float32: what is white") as caught:
        picture("c.png", shape=(1, 3, 2, 3), dtype=np.float32)
    assert "--scale 1/255" in caught.value.hint
    form = PictureForm(scale=1 / 255, mean=(0.5, 0.25, 0), std=(1, 2, 4))
    found = picture("c.png", Reading(picture=form), (1, 3, 2, 3), np.float32)
    expected = (COLORS / 255 - [0.5, 0.25, 0]) / [1, 2, 4]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0].transpose(1, 2, 0), expected, rtol=1e-6, atol=1e-7)
    with pytest.raises(InputError, match="2 numbers for 3 channels"):
        picture("c.png", Reading(picture=PictureForm(scale=1, mean=(1, 2))), (1, 3, 2, 3), np.float32)


def test_nothing_is_resized_or_recoloured_unasked(pillow):
    pillow.fromarray(COLORS).save("c.png")
    with pytest.raises(InputError, match="3 x 2 pixels, the model takes 8 x 4") as caught:
        picture("c.png", shape=(1, 3, 4, 8))
    assert "--resize" in caught.value.hint
    resized = Reading(picture=PictureForm(resize=True))
    assert picture("c.png", resized, (1, 3, 4, 8)).shape == (1, 3, 4, 8)
    assert resized.notes == ["c.png: resized from 3 x 2 to 8 x 4 pixels"]
    with pytest.raises(InputError, match="3 channels, the model takes 1") as caught:
        picture("c.png", shape=(1, 1, 2, 3))
    assert "--color L" in caught.value.hint
    grey = picture("c.png", Reading(picture=PictureForm(color="L")), (1, 1, 2, 3))
    assert same(grey[0, 0], np.asarray(pillow.fromarray(COLORS).convert("L")))
    bgr = picture("c.png", Reading(picture=PictureForm(color="BGR")), (1, 3, 2, 3))
    assert same(bgr[0], COLORS[:, :, ::-1].transpose(2, 0, 1))
    with pytest.raises(InputError, match="which axis") as caught:
        picture("c.png", shape=(None, None, None, None))
    assert "--layout" in caught.value.hint


def test_modes_of_pictures(pillow):
    colors = pillow.fromarray(COLORS)
    colors.convert("P", palette=pillow.Palette.ADAPTIVE).save("p.png")
    assert read("p.png").shape == (2, 3, 3)
    colors.convert("CMYK").save("c.tiff")
    with pytest.raises(InputError, match="mode CMYK"):
        read("c.tiff")
    deep = np.array([[0, 65535]], np.uint16)
    pillow.fromarray(deep).save("d.png")
    assert same(read("d.png")[:, :, 0], deep)
    pillow.fromarray(np.array([[True, False]])).save("b.png")
    assert read("b.png")[:, :, 0].tolist() == [[255, 0]]


def test_pillow_reads_our_pictures(pillow):
    for value, expected in (
        (COLORS, COLORS),
        (COLORS.transpose(2, 0, 1)[None], COLORS),
        (COLORS[:, :, 0], COLORS[:, :, 0]),
        ((COLORS[:, :, 0] / 255).astype(np.float32), COLORS[:, :, 0]),
        (np.array([[True, False]]), np.array([[255, 0]], np.uint8)),
        (np.array([[-1.0, 0, 1]]), np.array([[0, 128, 255]], np.uint8)),
        (np.array([[np.nan, 0, 1]]), np.array([[0, 0, 255]], np.uint8)),
        (np.array([[-1, 1]], ml_dtypes.bfloat16), np.array([[0, 255]], np.uint8)),
    ):
        write("v.png", {"v": value})
        assert same(np.asarray(pillow.open("v.png")), expected)


def test_what_is_no_picture():
    pytest.importorskip("PIL")
    for value, reason in (
        (np.zeros((2, 5, 4, 4)), "which axis"),
        (np.zeros(3), "which axis"),
        (np.zeros((0, 3)), "without pixels"),
        (np.array(["a"], object), "no picture"),
        ([np.zeros((2, 2))], "no picture"),
    ):
        with pytest.raises(Exception, match=reason):
            write("v.png", {"v": value})
    assert list(Path.cwd().iterdir()) == []


def test_a_table_of_numpy_and_of_a_spreadsheet():
    array = np.random.default_rng(0).normal(size=(3, 4))
    np.savetxt("v.txt", array, header="made by NumPy")
    assert same(read("v.txt", TensorType(array.dtype)), array)
    np.savetxt("v.csv", array, delimiter=",", fmt="%.17g")
    assert same(read("v.csv", TensorType(array.dtype)), array)
    Path("v.csv").write_bytes("\ufeffage;x\r\n".replace(";", ",").encode() + b"1,2\r\n3,4\r\n")
    assert read("v.csv").tolist() == [[1, 2], [3, 4]]
    assert read("v.csv:age").tolist() == [[1], [3]]


def test_the_old_test_data_of_the_model_zoo():
    np.savez("test_data_0.npz", inputs=np.arange(6, dtype=np.float32).reshape(2, 3), outputs=np.zeros((1, 2)))
    found = read("test_data_0.npz", {"a": None, "b": None})
    assert {name: value.tolist() for name, value in found.items()} == {"a": [0, 1, 2], "b": [3, 4, 5]}


def test_test_data_sets_of_onnx():
    folder = Path("test_data_set_0")
    folder.mkdir()
    for place in range(11):
        tensor = helper.make_tensor("", onnx.TensorProto.INT8, [1], [place])
        (folder / f"input_{place}.pb").write_bytes(tensor.SerializeToString())
    names = {f"n{place}": None for place in range(11)}
    assert {name: value.item() for name, value in read("test_data_set_0", names).items()} == {
        f"n{place}": place for place in range(11)
    }
    write("test_data_set_1", {"first": np.zeros(1), "second": np.ones(1)})
    assert sorted(path.name for path in Path("test_data_set_1").iterdir()) == ["output_0.pb", "output_1.pb"]
