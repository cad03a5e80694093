"""Files spoiled by chance are read, or refused with an error of ours: nothing else happens."""

import random
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from onnxeval.dtypes import STRING
from onnxeval.errors import InputError
from onnxeval.files import read, write
from onnxeval.values import MapType, OptionalType, Sequence, SequenceType, TensorType

FLOATS = TensorType(np.dtype(np.float32))
ARRAYS = {
    "f": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([1, 2], ml_dtypes.bfloat16),
    "i": np.array([-8, 7], ml_dtypes.int4),
    "s": np.array(["a", "日本"], object),
}
ONE = {"f": ARRAYS["f"]}
FILES = {
    "x.npy": ONE,
    "b.npy": {"b": ARRAYS["b"]},
    "s.npy": {"s": ARRAYS["s"]},
    "x.npz": ARRAYS,
    "x.safetensors": {name: array for name, array in ARRAYS.items() if array.dtype != STRING},
    "x.json": {**ARRAYS, "q": Sequence([ARRAYS["f"]]), "m": {"a": 1.5}},
    "x.pb": ONE,
    "q.pb": {"q": Sequence([ARRAYS["f"], ARRAYS["b"]])},
    "x.csv": ONE,
    "s.csv": {"s": ARRAYS["s"]},
    "x.txt": ONE,
    "x.bin": ONE,
    "x.png": {"x": np.arange(64, dtype=np.uint8).reshape(8, 8)},
}
WANTED = [None, FLOATS, TensorType(np.dtype(np.uint8), (1, 1, 8, 8)), TensorType(ARRAYS["b"].dtype), TensorType(STRING)]
WANTED += [SequenceType(FLOATS), OptionalType(FLOATS), MapType(STRING, FLOATS)]


def spoiled(data, rng):
    """The bytes with a few of them changed, left out, doubled, or cut off."""
    spoilt = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(spoilt) or 1)
        kind = rng.randrange(5)
        if kind == 0:
            spoilt[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del spoilt[place : place + rng.randint(1, 8)]
        elif kind == 2:
            spoilt[place:place] = spoilt[place : place + rng.randint(1, 16)]
        elif kind == 3:
            del spoilt[place:]
        else:
            spoilt[place : place + 8] = rng.choice([b"\xff" * 8, bytes(8), (2**62).to_bytes(8, "little"), b"99999999"])
    return bytes(spoilt)


@pytest.mark.filterwarnings("ignore")  # of NumPy, zipfile and Pillow about such files
@pytest.mark.parametrize("place", FILES)
def test_spoiled_files(place, tmp_path, monkeypatch):
    if place.endswith(".png"):
        pytest.importorskip("PIL")
    monkeypatch.chdir(tmp_path)
    write(place, FILES[place])
    data = Path(place).read_bytes()
    rng = random.Random(place)
    reasons = []
    for _ in range(300):
        Path(place).write_bytes(spoiled(data, rng))
        try:
            read(place, rng.choice(WANTED))
        except InputError as error:
            reasons.append(str(error))
    assert len(reasons) > 30
    assert all(place in reason for reason in reasons)
