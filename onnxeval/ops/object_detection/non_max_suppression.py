"""NonMaxSuppression: the best boxes of each class that do not overlap too much.

Versions 10 and 11 mean the same; 11 spelled out that an overlap equal to the threshold is no reason.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._scalar import scalar
from onnxeval.registry import op
from onnxeval.values import shape_text

#: So many boxes are compared with those kept before at a time.
_BLOCK = 64


@op("NonMaxSuppression", versions=(10, 11))
def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Tensor | None,
    iou_threshold: Tensor | None,
    score_threshold: Tensor | None,
    *,
    center_point_box: int,
) -> Tensor:
    """(B, S, 4), (B, C, S) -> int64 (selected, 3): batch, class and box, of each class the best box first.

    A box is two opposite corners y1, x1, y2, x2, or x, y of its centre, width and height with ``center_point_box``. It
    is left out where its score does not exceed ``score_threshold`` or is not a number, and where its area in common
    with a box selected before, over the area of both, exceeds ``iou_threshold``. Of equal scores the first goes first.

    Raises ValueError where shapes do not fit and where a threshold or the number of boxes is out of range.
    Source: NonMaxSuppression-11.
    """
    if center_point_box not in (0, 1):
        raise ValueError(f"center_point_box {center_point_box} is neither 0 nor 1")
    if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape != (scores.shape[0], scores.shape[2], 4):
        shapes = f"{shape_text(boxes.shape)} and {shape_text(scores.shape)}"
        raise ValueError(f"boxes and scores have shapes {shapes}, expected [B, S, 4] and [B, C, S]")
    most = (
        0
        if max_output_boxes_per_class is None
        else scalar(max_output_boxes_per_class, name="max_output_boxes_per_class")
    )
    overlap = 0.0 if iou_threshold is None else scalar(iou_threshold, name="iou_threshold")
    if most < 0 or not 0 <= overlap <= 1:
        raise ValueError(f"max_output_boxes_per_class {most} is negative or iou_threshold {overlap} outside [0, 1]")
    wanted = ~np.isnan(scores) if score_threshold is None else scores > scalar(score_threshold, name="score_threshold")
    low, high = _corners(boxes.astype(np.float64), center_point_box)
    selected = []
    for batch, category in np.ndindex(scores.shape[:2]):
        (candidates,) = np.nonzero(wanted[batch, category])
        best_first = candidates[_descending(scores[batch, category, candidates])]
        corners = low[batch][:, best_first], high[batch][:, best_first]
        selected += [(batch, category, best_first[place]) for place in _select(*corners, most, overlap)]
    return np.array(selected, np.int64).reshape(-1, 3)


def _descending(scores: Tensor) -> Tensor:
    """The places of the scores from the greatest down, of equal ones the first first."""
    order = np.argsort(-scores)
    ordered = scores[order]
    return np.argsort(-scores, kind="stable") if (ordered[1:] == ordered[:-1]).any() else order


def _select(low: Tensor, high: Tensor, most: int, overlap: float) -> list[int]:
    """Which of the boxes to keep, the best of which comes first.

    They are looked at a block at a time: those that the boxes kept before leave, then the block among itself.
    """
    kept: list[int] = []
    for start in range(0, low.shape[1] if most else 0, _BLOCK):
        left = np.arange(start, min(start + _BLOCK, low.shape[1]))
        if kept:
            left = left[(_overlaps(low, high, np.array(kept), left) <= overlap).all(axis=0)]
        clashes = np.packbits(~(_overlaps(low, high, left, left) <= overlap), axis=1, bitorder="little")
        gone = 0  # a bit for each box of the block
        for place, (box, others) in enumerate(zip(left.tolist(), clashes, strict=True)):
            if not gone >> place & 1:
                kept.append(box)
                if len(kept) == most:
                    return kept
                gone |= int.from_bytes(others.tobytes(), "little")
    return kept


def _corners(boxes: Tensor, center_point_box: int) -> tuple[Tensor, Tensor]:
    """The lower and the upper corners of boxes in either format, (B, S, 4) -> (B, 2, S)."""
    first, second = (np.ascontiguousarray(half.swapaxes(1, 2)) for half in (boxes[..., :2], boxes[..., 2:]))
    if center_point_box:
        first, second = first - second / 2, first + second / 2
    return np.minimum(first, second), np.maximum(first, second)


def _overlaps(low: Tensor, high: Tensor, these: Tensor, others: Tensor) -> Tensor:
    """Intersection over union of these boxes with others, (these, others); 0 where both are empty."""
    one, other = these[:, np.newaxis], others
    sides = np.minimum(high[:, one], high[:, np.newaxis, other]) - np.maximum(low[:, one], low[:, np.newaxis, other])
    intersection = np.maximum(sides[0], 0) * np.maximum(sides[1], 0)
    areas = [(high[0, box] - low[0, box]) * (high[1, box] - low[1, box]) for box in (one, other)]
    union = areas[0] + areas[1] - intersection
    overlaps: Tensor = np.divide(intersection, union, out=np.zeros_like(union), where=union > 0)
    return overlaps
