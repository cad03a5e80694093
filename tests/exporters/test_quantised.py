"""Networks quantised by onnxruntime's own tools, against onnxruntime, its optimiser off.

A result is off by what one rounding step more or less makes: far less than what quantising itself changes.
"""

from pathlib import Path

import numpy as np
import onnx
import pytest

ort = pytest.importorskip("onnxruntime")

from exporters.comparing import run  # noqa: E402  # what it needs is there
from exporters.networks import NETWORKS, drawn  # noqa: E402

try:
    from onnxruntime import quantization as tools
except ImportError as error:
    pytest.skip(f"onnxruntime's quantisers are not there: {error}", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

NAMES = pytest.mark.parametrize("name", NETWORKS)


class Samples(tools.CalibrationDataReader):
    def __init__(self, shape: tuple[int, ...]) -> None:
        self.left = [{"x": drawn(shape, seed)} for seed in range(8)]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self.left.pop() if self.left else None


def prepared(name: str, folder: Path) -> tuple[Path, tuple[int, ...]]:
    build, shape = NETWORKS[name]
    path = folder / "float.onnx"
    onnx.save(build(), path)
    return path, shape


def assert_like_onnxruntime(path: Path, float_path: Path, shape: tuple[int, ...], steps: float = 2) -> None:
    """Within ``steps`` of the 255 between the least and the greatest, on average far nearer; and near the float one."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    x = drawn(shape, 99)
    (wanted,) = ort.InferenceSession(path, options).run(None, {"x": x})
    (exact,) = run(float_path, [x])
    (got,) = run(path, [x])
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    step = float(np.ptp(wanted)) / 255
    assert np.abs(got - wanted).max() <= steps * step
    assert np.abs(got - wanted).mean() <= 0.1 * steps * step
    assert np.abs(wanted - exact).mean() <= 16 * step, "the quantised network is of no use"


@NAMES
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize(("activations", "weights"), [("QUInt8", "QInt8"), ("QInt8", "QInt8"), ("QUInt8", "QUInt8")])
def test_static(tmp_path: Path, name: str, form: str, activations: str, weights: str) -> None:
    path, shape = prepared(name, tmp_path)
    tools.quantize_static(
        path,
        tmp_path / "quantised.onnx",
        Samples(shape),
        quant_format=getattr(tools.QuantFormat, form),
        activation_type=getattr(tools.QuantType, activations),
        weight_type=getattr(tools.QuantType, weights),
    )
    assert_like_onnxruntime(tmp_path / "quantised.onnx", path, shape)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_static_by_channel(tmp_path: Path, form: str) -> None:
    path, shape = prepared("convolutional", tmp_path)
    tools.quantize_static(
        path,
        tmp_path / "quantised.onnx",
        Samples(shape),
        quant_format=getattr(tools.QuantFormat, form),
        per_channel=True,
        reduce_range=True,
    )
    assert_like_onnxruntime(tmp_path / "quantised.onnx", path, shape)


@NAMES
@pytest.mark.parametrize("weights", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_dynamic(tmp_path: Path, name: str, weights: str, per_channel: bool) -> None:
    path, shape = prepared(name, tmp_path)
    kinds = ["Conv", "MatMul", "Attention", "LSTM", "Gather", "Transpose", "EmbedLayerNormalization"]
    tools.quantize_dynamic(
        path,
        tmp_path / "quantised.onnx",
        weight_type=getattr(tools.QuantType, weights),
        per_channel=per_channel,
        op_types_to_quantize=[kind for kind in kinds if not (kind == "Conv" and weights == "QInt8")],
    )
    assert_like_onnxruntime(tmp_path / "quantised.onnx", path, shape)


@pytest.mark.parametrize(("activations", "weights"), [("QInt16", "QInt8"), ("QUInt16", "QUInt8"), ("QUInt8", "QInt4")])
def test_sixteen_and_four_bits(tmp_path: Path, activations: str, weights: str) -> None:
    path, shape = prepared("transformer", tmp_path)
    tools.quantize_static(
        path,
        tmp_path / "quantised.onnx",
        Samples(shape),
        quant_format=tools.QuantFormat.QDQ,
        activation_type=getattr(tools.QuantType, activations),
        weight_type=getattr(tools.QuantType, weights),
        op_types_to_quantize=["MatMul"],
        extra_options={"UseQDQContribOps": True},
    )
    assert_like_onnxruntime(tmp_path / "quantised.onnx", path, shape)


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
def test_blocks_in_either_domain(tmp_path: Path, domain: str) -> None:
    """onnxruntime refuses to run what it writes into its own domain; the standard's operators mean the same."""
    path, shape = prepared("transformer", tmp_path)
    written = tmp_path / "quantised.onnx"
    tools.quantize_static(
        path,
        written,
        Samples(shape),
        quant_format=tools.QuantFormat.QDQ,
        op_types_to_quantize=["MatMul"],
        extra_options={"BlockSize": 16, "UseQDQContribOps": bool(domain)},
    )
    model = onnx.load(written)
    blocked = [n for n in model.graph.node if any(a.name == "block_size" for a in n.attribute)]
    assert {node.domain for node in blocked} == {domain}
    for node in model.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            node.domain = ""
    (wanted,) = ort.InferenceSession(model.SerializeToString()).run(None, {"x": drawn(shape, 99)})
    (got,) = run(written, [drawn(shape, 99)])
    assert np.abs(got - wanted).max() <= 2 * float(np.ptp(wanted)) / 255


@pytest.mark.parametrize("block", [16, 32])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("form", ["QOperator", "QDQ"])
def test_four_bit_blocks_of_weights(tmp_path: Path, block: int, symmetric: bool, form: str) -> None:
    blocks = pytest.importorskip("onnxruntime.quantization.matmul_nbits_quantizer")
    path, shape = prepared("transformer", tmp_path)
    model = onnx.version_converter.convert_version(onnx.load(path), 21)  # four bits are of opset 21 and IR version 10
    model.ir_version = 10
    quantiser = blocks.MatMulNBitsQuantizer(
        model, block_size=block, is_symmetric=symmetric, quant_format=getattr(tools.QuantFormat, form)
    )
    quantiser.process()
    quantiser.model.save_model_to_file(str(tmp_path / "quantised.onnx"))
    assert_like_onnxruntime(tmp_path / "quantised.onnx", path, shape)
