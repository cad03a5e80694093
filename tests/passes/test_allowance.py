"""Folding computes no more constants beforehand than a model may take for it."""

import importlib

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnxeval

TEXT = """<ir_version: 10, opset_import: ["" : 21]> g (float[2, 4] x) => (float[2, 4] y) {
    [widen] a = DequantizeLinear (w, one)
    [turn] b = Transpose <perm = [1, 0]> (a)
    [flat] f = Reshape (v, shape)
    [join] c = MatMul (x, b)
    [last] y = Add (c, f)
}"""
W = np.arange(16, dtype=np.int8).reshape(4, 4)
V = np.arange(4, dtype=np.float32)
X = np.arange(8, dtype=np.float32).reshape(2, 4)


def model() -> onnxeval.Model:
    proto = onnx.parser.parse_model(TEXT)
    for name, array in {"w": W, "one": np.float32(1), "v": V[:, None], "shape": np.array([4])}.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return onnxeval.load(proto)


@pytest.mark.parametrize(
    ("allowance", "left"),
    [
        (1 << 27, ["join", "last"]),
        (128, ["join", "last"]),  # 64 bytes of float32; a view of them costs nothing
        (64, ["turn", "flat", "join", "last"]),  # nothing is left, then nothing more is tried
        (63, ["widen", "turn", "join", "last"]),
        (8, ["widen", "turn", "flat", "join", "last"]),
    ],
)
def test_only_so_much_is_computed_beforehand(monkeypatch: pytest.MonkeyPatch, allowance: int, left: list[str]) -> None:
    monkeypatch.setattr(importlib.import_module("onnxeval.passes.fold_constants"), "ALLOWANCE", allowance)
    loaded = model()
    labels = [label for step in loaded.plan().steps for label in step.label.split(" + ")]
    assert [label.partition(" ")[0] for label in labels] == left
    assert loaded.run({"x": X})["y"].tolist() == (X @ W.T + V).tolist()


def test_what_is_read_for_the_last_time_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four results of 64 bytes, of which only two are held at a time."""
    monkeypatch.setattr(importlib.import_module("onnxeval.passes.fold_constants"), "ALLOWANCE", 128)
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]> g (float[4, 4] x) => (float[4, 4] y) {
            a = Cast <to = 1> (w) b = Neg (a) c = Neg (b) d = Neg (c) [last] y = Add (x, d)
        }"""
    )
    proto.graph.initializer.append(numpy_helper.from_array(W, "w"))
    loaded = onnxeval.load(proto)
    assert [step.label for step in loaded.plan().steps] == ["last (Add-14)"]
    assert loaded.run({"x": np.zeros((4, 4), np.float32)})["y"].tolist() == (-W.astype(np.float32)).tolist()


def test_what_a_step_at_run_time_reads_is_kept() -> None:
    """The last reader is folded, an earlier one is not."""
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]> g (float[4, 4] x) => (float[4, 4] y) {
            a = Cast <to = 1> (w) early = Add (x, a) b = Neg (a) y = Mul (early, b)
        }"""
    )
    proto.graph.initializer.append(numpy_helper.from_array(W, "w"))
    x = np.ones((4, 4), np.float32)
    assert onnxeval.load(proto).run({"x": x})["y"].tolist() == ((x + W) * -W.astype(np.float32)).tolist()
