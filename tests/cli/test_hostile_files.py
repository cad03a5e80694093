"""Wrong names, broken, truncated and malicious files of every format: exit code 5, the reason, nothing written."""

import importlib.util
import io
import json
import pickle
import struct
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from onnxeval.errors import InputError
from onnxeval.files import read, write

INPUT_ERROR = 5
ROW = np.array([[1, -2, 3]], np.float32)
FORMATS = ("x.npy", "x.npz", "x.pb", "x.json", "x.safetensors", "x.csv", "x.tsv", "x.txt", "x.bin", "x.png")


def refused(shell, model, value, *reasons, name="relu"):
    """Running on the value ends with 5 and the reasons, and writes nothing."""
    before = {path for path in Path.cwd().rglob("*") if path.suffix != ".onnx"}
    result = shell("run", model(name), "-i", value, "--save", "out.npz", "--save-inputs", "in.npz")
    assert result.exit_code == INPUT_ERROR, (result.exit_code, result.stdout, result.stderr)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for reason in reasons:
        assert reason in result.stderr
    assert {path for path in Path.cwd().rglob("*") if path.suffix != ".onnx"} == before
    return result


def saved(place):
    if place == "x.png":
        pytest.importorskip("PIL")
        write(place, {"x": np.zeros((8, 8), np.uint8)})
    else:
        write(place, {"x": ROW})
    return Path(place).read_bytes()


@pytest.mark.parametrize("place", FORMATS)
def test_truncated_files(shell, model, place):
    data = saved(place)
    #: Of text and of raw bytes some beginnings are files too.
    lengths = {"x.csv": (0, 1), "x.tsv": (0, 1), "x.txt": (0, 1), "x.bin": (1, 7, 11)}
    for length in lengths.get(place, (0, 1, len(data) // 2, len(data) - 3)):
        Path(place).write_bytes(data[:length])
        refused(shell, model, f"x={place}", "" if place in lengths else place)


@pytest.mark.parametrize("place", FORMATS)
def test_noise(shell, model, place):
    saved(place)
    for noise in (b"\0" * 64, b"\xff" * 64, bytes(range(256)), b"{" * 5000, b"[" * 100_000):
        Path(place).write_bytes(noise)
        if place == "x.bin":
            Path(place).write_bytes(noise + b"\0" * (11 - len(noise) % 11))
        if len(Path(place).read_bytes()) % 12 or place != "x.bin":
            refused(shell, model, f"x={place}", place)


@pytest.mark.parametrize("place", FORMATS)
def test_a_folder_where_a_file_is_meant(shell, model, place):
    Path(place).mkdir()
    refused(shell, model, f"x={place}", "the folder holds neither")


def test_names_and_places_that_are_not_there(shell, model):
    np.savez("x.npz", x=ROW)
    refused(shell, model, "missing.npy", "there is no such file")
    refused(shell, model, "many/*.npy", "there is no such file", "hint: `onnxeval run --each`")
    refused(shell, model, model("two"), "is a model, not a value")
    refused(shell, model, "x.npz:y", "there is no 'y' in it", "it holds: x")
    np.save("x.npy", ROW)
    refused(shell, model, "x.npy:y", "one value, without a name")
    refused(shell, model, "X=x.npz", "'X' is no input of the model", "its inputs: x")
    refused(shell, model, "z*=x.npz", "no input")
    Path("x.xyz").write_bytes(b"")
    refused(shell, model, "x.xyz", "suffix '.xyz'", "known: .npy")
    for arguments in (
        ("-o", "nothing*"),
        ("--output-type", "Conv"),
        ("--expect", "z=1"),
        ("--carry", "z=x", "--steps", 2),
    ):
        result = shell("run", model("relu"), "-i", "[[1, 2, 3]]", *arguments, "--save", "out.npz")
        assert result.exit_code == INPUT_ERROR, arguments
        assert not Path("out.npz").exists()


def test_pickles(shell, model):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (Path("touched"),))

    np.save("x.npy", np.array([Bomb()], object), allow_pickle=True)
    refused(shell, model, "x.npy", "pickled objects, which are never read")
    np.savez("x.npz", x=np.array([Bomb()], object))
    refused(shell, model, "x.npz", "pickled objects, which are never read")
    Path("x.pkl").write_bytes(pickle.dumps(Bomb()))
    refused(shell, model, "x.pkl", "suffix '.pkl'")
    Path("x.npy").write_bytes(pickle.dumps(Bomb()))
    refused(shell, model, "x.npy")
    assert not Path("touched").exists()


def npy_header(shape, descr="<f4"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


def test_sizes_that_lie_take_no_memory(shell, model):
    for shape in ((2**40,), (2**62, 2**62), (2**31, 3)):
        Path("x.npy").write_bytes(npy_header(shape) + b"\0" * 100)
        refused(shell, model, "x.npy", "truncated")
        with zipfile.ZipFile("x.npz", "w") as archive:
            archive.writestr("x.npy", npy_header(shape) + b"\0" * 100)
        refused(shell, model, "x.npz", "truncated")
    header = json.dumps({"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    Path("x.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    refused(shell, model, "x.safetensors", "truncated")
    Path("x.safetensors").write_bytes((2**62).to_bytes(8, "little") + b"{}")
    refused(shell, model, "x.safetensors", "truncated")
    Path("x.json").write_text(
        '{"outputs": [{"name": "x", "type": "tensor", "dtype": "float32", "shape": [99999999999]}]}'
    )
    refused(shell, model, "x.json")


def test_archives_that_expand_without_end(shell, model):
    with zipfile.ZipFile("x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy_header((2**29,)) + bytes(2**20))
    told, real = (struct.pack("<I", size) for size in (2**31 + 128, len(npy_header((2**29,))) + 2**20))
    Path("x.npz").write_bytes(Path("x.npz").read_bytes().replace(real, told))
    refused(shell, model, "x.npz", "decompression bomb")
    # one that says less than it holds
    with zipfile.ZipFile("x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy_header((3,)) + bytes(2**20))
    data = bytearray(Path("x.npz").read_bytes())
    whole, claimed = (struct.pack("<I", len(npy_header((3,))) + n) for n in (2**20, 12))
    Path("x.npz").write_bytes(bytes(data).replace(whole, claimed))
    refused(shell, model, "x.npz")


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def test_pictures_of_too_many_pixels(shell, model):
    pytest.importorskip("PIL")
    for size in ((10_000, 10_000), (2**30, 2**30), (65535, 65535)):
        Path("x.png").write_bytes(png(*size))
        refused(shell, model, "x.png", "x.png")


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"x": {"dtype": "F99", "shape": [3], "data_offsets": [0, 12]}}, "unknown"),
        ({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, "takes 12 bytes"),
        ({"x": {"dtype": "F32", "shape": [3], "data_offsets": [4, 16]}}, "starts at byte 4"),
        ({"x": {"dtype": "F32", "shape": [-3], "data_offsets": [0, 12]}}, "no shape"),
        ({"x": {"dtype": "F32", "shape": [True], "data_offsets": [0, 12]}}, "no shape"),
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, "more data follows"),
        ({"x": 3}, "unknown"),
        (
            {
                "__metadata__": {"onnxeval.types": '{"x": "int4"}'},
                "x": {"dtype": "U8", "shape": [12], "data_offsets": [0, 12]},
            },
            "no int4",
        ),
        ([], "no JSON object"),
    ],
)
def test_headers_of_safetensors(shell, model, header, reason):
    text = json.dumps(header).encode()
    Path("x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"\x40" * 12)
    refused(shell, model, "x.safetensors", reason)


def test_tables_that_are_none(shell, model):
    for text, reason in (
        ("1,2\n3\n", "row 2 has 1 columns"),
        ("1,2,x\n", '"x" is not a number'),
        ("1e999,1,1", "does not fit"),
    ):
        Path("x.csv").write_text(text)
        refused(shell, model, "x.csv", reason)
    Path("x.csv").write_text("300\n")
    refused(shell, model, "x=x.csv", "outside int4", name="int4")
    Path("x.csv").write_text("1.5\n")
    refused(shell, model, "x=x.csv", "not an integer", name="int64")


def test_raw_bytes_that_do_not_fit(shell, model):
    Path("x.bin").write_bytes(b"\0" * 10)
    refused(shell, model, "x.bin", "the data has 10")
    refused(shell, model, "x.bin:float32[2]", "take 8 bytes, the data has 10")
    refused(shell, model, "x.bin:float99[2]", "no element type")
    refused(shell, model, "x.bin:string[2]", "hold no strings")


def test_generators_that_cannot(shell, model):
    refused(shell, model, "rand:", "of which size is N", "as in rand:[1,3], or --dim N=1")
    refused(shell, model, "rand:[1,3", "neither a number nor a type")
    refused(shell, model, "full:", "full of which number")
    refused(shell, model, "full:x:[1,3]", "neither a number nor a type")
    refused(shell, model, "ones:[1,3]:5", "takes 0 numbers")
    refused(shell, model, "x=range:[3]:7", "no range of int4", name="int4")
    refused(shell, model, "x=zeros:[9223372036854775807]", name="int4")


def test_another_type_is_no_silent_cast(shell, model):
    np.save("x.npy", ROW.astype(np.float64))
    result = refused(shell, model, "x.npy", "x.npy: is float64, the model declares float32")
    assert "hint: --cast converts them" in result.stderr


def test_what_lies_or_expands_takes_no_memory():
    places = {"x.npy": npy_header((2**28,)) + bytes(100), "x.png": png(9_400, 9_600)}
    header = json.dumps({"x": {"dtype": "F32", "shape": [2**28], "data_offsets": [0, 2**30]}}).encode()
    places["x.safetensors"] = len(header).to_bytes(8, "little") + header
    with zipfile.ZipFile("x.npz", "w") as archive:
        archive.writestr("x.npy", npy_header((2**28,)) + bytes(100))
    places["x.npz"] = Path("x.npz").read_bytes()
    for place, data in places.items():
        if place == "x.png" and not importlib.util.find_spec("PIL"):
            continue
        Path(place).write_bytes(data)
        tracemalloc.start()
        with pytest.raises(InputError):
            read(place)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**24, place


def test_pictures_without_pillow(shell, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    Path("x.png").write_bytes(png(3, 1))
    result = shell("run", model("relu"), "-i", "x.png")
    assert result.exit_code == 9
    assert "pip install 'onnxeval[image]'" in result.stderr
    assert shell("run", model("relu"), "-i", "[[1, 2, 3]]", "--save", "y.png").exit_code == 9


LONG = "n" * 300
NO_PLACE = [
    LONG,
    f"{LONG}.onnx",
    f"{LONG}.npy",
    f"{LONG}/y.onnx",
    "/d" * 3000 + "/x.onnx",
    "circle.onnx",
    "circle/x.npy",
]


@pytest.mark.parametrize("place", NO_PLACE)
def test_paths_that_lead_nowhere(shell, model, place):
    Path("circle.onnx").symlink_to("circle.onnx")
    Path("circle").symlink_to("circle")
    np.save("rows.npy", np.ones((2, 3), np.float32))
    relu = model("relu")
    before = {*Path.cwd().iterdir()}
    commands = [
        ("run", place),
        ("run", relu, "-i", place),
        ("run", relu, "--random", "--vs", place),
        ("run", relu, "--random", "--expect", place),
        ("run", relu, "--random", "--ops", place),
        ("run", relu, "-i", "rows.npy", "--each", "--save", place),
        ("extract", place, "--save", "q.onnx"),
        ("convert", place, "q.onnx"),
        ("convert", f"{place}:test_data_set_0", "q.npz"),
        ("check", place),
        ("inspect", place),
        ("test", place),
    ]
    if not place.startswith("circle"):  # a link to nothing is written through
        commands += [
            ("run", relu, "--random", "--save", place),
            ("extract", relu, "--save", place),
            ("convert", relu, place),
            ("convert", "rows.npy", place),
            ("check", relu, "--fix", place),
        ]
    for command in commands:
        result = shell(*command)
        told = result.stdout + result.stderr
        assert result.exit_code in (2, 3, 5, 8) or command[:2] == ("test", place), (command[0], result.exit_code)
        assert "Traceback" not in told
        assert {*Path.cwd().iterdir()} == before, command[0]
