"""Whole networks in float16 and bfloat16: every operator gives the rounded result of its formula, whatever it sums."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from models.half_networks import NETWORKS, Network, drawn
from onnx import helper

import onnxeval

#: What rounding each operator's result may add up to over a network, in units in the last place of its largest output.
#: A sum kept in 16 bits would be off by tens of them. onnxruntime rounds at other places.
ALLOWED = {"float16": 1.5, "bfloat16": 1.5, "float32": 4.0}
ALLOWED_TO_ONNXRUNTIME = 3.0
HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
TYPES = {**HALVES, "float32": np.dtype(np.float32)}


def unit(dtype: np.dtype, values: np.ndarray) -> float:
    """The distance of two neighbours of ``dtype`` at the largest of ``values``."""
    return float(ml_dtypes.finfo(dtype).eps) * 2.0 ** np.floor(np.log2(np.abs(values).max()))


@pytest.fixture(params=NETWORKS.values(), ids=NETWORKS)
def net(request: pytest.FixtureRequest) -> Network:
    return request.param()


@pytest.mark.parametrize("kind", TYPES)
def test_a_network_is_as_exact_as_its_type(net: Network, kind: str) -> None:
    dtype = TYPES[kind]
    x = drawn(*net.shape, seed=7).astype(dtype)
    exact = net.exact(x.astype(np.float64), net.rounded(dtype))
    got = onnxeval.load(net.model(dtype)).run({"x": x})["y"]
    assert got.dtype == dtype
    assert got.shape == exact.shape
    assert np.abs(got.astype(np.float64) - exact).max() <= ALLOWED[kind] * unit(dtype, exact)


@pytest.mark.parametrize("kind", HALVES)
def test_a_network_gives_what_onnxruntime_gives(net: Network, kind: str) -> None:
    """Where onnxruntime has kernels: on a CPU it computes most of float16 in float32."""
    ort = pytest.importorskip("onnxruntime")
    dtype = HALVES[kind]
    model = net.model(dtype)
    try:
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception as error:
        pytest.skip(f"onnxruntime does not run it: {str(error)[:200]}")
    x = drawn(*net.shape, seed=8).astype(dtype)
    (wanted,) = session.run(None, {"x": x})
    got = onnxeval.load(model).run({"x": x})["y"]
    difference = np.abs(got.astype(np.float64) - wanted.astype(np.float64)).max()
    assert difference <= ALLOWED_TO_ONNXRUNTIME * unit(dtype, wanted.astype(np.float64))


def run(op_type: str, dtype: np.dtype, *inputs: np.ndarray, opset: int = 22, **attributes: object) -> np.ndarray:
    names = [f"i{place}" for place in range(len(inputs))]
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    infos = [helper.make_tensor_value_info(name, kind, None) for name in names]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"], **attributes)],
        "g",
        infos,
        [helper.make_tensor_value_info("y", kind, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnxeval.load(onnx.ModelProto.FromString(model.SerializeToString())).run(
        dict(zip(names, (array.astype(dtype) for array in inputs), strict=True))
    )["y"]


@pytest.mark.parametrize("dtype", HALVES.values(), ids=HALVES)
@pytest.mark.parametrize("op_type", ["ReduceMean", "GlobalAveragePool", "MatMul", "ReduceSum", "Gemm", "Conv"])
def test_sums_are_not_kept_in_the_type(op_type: str, dtype: np.dtype) -> None:
    """4096 ones: added one by one they would stop at 2048 in float16 and at 256 in bfloat16."""
    ones = np.ones((1, 1, 4096))
    match op_type:
        case "GlobalAveragePool" | "ReduceMean":
            assert run(op_type, dtype, ones * 3).item() == 3
        case "ReduceSum":
            assert run(op_type, dtype, ones).item() == 4096
        case "Gemm":
            assert run(op_type, dtype, ones[0], ones[0], transB=1).item() == 4096
        case "Conv":
            assert run(op_type, dtype, ones, ones).item() == 4096
        case _:
            assert run(op_type, dtype, ones, ones.reshape(4096, 1)).item() == 4096


@pytest.mark.parametrize("op_type", ["ReduceMean", "GlobalAveragePool", "AveragePool", "LayerNormalization"])
def test_a_sum_may_pass_the_largest_float16_on_its_way(op_type: str) -> None:
    x = np.array([[[64000.0, 32000.0, 64000.0, 32000.0]]])
    dtype = HALVES["float16"]
    if op_type == "LayerNormalization":
        got = run(op_type, dtype, x, np.ones(4), axis=-1)
        assert got.ravel().tolist() == [1, -1, 1, -1]
    elif op_type == "AveragePool":
        assert run(op_type, dtype, x, kernel_shape=[2]).ravel().tolist() == [48000] * 3
    else:
        assert run(op_type, dtype, x).item() == 48000


@pytest.mark.parametrize("dtype", HALVES.values(), ids=HALVES)
def test_softmax_of_large_and_distant_numbers(dtype: np.dtype) -> None:
    got = run("Softmax", dtype, np.array([[30000.0, 30000.0, -30000.0]]))
    assert got.astype(np.float64).tolist() == [[0.5, 0.5, 0]]


def test_float16_overflows_to_infinity_and_no_other_number() -> None:
    dtype = HALVES["float16"]
    assert run("Mul", dtype, np.array([300.0]), np.array([300.0])).tolist() == [np.inf]
    assert run("MatMul", dtype, np.full((1, 4), 200.0), np.full((4, 1), 200.0)).tolist() == [[np.inf]]
    assert run("Mul", HALVES["bfloat16"], np.array([300.0]), np.array([300.0])).astype(float).tolist() == [90112]
