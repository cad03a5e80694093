"""Input files in every state of disrepair: exit code 5, the reason, no traceback."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

INPUT_ERROR = 5


def npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


ROW = np.array([[1, -2, 3]], np.float32)


def _write_zip_of_garbage(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"garbage")


def _with_shape(shape: str) -> bytes:
    """A .npy file whose header has another shape than its data."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + ROW.tobytes()


BROKEN = {
    "empty.npy": lambda p: p.write_bytes(b""),
    "cut.npy": lambda p: p.write_bytes(npy(ROW)[:-3]),
    "longer.npy": lambda p: p.write_bytes(npy(ROW) + b"more"),
    "garbage.npy": lambda p: p.write_bytes(b"\x93NUMPY\x01\x00\x10\x00garbage garbage "),
    "pickle.npy": lambda p: np.save(p, np.array([{}], object)),
    "dates.npy": lambda p: np.save(p, np.array(["2020-01-01"], "M8[D]")),
    "records.npy": lambda p: np.save(p, np.zeros(1, [("a", "f4")])),
    "header.npy": lambda p: p.write_bytes(npy(ROW).replace(b"(1, 3)", b"(1, 3(")),
    "huge.npy": lambda p: p.write_bytes(_with_shape("(99999999999999,)")),
    "promises.npy": lambda p: p.write_bytes(_with_shape("(1, 30)")),
    "negative.npy": lambda p: p.write_bytes(_with_shape("(-1, 3)")),
    "empty.npz": lambda p: p.write_bytes(b""),
    "cut.npz": lambda p: (np.savez(p, x=ROW), p.write_bytes(p.read_bytes()[:-30])),
    "members.npz": _write_zip_of_garbage,
    "garbage.pb": lambda p: p.write_bytes(b"\xff\xff\xff"),
    "empty.json": lambda p: p.write_bytes(b""),
    "unnamed.json": lambda p: p.write_text('{"outputs": [{"name": 3}]}'),
    "not_utf8.json": lambda p: p.write_bytes(b'["\xff"]'),
    "deep.json": lambda p: p.write_text("[" * 100_000),
    "what.xyz": lambda p: p.write_bytes(b"?"),
    "no_suffix": lambda p: p.write_bytes(b"?"),
    "a_folder": lambda p: p.mkdir(),
    "a_folder.npy": lambda p: p.mkdir(),
}


def test_pickled_text_is_refused_with_the_way_out(shell, model):
    np.save("text.npy", np.array(["a", "b"], object))
    result = shell("run", model("text"), "-i", "text.npy")
    assert result.exit_code == INPUT_ERROR
    assert "save text as x.astype(np.str_)" in result.stderr
    np.save("text.npy", np.array(["a", "b"], object).astype(np.str_))
    assert shell("run", model("text"), "-i", "text.npy").exit_code == 0


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(shell, model, name):
    BROKEN[name](Path(name))
    for argument in (name, f"x={name}"):
        result = shell("run", model("relu"), "-i", argument)
        assert result.exit_code == INPUT_ERROR, result.stderr
        assert name in result.stderr
        assert "Traceback" not in result.stderr
