"""The networks that benchmarks/networks.py makes, and the models of further.json."""

import fetch
import networks
import numpy as np
import onnx
import pytest

import onnxeval

#: One code's difference on the way shows at the end.
ROUNDED_ON_THE_WAY = {"quantized_cnn": 2e-2, "pipecat-ai.smart-turn-v3.2-cpu": 5e-3}


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_networks_are_valid_and_always_the_same(name):
    model, feeds = networks.build(name)
    onnx.checker.check_model(model, full_check=True)
    again, fed = networks.build(name)
    assert again.SerializeToString() == model.SerializeToString()
    assert all(np.array_equal(feeds[key], fed[key]) for key in feeds)
    assert model.ByteSize() < 8e6


def further():
    yield from (pytest.param(lambda n=name: networks.build(n), id=name) for name in networks.NETWORKS)
    for entry in fetch.load_list("further.json"):
        yield pytest.param(lambda e=entry: (onnx.load(fetch.fetch(e)), np.load(fetch.feeds_of(e))), id=entry["name"])


@pytest.mark.slow
@pytest.mark.parametrize("made", list(further()))
def test_results_are_onnxruntimes(made, request):
    ort = pytest.importorskip("onnxruntime")
    model, feeds = made()
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = dict(zip([o.name for o in session.get_outputs()], session.run(None, dict(feeds)), strict=True))
    loaded = onnxeval.load(model)
    apart = ROUNDED_ON_THE_WAY.get(request.node.callspec.id, 1e-3)
    for reference in (False, False, True):  # the second run has a plan for these shapes
        for name, value in loaded.run(dict(feeds), reference=reference).items():
            assert value.shape == wanted[name].shape
            assert np.abs(value - wanted[name]).max() <= apart * np.abs(wanted[name]).max()


def test_files_are_what_is_built(tmp_path):
    path, feeds = networks.write("gru", tmp_path / "new")
    model, fed = networks.build("gru")
    assert path.read_bytes() == model.SerializeToString()
    with np.load(feeds) as stored:
        assert all(np.array_equal(stored[name], fed[name]) for name in fed)
    assert sorted(p.name for p in path.parent.iterdir()) == ["gru.npz", "gru.onnx"]


def test_feeds_of_fetched_models_are_drawn_once_and_for_all(tmp_path):
    entry = {"name": "some", "feeds": {"x": [2, 3]}}
    with np.load(fetch.feeds_of(entry, tmp_path)) as first, np.load(fetch.feeds_of(entry, tmp_path)) as second:
        assert first["x"].shape == (2, 3)
        assert first["x"].dtype == np.float32
        assert np.array_equal(first["x"], second["x"])
    assert [p.name for p in tmp_path.iterdir()] == ["some.npz"]
