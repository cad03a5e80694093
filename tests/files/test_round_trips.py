"""Every element type through every format and back, empty and rank-0 tensors included, or the reason why not."""

from pathlib import Path

import numpy as np
import pytest
from files.values import DTYPES, TEXT, arrays_of, examples_of, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxeval.dtypes import STRING, name_of
from onnxeval.errors import OutputError
from onnxeval.files import read, write
from onnxeval.files.filenames import file_stem, name_from_file
from onnxeval.files.jsonform import value_form
from onnxeval.values import EmptyOptional, MapType, OptionalType, Sequence, SequenceType, TensorType, type_of

FORMATS = (
    "v.npy",
    "v.npz",
    "v.pb",
    "v.json",
    "v.safetensors",
    "v.csv",
    "v.tsv",
    "v.txt",
    "v.bin",
    "folder",
    "dir/*.pb",
)
SINGLE = {"v.npy", "v.pb", "v.csv", "v.tsv", "v.txt", "v.bin"}
#: Formats that tell the type of every element that they hold.
TELLING = {"v.npy", "v.npz", "v.pb", "v.json", "v.safetensors", "folder", "dir/*.pb"}


def refusal(array, place):
    """Why a format cannot hold an array, "" where it can: from the formats' own definitions."""
    text = array.dtype == STRING
    if place in ("v.npy", "v.npz") and text and any(s.endswith("\0") for s in array.flat):
        return "end in NUL"
    if place == "v.safetensors" and text:
        return "tensors of numbers"
    if place == "v.bin" and text:
        return "numbers alone"
    if place in ("v.csv", "v.tsv", "v.txt"):
        if array.ndim > 2:
            return "no more than 2 axes"
        if not array.size:
            return "no shape"
        if text and place == "v.txt":
            return "strings need"
        if text and any(s != s.strip() or "\0" in s or "\r" in s for s in array.flat):
            return "loses blanks"
    return ""


def read_back(place, wanted):
    found = read("dir" if place == "dir/*.pb" else place, wanted)
    return found if place in SINGLE else found["v"]


@pytest.mark.parametrize("place", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_type_comes_back(dtype, place, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("files")
    monkeypatch.chdir(folder)

    def comes_back(array):
        why_not = refusal(array, place)
        if why_not:
            with pytest.raises(OutputError, match=why_not):
                write(place, {"v": array})
            return
        write(place, {"v": array}, {"v": TensorType(dtype)})
        again = read_back(place, TensorType(dtype, array.shape))
        assert same(again, array)
        if place in TELLING:
            assert same(read_back(place, None), array)

    for array in examples_of(dtype):
        comes_back(array)
    slow_is_fine = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    slow_is_fine(given(arrays_of(dtype))(comes_back))()
    assert not [path.name for path in folder.rglob(".onnxeval-*")]


FLOATS = TensorType(np.dtype(np.float32))
TEXTS = TensorType(STRING)
OTHERS = [
    (Sequence([], FLOATS), SequenceType(FLOATS)),
    (Sequence([np.array([1, 2], np.float32), np.zeros((0, 3), np.float32)]), SequenceType(FLOATS)),
    (Sequence([np.array(["a\0", ""], object)]), SequenceType(TEXTS)),
    (Sequence([Sequence([np.array(1, np.float32)])]), SequenceType(SequenceType(FLOATS))),
    (EmptyOptional(FLOATS), OptionalType(FLOATS)),
    (Sequence([np.array([1], np.float32)]), OptionalType(SequenceType(FLOATS))),
    ({1: 0.5, -(2**63): 2.0}, MapType(np.dtype(np.int64), TensorType(np.dtype(np.float64)))),
    ({"": "x", "b": ""}, MapType(STRING, TEXTS)),
]


@pytest.mark.parametrize("place", FORMATS)
@pytest.mark.parametrize(
    ("value", "value_type"), OTHERS, ids=lambda x: str(x) if isinstance(x, type_of.__class__) else ""
)
def test_other_values_come_back(value, value_type, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if place in ("v.pb", "v.json", "folder", "dir/*.pb"):
        write(place, {"v": value}, {"v": value_type})
        assert value_form(read_back(place, value_type)) == value_form(value)
    else:
        with pytest.raises(OutputError, match="v is "):
            write(place, {"v": value}, {"v": value_type})
        assert list(tmp_path.iterdir()) == []


@given(st.lists(TEXT.filter(bool), min_size=1, max_size=5, unique=True))
def test_names_become_file_names_and_come_back(names):
    stems = [file_stem(name) for name in names]
    assert len(set(stems)) == len(stems)
    assert [name_from_file(Path(f"{stem}.npy")) for stem in stems] == names


@pytest.mark.parametrize("place", ["v.npz", "v.json", "v.safetensors", "folder"])
def test_names_of_every_kind(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["/layer1/conv:0", "a=b", "x.npy", "日本", "a b", "..", "%2F", "__metadata", "C:\\x"]
    values = {name: np.full(place_of, place_of, np.int16) for place_of, name in enumerate(names)}
    write(place, values)
    found = read(place)
    assert isinstance(found, dict)
    assert found.keys() == values.keys()
    assert all(same(found[name], values[name]) for name in names)


@pytest.mark.parametrize(
    "fault", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=lambda f: type(f).__name__
)
@pytest.mark.parametrize("place", FORMATS)
def test_what_is_not_written_whole_is_not_there(place, fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = np.arange(3, dtype=np.float32).reshape(1, 3)
    write(place, {"v": before})

    def fail(*arguments):
        raise fault

    for function in ("os.replace", "pathlib.Path.replace"):
        monkeypatch.setattr(function, fail)
    with pytest.raises(KeyboardInterrupt if isinstance(fault, KeyboardInterrupt) else OutputError):
        write(place, {"v": before + 1})
    assert same(read_back(place, TensorType(before.dtype, before.shape)), before)
    assert not list(tmp_path.rglob(".onnxeval-*"))
