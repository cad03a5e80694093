"""NonMaxSuppression against a greedy loop over boxes in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from onnxeval.ops.object_detection import non_max_suppression as module
from onnxeval.ops.object_detection.non_max_suppression import non_max_suppression


def suppressed(boxes, scores, most=None, overlap=None, least=None, center_point_box=0):
    optional = (
        None if most is None else np.array([most], np.int64),
        None if overlap is None else np.array([overlap], np.float32),
        None if least is None else np.array([least], np.float32),
    )
    boxes, scores = np.asarray(boxes, np.float32), np.asarray(scores, np.float32)
    return non_max_suppression(boxes, scores, *optional, center_point_box=center_point_box)


def area_over_union(one, other):
    low = [max(a, b) for a, b in zip(one[:2], other[:2], strict=True)]
    high = [min(a, b) for a, b in zip(one[2:], other[2:], strict=True)]
    common = max(0, high[0] - low[0]) * max(0, high[1] - low[1])
    union = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)) - common
    return common / union if union else 0


def corners(box, center_point_box):
    a, b, c, d = (Fraction(float(value)) for value in box)
    if center_point_box:
        a, b, c, d = a - c / 2, b - d / 2, a + c / 2, b + d / 2
    return [min(a, c), min(b, d), max(a, c), max(b, d)]


def looped(boxes, scores, most, overlap, least, center_point_box):
    selected = []
    for b, c in np.ndindex(scores.shape[:2]):
        kept = []
        for box in sorted(range(scores.shape[2]), key=lambda box: -scores[b, c, box]):
            exact = corners(boxes[b, box], center_point_box)
            if len(kept) < most and scores[b, c, box] > least:
                others = [corners(boxes[b, k], center_point_box) for k in kept]
                if all(area_over_union(exact, other) <= Fraction(overlap) for other in others):
                    kept.append(box)
        selected += [[b, c, box] for box in kept]
    return np.array(selected, np.int64).reshape(-1, 3)


@pytest.mark.parametrize("center_point_box", [0, 1])
@pytest.mark.parametrize(
    ("most", "overlap", "least"), [(3, 0.5, 0.2), (100, 0.25, -1.0), (5, 0.0, 0.5), (100, 1.0, 0.0)]
)
def test_non_max_suppression(most, overlap, least, center_point_box):
    numbers = np.random.default_rng(int(most + 10 * overlap))
    boxes = numbers.integers(0, 8, (2, 30, 4)).astype(np.float32)
    scores = (numbers.integers(0, 20, (2, 3, 30)) / 16 - 0.25).astype(np.float32)
    y = suppressed(boxes, scores, most, overlap, least, center_point_box)
    assert y.dtype == np.int64
    np.testing.assert_array_equal(y, looped(boxes, scores, most, overlap, least, center_point_box))


def test_many_blocks_of_boxes(monkeypatch):
    numbers = np.random.default_rng(9)
    boxes = numbers.integers(0, 8, (1, 40, 4)).astype(np.float32)
    scores = numbers.uniform(0, 1, (1, 2, 40)).astype(np.float32)
    whole = suppressed(boxes, scores, 25, 0.25, 0.1)
    monkeypatch.setattr(module, "_BLOCK", 3)
    np.testing.assert_array_equal(suppressed(boxes, scores, 25, 0.25, 0.1), whole)
    np.testing.assert_array_equal(whole, looped(boxes, scores, 25, 0.25, 0.1, 0))


def test_defaults():
    boxes, scores = [[[0, 0, 1, 1], [2, 2, 3, 3]]], [[[0.5, -7]]]
    assert suppressed(boxes, scores).shape == (0, 3)
    np.testing.assert_array_equal(suppressed(boxes, scores, 5), [[0, 0, 0], [0, 0, 1]])
    # the overlap may not exceed 0 by default: touching is no overlap
    np.testing.assert_array_equal(suppressed([[[0, 0, 1, 1], [0, 1, 1, 2]]], scores, 5), [[0, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(suppressed([[[0, 0, 1, 1], [0, 0.9, 1, 2]]], scores, 5), [[0, 0, 0]])


def test_an_overlap_equal_to_the_threshold_is_allowed():
    # 1 of 2 in common: a third
    boxes, scores = [[[0, 0, 1, 3], [0, 1, 1, 4]]], [[[0.9, 0.8]]]
    np.testing.assert_array_equal(suppressed(boxes, scores, 5, 0.5), [[0, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(suppressed(boxes, scores, 5, 0.49), [[0, 0, 0]])


def test_scores_that_are_equal_or_no_numbers():
    boxes = [[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5], [6, 6, 7, 7]]]
    scores = [[[0.5, np.nan, 0.75, 0.5]]]
    np.testing.assert_array_equal(suppressed(boxes, scores, 9)[:, 2], [2, 0, 3])
    np.testing.assert_array_equal(suppressed(boxes, scores, 2)[:, 2], [2, 0])
    np.testing.assert_array_equal(suppressed(boxes, scores, 9, 0.5, 0.5)[:, 2], [2])


def test_empty_boxes_overlap_with_nothing():
    np.testing.assert_array_equal(suppressed(np.zeros((1, 2, 4)), np.ones((1, 1, 2)), 5)[:, 2], [0, 1])


def test_no_boxes():
    assert suppressed(np.zeros((1, 0, 4)), np.ones((1, 2, 0)), 5).shape == (0, 3)


@pytest.mark.parametrize(
    ("boxes", "scores", "arguments", "message"),
    [
        ((1, 2, 4), (1, 1, 3), {}, r"have shapes \[1, 2, 4\] and \[1, 1, 3\], expected \[B, S, 4\]"),
        ((1, 2, 5), (1, 1, 2), {}, r"\[1, 2, 5\]"),
        ((2, 2, 4), (1, 1, 2), {}, r"\[2, 2, 4\]"),
        ((2, 4), (1, 2), {}, r"\[2, 4\]"),
        ((1, 2, 4), (1, 1, 2), {"most": -1}, "max_output_boxes_per_class -1 is negative"),
        ((1, 2, 4), (1, 1, 2), {"overlap": 1.5}, "iou_threshold 1.5 outside"),
        ((1, 2, 4), (1, 1, 2), {"overlap": np.nan}, "iou_threshold nan outside"),
        ((1, 2, 4), (1, 1, 2), {"center_point_box": 2}, "center_point_box 2"),
    ],
)
def test_bad_non_max_suppression(boxes, scores, arguments, message):
    with pytest.raises(ValueError, match=message):
        suppressed(np.zeros(boxes), np.zeros(scores), **arguments)
