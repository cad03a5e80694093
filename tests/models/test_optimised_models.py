"""Models that onnxruntime optimised and saved: what they give is what the model before gave.

The nine pictures' models of the onnx wheel and the twelve real ones take minutes:
``pytest -m slow tests/models/test_optimised_models.py``.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxeval

ort = pytest.importorskip("onnxruntime")

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import fetch  # noqa: E402  # it lies beside the list of models, not in a package

LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))
SAMPLES = Path(__file__).parent.parent.parent / "sample_models"
LEVELS = {
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def optimised(path: Path, level: str, folder: Path) -> Path:
    saved = folder / f"{level}.onnx"
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = LEVELS[level]
    options.optimized_model_filepath = str(saved)
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return saved


def feeds_for(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Random pictures, and zeros for inputs that lost their initializers and that nothing reads."""
    draw = np.random.default_rng(0)
    known = {tensor.name for tensor in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name not in known:
            kind = value.type.tensor_type
            sizes = [d.dim_value if d.dim_value > 0 else 96 if place else 1 for place, d in enumerate(kind.shape.dim)]
            dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
            feeds[value.name] = draw.standard_normal(sizes).astype(dtype) if len(sizes) == 4 else np.zeros(sizes, dtype)
    return feeds


def assert_same(
    path: Path,
    level: str,
    folder: Path,
    *,
    domain: str | None = None,
    feeds: dict[str, np.ndarray] | None = None,
    within: float = 1e-5,
) -> None:
    saved = optimised(path, level, folder)
    model = onnx.load(saved)
    if domain:
        assert domain in {node.domain for node in model.graph.node}
    feeds = feeds_for(model) if feeds is None else feeds
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    known = {value.name for value in session.get_inputs()}
    wanted = session.run(None, {name: x for name, x in feeds.items() if name in known})
    read = {value.name for value in model.graph.input}
    given = onnxeval.load(saved).run({name: x for name, x in feeds.items() if name in read})
    for ours, theirs in zip(given.values(), wanted, strict=True):
        if isinstance(theirs, list):  # maps of classes and probabilities
            assert [list(row) for row in ours] == [list(row) for row in theirs]
            ours, theirs = ([list(row.values()) for row in rows] for rows in (ours, theirs))
        if np.asarray(theirs).dtype == object:
            assert np.asarray(ours).tolist() == theirs.tolist()
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=within)
    # It drops shapes, and keeps the IR version of old files whose inputs it drops: onnx's checker refuses both.
    found = onnxeval.check(saved, ignore=["graph/no-shape", "graph/initializer-not-input"])
    assert [finding for finding in found if finding.severity == "error"] == []


def small_net(first: int, second: int) -> onnx.ModelProto:
    """Convolutions of all the forms that are laid out anew, pools, a sum, a product and what lies between them."""
    draw = np.random.default_rng(first)

    def weights(name, *shape):
        return numpy_helper.from_array((draw.standard_normal(shape) / 4).astype(np.float32), name)

    def node(op_type, *names, **attributes):
        *inputs, output = names
        return helper.make_node(op_type, inputs, [output], name=output, **attributes)

    nodes = [
        node("Conv", "x", "w1", "b1", "c1", pads=[1, 1, 1, 1]),
        node("Relu", "c1", "r1"),
        node("Conv", "r1", "w2", "b2", "c2", group=first, pads=[1, 1, 1, 1]),
        node("HardSigmoid", "c2", "h2"),
        node("MaxPool", "h2", "p2", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p2", "w3", "c3"),
        node("Conv", "c3", "w4", "c4", pads=[1, 1, 1, 1]),
        node("Add", "c3", "c4", "s4"),
        node("Relu", "s4", "r4"),
        node("AveragePool", "r4", "p4", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Concat", "p4", "r4", "j4", axis=1),
        node("Resize", "j4", "", "scales", "u4", mode="nearest", nearest_mode="floor",
             coordinate_transformation_mode="asymmetric"),
        node("Conv", "u4", "w5", "c5"),
        node("GlobalAveragePool", "c5", "g5"),
        node("Sigmoid", "g5", "e5"),
        node("Mul", "c5", "e5", "y"),
    ]  # fmt: skip
    initializers = [
        weights("w1", first, 3, 3, 3),
        weights("b1", first),
        weights("w2", first, 1, 3, 3),
        weights("b2", first),
        weights("w3", second, first, 1, 1),
        weights("w4", second, second, 3, 3),
        weights("w5", 5, 2 * second, 1, 1),
        numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 10])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "net", [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


DOMAINS = {"basic": "", "extended": "com.microsoft", "all": "com.microsoft.nchwc"}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("channels", [(16, 32), (24, 40), (20, 12), (8, 16), (36, 64)])
def test_small_net(channels, level, tmp_path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(small_net(*channels), path)
    assert_same(path, level, tmp_path, domain=DOMAINS[level])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("sample", "feeds"),
    [
        ("collatz", {"start": "start_27"}),
        ("depth_to_space_13", {"packed": "packed"}),
        ("digits", {"picture": "digit_7"}),
        ("max_pool_12", {"x": "x"}),
    ],
)
def test_sample_models(sample: str, feeds: dict[str, str], level: str, tmp_path: Path) -> None:
    arrays = {name: np.load(SAMPLES / sample / f"{file}.npy") for name, file in feeds.items()}
    assert_same(SAMPLES / sample / "model.onnx", level, tmp_path, feeds=arrays)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_light_models(path: Path, level: str, tmp_path: Path) -> None:
    assert_same(path, level, tmp_path)


#: What one number on the other side of a rounding step changes in the end; see test_real_models.
ROUNDED_ON_THE_WAY = {"text2tashkeel.bilstm.int8": 0.1, "text2tashkeel.rawi_v3.int8": 0.05}


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("entry", fetch.load_list(), ids=lambda entry: entry["name"])
def test_real_models(entry: dict[str, str], level: str, tmp_path: Path) -> None:
    feeds = dict(np.load(BENCHMARKS / "feeds" / f"{entry['name']}.npz"))
    within = ROUNDED_ON_THE_WAY.get(entry["name"], 1e-5)
    assert_same(fetch.fetch(entry), level, tmp_path, feeds=feeds, within=within)
