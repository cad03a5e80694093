"""Whole models in float16 and bfloat16: as near as their type allows to float32 with the same weights.

The sample models take a second, the real ones and the pictures' models of the onnx wheel some minutes:
``pytest -m slow tests/models/test_halved_models.py``.
"""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from models.halved import DTYPES, halved, rounded
from onnx import TensorProto, helper

import onnxeval

ort = pytest.importorskip("onnxruntime")

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
SAMPLES = Path(__file__).parent.parent.parent / "sample_models"
sys.path.insert(0, str(BENCHMARKS))

import fetch  # noqa: E402  # it lies beside the list of models, not in a package

KINDS = pytest.mark.parametrize("kind", DTYPES, ids=[TensorProto.DataType.Name(kind).lower() for kind in DTYPES])
LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))

#: Models whose values pass the largest float16 on the way: infinity, as the operators say. onnxruntime, which has few
#: kernels of float16, keeps float32 from one operator to the next.
TOO_LARGE = {
    "light_bvlc_alexnet",
    "light_inception_v1",
    "light_resnet50",
    "light_squeezenet",
    "light_vgg19",
    "light_zfnet512",
    "magika",
}
#: Models with nothing to halve, and one whose output on its input is the far end of a sigmoid.
LEFT_OUT = {
    "onnxruntime.logreg_iris",
    "text2tashkeel.bilstm.int8",
    "text2tashkeel.rawi_v3.int8",
    "rapidocr-onnxruntime.ch_PP-OCRv4_det_infer",
}
REAL = [entry for entry in fetch.load_list() if entry["name"] not in LEFT_OUT]

#: How many rounding steps at the largest output may add up, over hundreds of operators.
ALLOWED = 4.0


def run_theirs(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def assert_as_exact_as_the_type(name: str, model: onnx.ModelProto, feeds: dict[str, np.ndarray], kind: int) -> None:
    dtype = DTYPES[kind]
    if kind == TensorProto.BFLOAT16:
        model = onnx.version_converter.convert_version(model, 22)  # the first opset where all operators have it
    narrow = {n: x.astype(dtype) if x.dtype == np.float32 else x for n, x in feeds.items()}
    wide = {n: x.astype(np.float32) if x.dtype == dtype else x for n, x in narrow.items()}
    half = halved(model, kind)
    got = list(onnxeval.load(half).run(narrow).values())
    references = [run_theirs(rounded(model, kind), wide)]
    if kind == TensorProto.FLOAT16:  # onnxruntime has next to no kernels for bfloat16
        references.append(run_theirs(half, narrow))
    for reference in references:
        for ours, theirs in zip(got, reference, strict=True):
            if theirs.dtype.kind != "f":
                continue
            assert ours.dtype == dtype
            assert ours.shape == theirs.shape
            if name in TOO_LARGE and kind == TensorProto.FLOAT16:
                continue
            step = float(ml_dtypes.finfo(dtype).eps) * float(np.abs(theirs).max())
            assert np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max() <= ALLOWED * step


@KINDS
def test_the_classifier_of_digits(kind: int) -> None:
    model = onnx.load(SAMPLES / "digits" / "model.onnx")
    for digit in range(10):
        picture = np.load(SAMPLES / "digits" / f"digit_{digit}.npy")
        assert_as_exact_as_the_type("digits", model, {"picture": picture}, kind)
        given = onnxeval.load(halved(model, kind)).run({"picture": picture.astype(DTYPES[kind])}, ["class"])["class"]
        assert given.tolist() == [digit]


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("entry", REAL, ids=lambda entry: entry["name"])
def test_real_models(entry: dict[str, str], kind: int) -> None:
    feeds = dict(np.load(BENCHMARKS / "feeds" / f"{entry['name']}.npz"))
    assert_as_exact_as_the_type(entry["name"], onnx.load(fetch.fetch(entry)), feeds, kind)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_light_models(path: Path, kind: int) -> None:
    model = onnx.load(path)
    known = {tensor.name for tensor in model.graph.initializer}
    draw = np.random.default_rng(0)
    feeds = {}
    for value in model.graph.input:
        if value.name not in known:
            sizes = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            feeds[value.name] = draw.standard_normal(sizes).astype(dtype)
    assert_as_exact_as_the_type(path.stem, model, feeds, kind)
