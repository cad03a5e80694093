"""Networks rewritten by optimisers give what they gave before."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from exporters.comparing import assert_matches, run
from exporters.networks import NETWORKS, drawn

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

NAMES = pytest.mark.parametrize("name", NETWORKS)


def before(name: str) -> tuple[onnx.ModelProto, np.ndarray, np.ndarray]:
    build, shape = NETWORKS[name]
    x = drawn(shape, 99)
    return build(), x, run(build(), [x])[0]


@NAMES
@pytest.mark.parametrize("level", ["BASIC", "EXTENDED", "LAYOUT", "ALL"])
def test_by_onnxruntime(tmp_path: Path, name: str, level: str) -> None:
    """What a session writes with ``optimized_model_filepath``: com.microsoft's fused and NCHWc operators."""
    ort = pytest.importorskip("onnxruntime")
    model, x, wanted = before(name)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = getattr(
        levels, "ORT_ENABLE_LAYOUT" if level == "LAYOUT" else f"ORT_ENABLE_{level}"
    )
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert_matches(session.run(None, {"x": x})[0], wanted, 1e-4, 1e-5)
    assert_matches(run(tmp_path / "optimised.onnx", [x])[0], wanted, 1e-4, 1e-5)


def test_by_the_transformer_optimiser_of_onnxruntime(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("sympy")
    optimizer = pytest.importorskip("onnxruntime.transformers.optimizer")
    model, x, wanted = before("transformer")
    onnx.save(model, tmp_path / "model.onnx")
    optimised = optimizer.optimize_model(
        str(tmp_path / "model.onnx"), model_type="bert", num_heads=4, hidden_size=16, opt_level=0
    )
    optimised.save_model_to_file(str(tmp_path / "optimised.onnx"))
    assert {node.op_type for node in optimised.model.graph.node} & {"SkipLayerNormalization", "BiasGelu", "Attention"}
    assert_matches(run(tmp_path / "optimised.onnx", [x])[0], wanted, 1e-4, 1e-5)


@NAMES
def test_by_onnxslim(name: str) -> None:
    onnxslim = pytest.importorskip("onnxslim")
    model, x, wanted = before(name)
    assert_matches(run(onnxslim.slim(model), [x])[0], wanted, 1e-4, 1e-5)


@NAMES
def test_by_onnxsim(name: str) -> None:
    onnxsim = pytest.importorskip("onnxsim")
    model, x, wanted = before(name)
    simplified, same = onnxsim.simplify(model)
    assert same
    assert_matches(run(simplified, [x])[0], wanted, 1e-4, 1e-5)


@NAMES
@pytest.mark.parametrize("kind", ["float16", "mixed"])
def test_by_conversion_to_half_precision(name: str, kind: str) -> None:
    half = pytest.importorskip("onnxruntime.transformers.float16")
    model, x, wanted = before(name)
    blocked = ["Softmax", "LSTM", "GRU"] if kind == "mixed" else None
    converted = half.convert_float_to_float16(model, keep_io_types=True, op_block_list=blocked)
    assert_matches(run(converted, [x])[0], wanted, 1e-2, 5e-3)
