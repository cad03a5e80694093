"""QEmbedLayerNormalization against what its integers stand for."""

import numpy as np
import pytest
from ops.contrib.codes import BYTES, F32, draw, real, scale
from ops.contrib.nodes import assert_agree, ours

import onnxeval

BATCH, STEPS, HIDDEN = 2, 4, 6
SCALES = [0.02, 0.03, 0.01, 0.04, 0.05]


def node(dtype=np.uint8, segments=True, mask=True):
    random = np.random.default_rng(0)

    def ids(below):
        return random.integers(0, below, (BATCH, STEPS)).astype(np.int32)

    words, of_segments, seen = ids(9), ids(2), ids(2)
    shapes = [(9, HIDDEN), (7, HIDDEN), (2, HIDDEN), (HIDDEN,), (HIDDEN,)]
    tables = [draw(shape, dtype, seed) for seed, shape in enumerate(shapes)]
    scales = [scale(each) for each in SCALES]
    zeros = [np.array(each, dtype) for each in (3, 0, 9, 120, 7)]
    if not segments:
        of_segments = tables[2] = scales[2] = zeros[2] = None
    return [words, of_segments, *tables, seen if mask else None, *scales, *zeros]


def expected(inputs, epsilon=1e-12):
    words, of_segments, *tables = inputs[:7]
    word, position, segment, gamma, beta = (
        None if table is None else real(table, inputs[8 + place], inputs[13 + place])
        for place, table in enumerate(tables)
    )
    total = word[words] + position[:STEPS]
    if segment is not None:
        total = total + segment[of_segments]
    deviation = total - total.mean(axis=-1, keepdims=True)
    return deviation / np.sqrt((deviation**2).mean(axis=-1, keepdims=True) + epsilon) * gamma + beta


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("epsilon", [None, 0.5])
def test_formula(dtype, segments, mask, epsilon) -> None:
    inputs = node(dtype, segments, mask)
    y, ones = ours("QEmbedLayerNormalization", inputs, outputs=2, epsilon=epsilon)
    assert y.dtype == F32
    np.testing.assert_allclose(y, expected(inputs, epsilon or 1e-12), rtol=1e-4, atol=1e-4)
    assert ones.dtype == np.int32
    assert ones.tolist() == (inputs[7].sum(axis=1).tolist() if mask else [0, 0])
    assert_agree("QEmbedLayerNormalization", inputs, outputs=2, epsilon=epsilon, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, np.full((BATCH, STEPS), 9, np.int32), "ids 9 to 9 leave the 9 rows of word_embedding"),
        (0, np.full((BATCH, STEPS), -1, np.int32), "ids -1 to -1 leave"),
        (0, np.zeros((BATCH, 8), np.int32), "ids 0 to 7 leave the 7 rows of position_embedding"),
        (0, np.zeros(STEPS, np.int32), "expected .B, S. and .words, H."),
        (1, None, "some of segment_ids"),
        (10, None, "some of segment_ids"),
        (8, np.ones(2, F32), "word_embedding_scale must be a scalar"),
        (5, draw((5,), np.uint8), "gamma"),
    ],
)
def test_refusals(place, value, message) -> None:
    inputs = node(mask=False)
    inputs[place] = value
    with pytest.raises(onnxeval.NodeError, match=message):
        ours("QEmbedLayerNormalization", inputs, outputs=2)
