"""PyTorch models through both of its exporters: torch.export (dynamo) and TorchScript."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from exporters import torch_modules as modules  # noqa: E402  # it needs torch
from exporters.comparing import assert_matches, run  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

BOTH = pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "torchscript"])


@pytest.fixture(autouse=True)
def repeatable() -> None:
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # a fused operator that TorchScript's exporter does not know


def arrays_of(results: Any) -> list[np.ndarray]:
    several = results if isinstance(results, (tuple, list)) else (results,)
    return [(r.float() if r.dtype == torch.bfloat16 else r).numpy() for r in several]


def assert_exported(
    module: Any,
    folder: Path,
    args: tuple[Any, ...],
    *others: tuple[Any, ...],
    dynamo: bool,
    open_axes: list[dict[int, str]] | None = None,
    tolerances: tuple[float, float] = (1e-4, 1e-5),
    **options: Any,
) -> None:
    """Export for ``args``, run for these and for ``others``, of other sizes along ``open_axes`` of each input."""
    module.eval()
    names = [f"input_{place}" for place in range(len(args))]
    if open_axes is not None and dynamo:
        sizes = {name: torch.export.Dim(name, min=1, max=64) for axes in open_axes for name in axes.values()}
        options["dynamic_shapes"] = tuple({axis: sizes[name] for axis, name in axes.items()} for axes in open_axes)
    elif open_axes is not None:
        options["dynamic_axes"] = dict(zip(names, open_axes, strict=True))
    path = folder / "model.onnx"
    with torch.no_grad():
        torch.onnx.export(module, args, str(path), dynamo=dynamo, input_names=names, **options)
        for given in (args, *others):
            feeds = [tensor.numpy() for tensor in given]
            for got, wanted in zip(run(path, feeds), arrays_of(module(*given)), strict=True):
                assert_matches(got, wanted, *tolerances)


@BOTH
def test_a_convolutional_network(tmp_path: Path, dynamo: bool) -> None:
    x, more = torch.randn(2, 3, 16, 16), torch.randn(5, 3, 16, 16)
    assert_exported(modules.Convolutional(), tmp_path, (x,), (more,), dynamo=dynamo, open_axes=[{0: "batch"}])


@pytest.mark.parametrize("opset", [9, 10, 11, 12, 13, 14, 16, 18, 20])
def test_a_convolutional_network_at_old_opsets(tmp_path: Path, opset: int) -> None:
    x = torch.randn(2, 3, 16, 16)
    resizing = "nearest" if opset < 11 else "bilinear"  # older operators have no half-pixel centres
    assert_exported(modules.Convolutional(resizing), tmp_path, (x,), dynamo=False, opset_version=opset)


@pytest.mark.parametrize("opset", [18, 21, 23, 24])
def test_an_encoder_at_new_opsets(tmp_path: Path, opset: int) -> None:
    words = torch.randint(0, 20, (2, 5))
    mask = torch.arange(5) > torch.tensor([[4], [2]])
    assert_exported(modules.Encoder(), tmp_path, (words, mask), dynamo=True, opset_version=opset)


@BOTH
@pytest.mark.parametrize(
    ("layer", "options"),
    [
        ("LSTM", {}),
        ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
        ("GRU", {"bidirectional": True}),
        ("RNN", {"nonlinearity": "relu"}),
    ],
)
def test_recurrent_networks(tmp_path: Path, dynamo: bool, layer: str, options: dict) -> None:
    module = modules.Recurrent(getattr(torch.nn, layer), **options)
    assert_exported(module, tmp_path, (torch.randn(7, 3, 6),), (torch.randn(7, 3, 6),), dynamo=dynamo)


@BOTH
def test_a_transformer_encoder_with_open_axes(tmp_path: Path, dynamo: bool) -> None:
    given = (torch.randint(0, 20, (2, 5)), torch.arange(5) > torch.tensor([[4], [2]]))
    longer = (torch.randint(0, 20, (3, 9)), torch.arange(9) > torch.tensor([[3], [8], [8]]))
    axes = {0: "batch", 1: "words"} if dynamo else {0: "batch"}  # TorchScript keeps the traced number of words
    if not dynamo:
        longer = tuple(tensor[:, :5] for tensor in longer)
    assert_exported(modules.Encoder(), tmp_path, given, longer, dynamo=dynamo, open_axes=[axes, axes])


@BOTH
def test_causal_attention(tmp_path: Path, dynamo: bool) -> None:
    q, k, v = torch.randn(3, 2, 4, 5, 8)
    assert_exported(modules.Attention(), tmp_path, (q, k, v), dynamo=dynamo)


def test_a_condition_that_the_data_decides(tmp_path: Path) -> None:
    assert_exported(modules.Condition(), tmp_path, (torch.ones(3),), (-torch.ones(3),), dynamo=True)


def test_a_scripted_loop(tmp_path: Path) -> None:
    module = torch.jit.script(modules.Loop())
    given = [(torch.randn(3), torch.tensor(n)) for n in (5, 20, 0)]
    assert_exported(module, tmp_path, *given, dynamo=False)


def test_complex_numbers_and_fourier_transforms(tmp_path: Path) -> None:
    assert_exported(modules.Spectrum(), tmp_path, (torch.randn(2, 64),), dynamo=True, tolerances=(1e-4, 1e-4))


@BOTH
def test_indexing_and_sorting(tmp_path: Path, dynamo: bool) -> None:
    args = (torch.randn(2, 6), torch.tensor([1, 0]))
    assert_exported(modules.Indexing(), tmp_path, args, dynamo=dynamo)


@BOTH
def test_sampling_and_padding(tmp_path: Path, dynamo: bool) -> None:
    args = (torch.randn(1, 4, 5, 5), torch.rand(1, 3, 3, 2) * 2 - 1)
    assert_exported(modules.Sampling(), tmp_path, args, dynamo=dynamo)


@BOTH
@pytest.mark.parametrize(("kind", "tolerance"), [("float16", 2e-3), ("bfloat16", 1.6e-2), ("float64", 1e-7)])
def test_other_precisions(tmp_path: Path, dynamo: bool, kind: str, tolerance: float) -> None:
    """Within two units in the last place of values below 1; epsilon is a float32 attribute even for float64."""
    module = modules.Perceptron().to(getattr(torch, kind))
    x = torch.randn(3, 8).to(getattr(torch, kind))
    path = tmp_path / "model.onnx"
    with torch.no_grad():
        torch.onnx.export(module, (x,), str(path), dynamo=dynamo, opset_version=18 if dynamo else 17)
        wanted = module.double()(x.double()).numpy()
    dtype = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    (got,) = run(path, [x.double().numpy().astype(dtype)])
    assert got.dtype == dtype
    assert_matches(got, wanted, tolerance, tolerance)


@BOTH
@pytest.mark.parametrize("tool", ["onnxslim", "onnxsim", "onnxruntime"])
def test_an_exported_network_that_was_optimised(tmp_path: Path, dynamo: bool, tool: str) -> None:
    optimiser = pytest.importorskip(tool)
    module, x = modules.Convolutional().eval(), torch.randn(2, 3, 16, 16)
    path, optimised = tmp_path / "model.onnx", tmp_path / "optimised.onnx"
    with torch.no_grad():
        torch.onnx.export(module, (x,), str(path), dynamo=dynamo)
        wanted = module(x).numpy()
    if tool == "onnxruntime":
        options = optimiser.SessionOptions()
        options.log_severity_level = 4
        options.optimized_model_filepath = str(optimised)
        optimiser.InferenceSession(path, options)
    else:
        model = optimiser.slim(str(path)) if tool == "onnxslim" else optimiser.simplify(str(path))[0]
        onnx.save(model, optimised)
    assert_matches(run(optimised, [x.numpy()])[0], wanted, 1e-4, 1e-5)


@pytest.mark.parametrize("opset", [9, 10, 11, 12, 13, 14, 15, 17, 19])
@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
def test_recurrent_networks_at_old_opsets(tmp_path: Path, opset: int, layer: str) -> None:
    module = modules.Recurrent(getattr(torch.nn, layer), bidirectional=True)
    assert_exported(module, tmp_path, (torch.randn(7, 3, 6),), dynamo=False, opset_version=opset)


@pytest.mark.parametrize("opset", [14, 15, 17, 20])
def test_indexing_and_attention_at_old_opsets(tmp_path: Path, opset: int) -> None:
    assert_exported(
        modules.Indexing(), tmp_path, (torch.randn(2, 6), torch.tensor([1, 0])), dynamo=False, opset_version=opset
    )
    encoder = (torch.randint(0, 20, (2, 5)), torch.arange(5) > torch.tensor([[4], [2]]))
    assert_exported(modules.Encoder(), tmp_path, encoder, dynamo=False, opset_version=opset)


@pytest.mark.parametrize("options", [{"optimize": False}, {"external_data": True}, {"external_data": False}], ids=str)
def test_an_export_as_functions_or_with_its_weights_outside(tmp_path: Path, options: dict) -> None:
    words = torch.randint(0, 20, (2, 5))
    mask = torch.arange(5) > torch.tensor([[4], [2]])
    assert_exported(modules.Encoder(), tmp_path, (words, mask), dynamo=True, **options)
    assert (tmp_path / "model.onnx.data").exists() == options.get("external_data", True)
