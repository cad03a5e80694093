"""What loading and running takes: the peak of a process of its own, as the kernel counts it.

Mapped pages of a file count as soon as they are touched. They could be given back while copies are made, so each model
also runs where the process may have little memory of its own: mapped files do not count there, copies do.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads what Linux tells of a process"),
]

MB = 2**20
#: Loads and runs a model; prints the peak before and after in bytes, and the sum of the output.
SCRIPT = """
import json, resource, sys
import numpy as np, onnxeval.model, onnxeval.ops.math.matmul, onnxeval.ops.tensor.gather

def peak():
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("VmHWM"))

path, own, feeds = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
before = peak()
if own:
    taken = next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (taken + own, taken + own))
model = onnxeval.model.load(path)
y = model.run({name: np.array(value, model.inputs[0].dtype) for name, value in feeds.items()})["y"]
print(json.dumps({"before": before, "peak": peak(), "sum": float(y.sum())}))
"""


def measured(path: Path, feeds: dict, own: int = 0) -> dict[str, float]:
    """``own`` is how much memory of its own the process may take for loading and running; 0 is no bound."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), str(own), json.dumps(feeds)],
        capture_output=True,
        text=True,
        env={"OPENBLAS_NUM_THREADS": "1", "PATH": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def chain(layers: int, width: int) -> ModelProto:
    """y = (((x W0) W1) ...), without the weights."""
    nodes = " ".join(f"{'y' if i + 1 == layers else f'x{i + 1}'} = MatMul (x{i}, w{i})" for i in range(layers))
    return onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[1, {width}] x0) => (float[1, {width}] y) {{ {nodes} }}'
    )


def weight(place: int, width: int) -> TensorProto:
    return TensorProto(name=f"w{place}", data_type=TensorProto.FLOAT, dims=[width, width])


def outside(model: ModelProto, folder: Path, layers: int, width: int) -> Path:
    """A model with weights of zeros, but for ones on the first row, in one file beside it."""
    size = 4 * width * width
    with open(folder / "weights", "wb") as file:
        file.truncate(layers * size)
        for place in range(layers):
            file.seek(place * size)
            file.write(np.ones(width, np.float32).tobytes())
            tensor = model.graph.initializer.add()
            tensor.CopyFrom(weight(place, width))
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in {"location": "weights", "offset": place * size, "length": size}.items():
                tensor.external_data.add(key=key, value=str(value))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def inside(model: ModelProto, folder: Path, layers: int, width: int) -> Path:
    """The same with the weights in the model, written as further parts of its graph."""
    raw = TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number << 3 | 2
    initializer = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number << 3 | 2
    graph = ModelProto.DESCRIPTOR.fields_by_name["graph"].number << 3 | 2
    size = 4 * width * width
    path = folder / "model.onnx"
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
        for place in range(layers):
            head = weight(place, width).SerializeToString() + varint(raw) + varint(size)
            tensor = varint(initializer) + varint(len(head) + size)
            file.write(varint(graph) + varint(len(tensor) + len(head) + size) + tensor + head)
            file.write(np.ones(width, np.float32).tobytes())
            file.seek(size - 4 * width, 1)
        file.truncate()
    return path


WIDTH = 4096
LAYER = 4 * WIDTH * WIDTH
X = [[2.0] + [0.0] * (WIDTH - 1)]  # every layer gives its only other row: twos


def test_a_gigabyte_of_external_data_is_in_memory_once(tmp_path: Path) -> None:
    path = outside(chain(16, WIDTH), tmp_path, 16, WIDTH)
    data = 16 * LAYER
    assert data == 1024 * MB
    got = measured(path, {"x0": X})
    assert got["sum"] == 2 * WIDTH
    assert data < got["peak"] < 1.3 * data
    assert measured(path, {"x0": X}, own=64 * MB)["sum"] == 2 * WIDTH


def test_weights_inside_a_model_are_in_memory_once(tmp_path: Path) -> None:
    path = inside(chain(8, WIDTH), tmp_path, 8, WIDTH)
    data = 8 * LAYER
    assert data == 512 * MB
    got = measured(path, {"x0": X})
    assert got["sum"] == 2 * WIDTH
    assert data < got["peak"] < 1.3 * data
    assert measured(path, {"x0": X}, own=data + 64 * MB)["sum"] == 2 * WIDTH


def test_data_that_a_run_does_not_touch_takes_no_memory(tmp_path: Path) -> None:
    """Three rows of a table of a gigabyte."""
    rows = 2**18
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (int64[N] i) => (float[N, 1024] y) { y = Gather (w0, i) }'
    )
    with open(tmp_path / "weights", "wb") as file:
        file.write(np.ones(1024, np.float32).tobytes())
        file.truncate(rows * 4096)
    tensor = model.graph.initializer.add(name="w0", data_type=TensorProto.FLOAT, dims=[rows, 1024])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    got = measured(path, {"i": [0, rows - 1, rows // 2]})
    assert got["sum"] == 1024
    assert got["peak"] - got["before"] < 16 * MB


def test_weights_that_are_stored_narrow_stay_narrow(tmp_path: Path) -> None:
    """A gigabyte of int8 behind DequantizeLinear would be four of float32 if all of it was widened beforehand."""
    layers, width = 256, 2048
    data = layers * width * width
    nodes = " ".join(
        f"d{i} = DequantizeLinear (w{i}, one) {'y' if i + 1 == layers else f'x{i + 1}'} = MatMul (x{i}, d{i})"
        for i in range(layers)
    )
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[1, {width}] x0) => (float[1, {width}] y) '
        f"<float one = {{1}}> {{ {nodes} }}"
    )
    with open(tmp_path / "weights", "wb") as file:
        file.truncate(data)
        for place in range(layers):
            file.seek(place * width * width)
            file.write(bytes([1]) * width)
            tensor = model.graph.initializer.add(name=f"w{place}", data_type=TensorProto.INT8, dims=[width, width])
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="weights")
            tensor.external_data.add(key="offset", value=str(place * width * width))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    got = measured(path, {"x0": [[2.0] + [0.0] * (width - 1)]})
    assert got["sum"] == 2 * width
    assert data < got["peak"] < 1.3 * data
