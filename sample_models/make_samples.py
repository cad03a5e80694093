"""Make the sample models anew, with their inputs and expected outputs.

    python sample_models/make_samples.py [NAME ...]

Each model gets a folder: `model.onnx`, an input a file (`STEM.npy`), and what each output must be for it
(`STEM.OUTPUT.npy`). What is expected is worked out here in plain Python and NumPy, by no ONNX evaluator. `digits`
trains its network first, which takes half a minute and needs scikit-learn for the pictures.
"""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from digit_network import LARGEST_PIXEL, Network, train
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent

FLOAT, UINT8, INT64, BOOL, STRING = (
    TensorProto.FLOAT,
    TensorProto.UINT8,
    TensorProto.INT64,
    TensorProto.BOOL,
    TensorProto.STRING,
)


def write(folder: Path, model: onnx.ModelProto, cases: dict[str, tuple[np.ndarray, dict[str, np.ndarray]]]) -> None:
    """Save a model and its cases: by stem, the input and the outputs by name."""
    onnx.checker.check_model(model, full_check=True)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.npy"):
        old.unlink()
    (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    for stem, (given, expected) in cases.items():
        np.save(folder / f"{stem}.npy", given, allow_pickle=False)
        for name, value in expected.items():
            np.save(folder / f"{stem}.{name}.npy", value, allow_pickle=False)


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    *,
    name: str,
    doc: str,
    opsets: dict[str, int],
    weights: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(value, key) for key, value in (weights or {}).items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers, doc_string=doc)
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    ir_version = helper.find_min_ir_version_for(imports)
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, producer_name="onnxeval samples")


value = helper.make_tensor_value_info
node = helper.make_node


def picture() -> np.ndarray:
    """Three channels of 32 x 32: a disc before a sky that gets darker, and a ground."""
    rows, columns = np.mgrid[0:32, 0:32]
    sky = np.stack([90 + 2 * rows, 140 + 2 * rows, 250 - 2 * rows])
    ground = np.stack([60 + columns, 110 + columns, 40 + 0 * columns])
    disc = (rows - 10) ** 2 + (columns - 21) ** 2 < 36
    scene = np.where(rows < 24, sky, ground)
    return np.where(disc, np.array([255, 220, 60])[:, None, None], scene).astype(np.uint8)


def depth_to_space(folder: Path, opset: int, mode: str) -> None:
    """The picture cut into blocks of 2 x 2 pixels, each block stacked into channels; the model puts it together."""
    whole = picture()[None]
    batch, channels, height, width = whole.shape
    packed = np.empty((batch, 4 * channels, height // 2, width // 2), np.uint8)
    for channel in range(channels):
        for row in range(2):
            for column in range(2):
                block = 2 * row + column
                place = block * channels + channel if mode == "DCR" else channel * 4 + block
                packed[:, place] = whole[:, channel, row::2, column::2]
    model = model_of(
        [node("DepthToSpace", ["packed"], ["picture"], name="unpack", blocksize=2, mode=mode)],
        [value("packed", UINT8, ["N", 12, "H", "W"])],
        [value("picture", UINT8, ["N", 3, "H2", "W2"])],
        name=f"depth_to_space_{opset}",
        doc=f"A picture from blocks of 2 x 2 pixels in channels ({mode}).",
        opsets={"": opset},
    )
    write(folder, model, {"packed": (packed, {"picture": whole})})


def max_pool(folder: Path) -> None:
    """A kernel of 3 x 3 in steps of 2 with one pixel of padding; the indices tell where each largest value stands."""
    x = np.random.default_rng(12).permutation(64).astype(np.float32).reshape(1, 1, 8, 8)
    largest = np.empty((1, 1, 4, 4), np.float32)
    indices = np.empty((1, 1, 4, 4), np.int64)
    for row in range(4):
        for column in range(4):
            seen = [
                (x[0, 0, i, j], 8 * i + j)
                for i in range(max(2 * row - 1, 0), min(2 * row + 2, 8))
                for j in range(max(2 * column - 1, 0), min(2 * column + 2, 8))
            ]
            largest[0, 0, row, column], indices[0, 0, row, column] = max(seen)
    model = model_of(
        [
            node(
                "MaxPool", ["x"], ["largest", "indices"], name="pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4
            )
        ],
        [value("x", FLOAT, ["N", 1, 8, 8])],
        [value("largest", FLOAT, ["N", 1, 4, 4]), value("indices", INT64, ["N", 1, 4, 4])],
        name="max_pool_12",
        doc="The largest of each 3 x 3 neighbourhood, and where it is.",
        opsets={"": 12},
    )
    write(folder, model, {"x": (x, {"largest": largest, "indices": indices})})


def digits(folder: Path) -> None:
    """A classifier of handwritten digits, trained here; a quarter of the pictures is kept for the test."""
    from sklearn.datasets import load_digits

    data = load_digits()
    pictures, labels = data.images[:, None], data.target
    order = np.random.default_rng(0).permutation(len(pictures))
    train_part, test_part = np.split(order, [len(order) * 3 // 4])
    network = train(pictures[train_part], labels[train_part])
    for name, weight in network.weights.items():
        network.weights[name] = weight.astype(np.float32).astype(np.float64)
    pictures, labels = pictures[test_part].astype(np.float32), labels[test_part].astype(np.int64)
    accuracy = np.mean(network.probabilities(pictures).argmax(axis=1) == labels)
    print(f"digits: {accuracy:.2%} of {len(labels)} test pictures are right")
    chosen = {f"digit_{digit}": pictures[[np.flatnonzero(labels == digit)[0]]] for digit in range(10)}
    cases = {stem: (given, digit_outputs(network, given)) for stem, given in chosen.items()}
    write(folder, digit_model(network), cases)
    (folder / "test_set").mkdir(exist_ok=True)
    np.save(folder / "test_set" / "pictures.npy", pictures.astype(np.uint8))
    np.save(folder / "test_set" / "labels.npy", labels.astype(np.uint8))


def digit_outputs(network: Network, pictures: np.ndarray) -> dict[str, np.ndarray]:
    probabilities = network.probabilities(pictures.astype(np.float64))
    return {"class": probabilities.argmax(axis=1), "probabilities": probabilities.astype(np.float32)}


def digit_model(network: Network) -> onnx.ModelProto:
    conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    return model_of(
        [
            node("Div", ["picture", "largest_pixel"], ["scaled"], name="scale"),
            node("Conv", ["scaled", "conv1_w", "conv1_b"], ["edges"], name="conv1", **conv),
            node("Relu", ["edges"], ["edges_on"], name="relu1"),
            node("MaxPool", ["edges_on"], ["edges_pooled"], name="pool1", **pool),
            node("Conv", ["edges_pooled", "conv2_w", "conv2_b"], ["strokes"], name="conv2", **conv),
            node("Relu", ["strokes"], ["strokes_on"], name="relu2"),
            node("MaxPool", ["strokes_on"], ["strokes_pooled"], name="pool2", **pool),
            node("Flatten", ["strokes_pooled"], ["features"], name="flatten"),
            node("Gemm", ["features", "dense_w", "dense_b"], ["scores"], name="dense"),
            node("Softmax", ["scores"], ["probabilities"], name="softmax", axis=1),
            node("ArgMax", ["scores"], ["class"], name="decide", axis=1, keepdims=0),
        ],
        [value("picture", FLOAT, ["N", 1, 8, 8])],
        [value("class", INT64, ["N"]), value("probabilities", FLOAT, ["N", 10])],
        name="digits",
        doc="Handwritten digits: pictures of 8 x 8 pixels from 0 (paper) to 16 (ink).",
        opsets={"": 21},
        weights={
            "largest_pixel": np.array(LARGEST_PIXEL, np.float32),
            **{name: weight.astype(np.float32) for name, weight in network.weights.items()},
        },
    )


def collatz(folder: Path) -> None:
    """Halve what is even, triple what is odd and add one, until it is 1: a Loop whose body decides with an If."""
    even = helper.make_graph(
        [node("Div", ["n", "two"], ["half"], name="halve")], "even", [], [value("half", INT64, [])]
    )
    odd_nodes = [
        node("Mul", ["n", "three"], ["tripled"], name="triple"),
        node("Add", ["tripled", "one"], ["more"], name="add"),
    ]
    odd = helper.make_graph(odd_nodes, "odd", [], [value("more", INT64, [])])
    body = helper.make_graph(
        [
            node("Mod", ["n", "two"], ["rest"], name="mod"),
            node("Equal", ["rest", "zero"], ["is_even"], name="is_even"),
            node("If", ["is_even"], ["next"], name="step", then_branch=even, else_branch=odd),
            node("Equal", ["next", "one"], ["is_one"], name="is_one"),
            node("Not", ["is_one"], ["go_on_next"], name="go_on"),
            node("Add", ["count", "one"], ["count_next"], name="count"),
            node("Identity", ["next"], ["visited"], name="visit"),
        ],
        "body",
        [value("i", INT64, []), value("go_on", BOOL, []), value("n", INT64, []), value("count", INT64, [])],
        [
            value("go_on_next", BOOL, []),
            value("next", INT64, []),
            value("count_next", INT64, []),
            value("visited", INT64, []),
        ],
    )
    model = model_of(
        [
            node("Equal", ["start", "one"], ["is_done"], name="is_done"),
            node("Not", ["is_done"], ["begin"], name="begin"),
            node("Loop", ["", "begin", "start", "zero"], ["last", "steps", "path"], name="loop", body=body),
        ],
        [value("start", INT64, [])],
        [value("steps", INT64, []), value("path", INT64, ["STEPS"])],
        name="collatz",
        doc="How many steps the 3n + 1 walk takes to 1, and where it goes.",
        opsets={"": 21},
        weights={name: np.array(n, np.int64) for name, n in (("zero", 0), ("one", 1), ("two", 2), ("three", 3))},
    )
    cases = {}
    for start in (1, 6, 27):
        path, n = [], start
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            path.append(n)
        expected = {"steps": np.array(len(path), np.int64), "path": np.array(path, np.int64)}
        cases[f"start_{start}"] = (np.array(start, np.int64), expected)
    write(folder, model, cases)


REQUESTS = (
    "GET  /index.html",
    "post /api/v1/login",
    "Delete /api/v12/users/7 please",
    "PATCH /api/vX/users",
    "get /Straße/übersicht",
)
METHODS = {"get": 0, "post": 1, "put": 2, "delete": 3}
API = r"/api/v[0-9]+(/\w+)*"


def requests(folder: Path) -> None:
    """Lines of a web server's log: lower case, words, the method's number, and whether the path is one of the API."""
    model = model_of(
        [
            node("StringNormalizer", ["lines"], ["lower"], name="lower", case_change_action="LOWER"),
            node("StringSplit", ["lower"], ["words", "word_count"], name="split"),
            node("Gather", ["words", "zero"], ["method"], name="first", axis=1),
            node("Gather", ["words", "one"], ["path"], name="second", axis=1),
            node(
                "LabelEncoder",
                ["method"],
                ["method_number"],
                name="number",
                domain="ai.onnx.ml",
                keys_strings=list(METHODS),
                values_int64s=list(METHODS.values()),
                default_int64=-1,
            ),
            node("RegexFullMatch", ["path"], ["is_api"], name="match", pattern=API),
            node("StringConcat", ["method", "colon"], ["method_colon"], name="join"),
            node("StringConcat", ["method_colon", "path"], ["route"], name="join_path"),
        ],
        [value("lines", STRING, ["N"])],
        [
            value("words", STRING, ["N", "WORDS"]),
            value("word_count", INT64, ["N"]),
            value("method_number", INT64, ["N"]),
            value("is_api", BOOL, ["N"]),
            value("route", STRING, ["N"]),
        ],
        name="requests",
        doc="What a line of a web server's log asks for.",
        opsets={"": 21, "ai.onnx.ml": 5},
        weights={
            "zero": np.array(0, np.int64),
            "one": np.array(1, np.int64),
            "colon": np.array(":", object),
        },
    )
    words = [line.lower().split() for line in REQUESTS]
    most = max(map(len, words))
    expected = {
        "words": np.array([[*line, *[""] * (most - len(line))] for line in words]),
        "word_count": np.array([len(line) for line in words], np.int64),
        "method_number": np.array([METHODS.get(line[0], -1) for line in words], np.int64),
        "is_api": np.array([re.fullmatch(API, line[1], re.ASCII) is not None for line in words]),
        "route": np.array([f"{line[0]}:{line[1]}" for line in words]),
    }
    write(folder, model, {"lines": (np.array(REQUESTS), expected)})


SAMPLES: dict[str, Callable[[Path], None]] = {
    "depth_to_space_13": lambda folder: depth_to_space(folder, 13, "DCR"),
    "depth_to_space_28": lambda folder: depth_to_space(folder, 28, "CRD"),
    "max_pool_12": max_pool,
    "digits": digits,
    "collatz": collatz,
    "requests": requests,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*SAMPLES, []], help=f"one of {', '.join(SAMPLES)}")
    parser.add_argument("--to", type=Path, default=HERE, metavar="DIR", help="where the folders go (default: here)")
    options = parser.parse_args()
    for name in options.names or SAMPLES:
        SAMPLES[name](options.to / name)


if __name__ == "__main__":
    main()
