"""The time that no engine gets below on this machine: what it can multiply and read, and what a model needs of both.

The bound is max(2 · MACs / peak, bytes / bandwidth). MACs are those that `onnxeval inspect --cost` counts, bytes those
of weights, inputs and outputs, each read or written once. ``python benchmarks/bounds.py THREADS`` measures the peak and
the bandwidth.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxeval.checks.recording import Record, Recorded

#: Rows and columns of the matrices that are multiplied.
SQUARE = 1024
#: Bytes that are read again and again: what fits into caches is read faster.
SIZES = tuple(2**20 * 4**step for step in range(5))
_SECONDS = 1.0
#: Operators that multiply integers; besides, those whose factors both come from DequantizeLinear.
_OF_INTEGERS = frozenset(
    (
        "ConvInteger",
        "DynamicQuantizeLSTM",
        "DynamicQuantizeMatMul",
        "MatMulInteger",
        "MatMulInteger16",
        "MatMulIntegerToFloat",
        "QGemm",
        "QLinearConv",
        "QLinearMatMul",
    )
)


def bound(work: Mapping[str, Any], peaks: Mapping[str, Any]) -> float:
    """The seconds that this work takes at these speeds.

    The bandwidth is that of the largest measured size which is no larger than what is read.
    """
    arithmetic = sum(2 * work[kind] / peaks[kind] for kind in ("float32", "int8"))
    speeds = {int(size): speed for size, speed in peaks["bandwidth"].items()}
    fitting = max((size for size in speeds if size <= work["bytes"]), default=min(speeds))
    return max(arithmetic, work["bytes"] / speeds[fitting])


def measure(threads: int) -> dict[str, Any]:
    """What so many threads do on this machine in a second, in a process of its own.

    ``float32`` and ``int8``: operations of a product of 1,024-square matrices, two for each MAC; ``bandwidth``: bytes
    read of arrays of so many bytes.
    """
    from onnxeval.threads import environment

    command = [sys.executable, __file__, str(threads)]
    setting = {**os.environ, **environment(threads), "ONNXEVAL_NUM_THREADS": str(threads)}
    done = subprocess.run(command, stdout=subprocess.PIPE, env=setting, text=True, check=True)
    peaks: dict[str, Any] = json.loads(done.stdout)
    return peaks


def _fastest(run: Callable[[], object]) -> float:
    """The seconds of the fastest run of those that fit into a moment, after one that is not measured."""
    run()
    best, end = math.inf, perf_counter() + _SECONDS
    while (begin := perf_counter()) < end:
        run()
        best = min(best, perf_counter() - begin)
    return best


def _multiply(op_type: str, left: type, right: type) -> float:
    """Operations a second of a product of square matrices, by this package."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    import onnxeval

    draw = np.random.default_rng(0)
    a, b = (draw.uniform(0, 100, (SQUARE, SQUARE)).astype(dtype) for dtype in (left, right))
    graph = helper.make_graph(
        [helper.make_node(op_type, ["a", "b"], ["y"])],
        "product",
        [helper.make_tensor_value_info("a", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)],
        [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)],
        [numpy_helper.from_array(b, "b")],
    )
    model = onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    return 2 * SQUARE**3 / _fastest(lambda: model.run({"a": a}))


def _read(size: int, threads: int) -> float:
    """Bytes a second that threads read together, each its own part of an array of this size."""
    import numpy as np

    parts = np.array_split(np.ones(size // 4, np.float32), threads)
    together = threading.Barrier(threads)
    speeds = []

    def read(part: np.ndarray[Any, Any]) -> None:
        together.wait()
        speeds.append(part.nbytes / _fastest(part.max))

    readers = [threading.Thread(target=read, args=(part,)) for part in parts]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    return sum(speeds)


def work_of(model: str | os.PathLike[str], inputs: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """What a model has to do for inputs as `onnxeval bench --format json` lists them.

    ``float32`` and ``int8``: MACs of either kind; ``bytes``; ``unknown``: nodes whose MACs are not known.
    """
    from onnxeval.checks.recording import record
    from onnxeval.inspection.cost import cost_of
    from onnxeval.inspection.summary import summarise
    from onnxeval.loader import load_model

    loaded = load_model(model)
    _declare(loaded.proto.graph.input, {entry["name"]: entry["type"] for entry in inputs})
    recorded = record(loaded)
    makers = {name: r.node.op_type for r in recorded.records for name in r.node.outputs}
    macs = {"float32": 0, "int8": 0}
    nodes = cost_of(recorded).nodes
    for node in nodes:
        macs["int8" if _is_of_integers(node.record, makers) else "float32"] += node.macs or 0
    held = sum(parameters.bytes for parameters in summarise(recorded).parameters)
    return {
        **macs,
        "bytes": held - _left_unread(recorded) + _fed_and_given(recorded),
        "unknown": sum(node.macs is None for node in nodes),
    }


def _declare(declared: Any, types: Mapping[str, str]) -> None:
    """Write the shapes that are fed into the declarations."""
    for value in declared:
        shape = re.search(r"\[([\d, ]*)\]$", types.get(value.name, ""))
        if shape is not None and value.type.HasField("tensor_type"):
            sizes = value.type.tensor_type.shape
            sizes.ClearField("dim")
            for size in re.findall(r"\d+", shape[1]):
                sizes.dim.add().dim_value = int(size)


def _is_of_integers(record: Record, makers: Mapping[str, str]) -> bool:
    factors = [makers.get(name) for name in record.node.inputs[:2]]
    return record.node.op_type in _OF_INTEGERS or factors == ["DequantizeLinear"] * 2


def _left_unread(recorded: Recorded) -> int:
    """The bytes of tables from which Gather takes some rows, those rows left out."""
    from onnxeval.inspection.cost import bytes_of

    held = {tensor.name for tensor in recorded.model.graph.proto.initializer}
    rows: dict[str, int] = {}
    tables: dict[str, int] = {}
    for record in recorded.records:
        for place, name in enumerate(record.node.inputs):
            if name not in held:
                continue
            whole = bytes_of(record.inputs[place]) or 0
            taken = bytes_of(record.outputs[0]) if record.node.op_type == "Gather" and place == 0 else whole
            tables[name] = whole
            rows[name] = rows.get(name, 0) + (whole if taken is None else taken)
    return sum(max(whole - rows[name], 0) for name, whole in tables.items())


def _fed_and_given(recorded: Recorded) -> int:
    from onnxeval.inspection.cost import bytes_of

    graph = recorded.model.graph
    held = {tensor.name for tensor in graph.proto.initializer}  # old files list them among the inputs
    return sum(bytes_of(recorded.values[name]) or 0 for name in (*graph.inputs, *graph.outputs) if name not in held)


def _peaks(threads: int) -> Iterator[tuple[str, Any]]:
    import numpy as np

    yield "float32", _multiply("MatMul", np.float32, np.float32)
    yield "int8", _multiply("MatMulInteger", np.uint8, np.int8)
    yield "bandwidth", {str(size): _read(size, threads) for size in SIZES}


if __name__ == "__main__":
    print(json.dumps(dict(_peaks(int(sys.argv[1])))))
