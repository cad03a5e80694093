"""Many modes of an operator, each held against onnxruntime where onnxruntime runs it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from ops.contrib.codes import assert_one_apart
from ops.contrib.nodes import assert_agree, feeds_of, node_model, ours

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Sweep:
    """Counts what was compared. A mode that onnxruntime refuses is run here alone; most must be compared."""

    def __init__(self) -> None:
        self.compared: list[str] = []
        self.refused: list[str] = []

    def agree(self, op_type: str, inputs: list, **how) -> None:
        in_bfloat16 = any(x is not None and x.dtype == BFLOAT16 for x in inputs)
        self._hold(assert_agree_in_bfloat16 if in_bfloat16 else assert_agree, op_type, inputs, how)

    def one_apart(self, op_type: str, inputs: list, **how) -> None:
        self._hold(assert_one_apart, op_type, inputs, how)

    def _hold(self, compare: Callable, op_type: str, inputs: list, how: dict) -> None:
        ort = pytest.importorskip("onnxruntime")
        faults = tuple(
            kind for kind in vars(ort.capi.onnxruntime_pybind11_state).values() if _is_exception_of_onnxruntime(kind)
        )
        while inputs[-1] is None:
            inputs = inputs[:-1]
        mode = f"{op_type} {[x if x is None else (x.dtype.name, x.shape) for x in inputs]} {how}"
        try:
            compare(op_type, inputs, **how)
            self.compared.append(mode)
        except faults as error:
            self.refused.append(f"{mode}: {error}")
            ours(op_type, inputs, **{name: value for name, value in how.items() if name not in ("rtol", "atol")})
        except AssertionError as error:
            error.add_note(mode)
            raise


def assert_agree_in_bfloat16(op_type: str, inputs: list, *, rtol: float, atol: float, **how) -> None:
    """As `assert_agree`. onnxruntime takes no bfloat16 from outside: casts stand around the node."""
    ort = pytest.importorskip("onnxruntime")
    given = ours(op_type, inputs, **how)
    given = given if isinstance(given, list) else [given]
    model = node_model(op_type, inputs, **how)
    graph, (node,) = model.graph, model.graph.node
    narrow = {value.name for value in graph.input if value.type.tensor_type.elem_type == TensorProto.BFLOAT16}
    for value in graph.input:
        if value.name in narrow:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    node.input[:] = [f"{name}_narrow" if name in narrow else name for name in node.input]
    casts = [helper.make_node("Cast", [name], [f"{name}_narrow"], to=TensorProto.BFLOAT16) for name in narrow]
    graph.node.extend(casts)
    wide = [output.name for output, y in zip(graph.output, given, strict=True) if y.dtype == BFLOAT16]
    for output in graph.output:
        if output.name in wide:
            graph.node.append(helper.make_node("Cast", [output.name], [f"{output.name}_wide"], to=TensorProto.FLOAT))
            output.name += "_wide"
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = feeds_of(inputs, how.get("constants", ()))
    wanted = session.run(None, {n: x.astype(np.float32) if x.dtype == BFLOAT16 else x for n, x in feeds.items()})
    for our, their in zip(given, wanted, strict=True):
        assert our.shape == their.shape
        np.testing.assert_allclose(our.astype(np.float64), their.astype(np.float64), rtol=rtol, atol=atol)


def _is_exception_of_onnxruntime(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__.startswith("onnxruntime")


@contextmanager
def sweeping() -> Iterator[Sweep]:
    sweep = Sweep()
    yield sweep
    assert len(sweep.compared) > len(sweep.refused), sweep.refused[0] if sweep.refused else "nothing was compared"


def varied(inputs: list, *optional: int) -> Iterator[list]:
    """The inputs as they are, without each of the optional ones, and without all of them."""
    yield inputs
    for left_out in (*((place,) for place in optional), optional):
        yield [None if place in left_out else x for place, x in enumerate(inputs)]


def rounded(dtype: np.dtype, steps: float = 4) -> dict[str, float]:
    """Tolerances of so many rounding steps of a type."""
    eps = float(ml_dtypes.finfo(dtype).eps)
    return {"rtol": max(steps * eps, 1e-5), "atol": max(steps * eps, 1e-5)}
