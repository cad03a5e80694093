"""Models written with onnxscript: functions that call functions, attributes, loops and branches."""

import numpy as np
import pytest

onnxscript = pytest.importorskip("onnxscript")

from exporters.comparing import assert_matches, run  # noqa: E402  # what it needs is there
from onnxscript import FLOAT, INT64, script  # noqa: E402
from onnxscript import opset18 as op  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

LOCAL = onnxscript.values.Opset("this.local", 1)
X = np.array([[-2, 0.5, 3], [1, -1, 0]], np.float32)


@script(LOCAL, default_opset=op)
def swish(x, beta: float = 2.0):
    scale = op.Constant(value_float=beta)
    return x * op.Sigmoid(x * op.CastLike(scale, x))


@script(LOCAL, default_opset=op)
def gated(x, y, beta: float):
    return swish(x, beta=beta) * y


@script(default_opset=op)
def functions(x: FLOAT["N", 3]) -> FLOAT["N", 3]:  # noqa: F821  # a symbolic size
    return gated(swish(x), x, beta=0.5)


@script(default_opset=op)
def powers(x: FLOAT["N", 3], n: INT64) -> FLOAT["N", 3]:  # noqa: F821  # a symbolic size
    result = op.CastLike(op.ConstantOfShape(op.Shape(x)), x) + 1.0
    for _ in range(n):
        result = result * x
    return result


@script(default_opset=op)
def collatz(n: INT64) -> INT64:
    steps = op.Constant(value_int=0)
    unfinished = n > 1
    while unfinished:
        if op.Mod(n, 2) == 0:
            following = n / 2
        else:
            following = 3 * n + 1
        n = following
        steps = steps + 1
        unfinished = n > 1
    return steps


def test_functions_call_functions_with_attributes() -> None:
    def exact(x: np.ndarray, beta: float) -> np.ndarray:
        return x / (1 + np.exp(-beta * x))

    proto = functions.to_model_proto()
    assert {function.name for function in proto.functions} == {"swish", "gated"}
    x = X.astype(np.float64)
    assert_matches(run(proto, [X])[0], exact(exact(x, 2), 0.5) * x, 1e-5, 1e-6)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop_with_a_count(n: int) -> None:
    assert_matches(run(powers.to_model_proto(), [X, np.array(n)])[0], X**n, 1e-5, 1e-6)


@pytest.mark.parametrize(("n", "steps"), [(1, 0), (2, 1), (6, 8), (27, 111)])
def test_a_loop_that_ends_on_a_condition_with_a_branch_inside(n: int, steps: int) -> None:
    assert run(collatz.to_model_proto(), [np.array(n)])[0] == steps
