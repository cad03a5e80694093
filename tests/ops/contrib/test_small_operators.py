"""Small operators of com.microsoft: formulas, loops, and onnxruntime where it has a kernel."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(22)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def whole(*numbers):
    return np.array(numbers, np.int32)


# Distances and inverses


def rows(function):
    return lambda a, b: np.array([[function(x, y) for y in b] for x in a])


METRICS = {
    "euclidean": rows(math.dist),
    "sqeuclidean": rows(lambda x, y: math.dist(x, y) ** 2),
    "cityblock": rows(lambda x, y: sum(abs(x - y))),
    "chebyshev": rows(lambda x, y: max(abs(x - y))),
    "braycurtis": rows(lambda x, y: sum(abs(x - y)) / sum(abs(x + y))),
    "cosine": rows(lambda x, y: 1 - x @ y / math.sqrt((x @ x) * (y @ y))),
    "correlation": rows(lambda x, y: 1 - np.corrcoef(x, y)[0, 1]),
    "hamming": rows(lambda x, y: np.mean([p != q for p, q in zip(x, y, strict=True)])),
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cdist(metric, dtype) -> None:
    a, b = np.rint(normal(5, 4) * 2).astype(dtype) + 0.5, np.rint(normal(3, 4) * 2).astype(dtype) + 0.5
    y = ours("CDist", [a, b], metric=metric)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, METRICS[metric](a.astype(float), b.astype(float)), rtol=1e-4, atol=1e-5)
    if "euclidean" in metric:
        assert_agree("CDist", [a, b], metric=metric, rtol=1e-4, atol=1e-4)


def test_cdist_defaults_and_faults() -> None:
    a, b = normal(5, 4), normal(3, 4)
    np.testing.assert_array_equal(ours("CDist", [a, b]), ours("CDist", [a, b], metric="sqeuclidean"))
    for inputs, metric, message in (
        ([a, b], "mahalanobis", "metric 'mahalanobis' is none of"),
        ([a, b[:, :3]], "euclidean", r"shapes \[5, 4\] and \[3, 3\]"),
    ):
        with pytest.raises(NodeError, match=message):
            ours("CDist", inputs, metric=metric)


def test_inverse() -> None:
    x = normal(2, 3, 3) + 3 * np.eye(3, dtype=np.float32)
    for dtype, eps in ((np.float32, 1e-5), (np.float64, 1e-12), (np.float16, 1e-2)):
        y = ours("Inverse", [x.astype(dtype)])
        assert y.dtype == dtype
        np.testing.assert_allclose(x.astype(dtype).astype(float) @ y, np.broadcast_to(np.eye(3), x.shape), atol=eps)
    assert_agree("Inverse", [x], rtol=1e-4, atol=1e-5)
    with pytest.raises(NodeError, match="a matrix of the input has no inverse"):
        ours("Inverse", [np.zeros((2, 2), np.float32)])


# Sequences of tokens


@pytest.mark.parametrize("n", [1, 2, 3, 12, 13])
def test_ngram_repeat_block(n) -> None:
    ids, scores = RNG.integers(0, 4, (5, 12)), normal(5, 6)
    expected = scores.copy()
    for b in range(5):
        seen = [tuple(ids[b, i : i + n]) for i in range(12 - n + 1)]
        for token in range(6):
            if (*ids[b, 12 - n + 1 :], token) in seen and n <= 12:
                expected[b, token] = -np.inf
    np.testing.assert_array_equal(ours("NGramRepeatBlock", [ids, scores], ngram_size=n), expected)
    assert_agree("NGramRepeatBlock", [ids, scores], ngram_size=n)


def test_ngram_repeat_block_faults() -> None:
    ids, scores = np.array([[7, 7]]), normal(1, 6)
    with pytest.raises(NodeError, match="tokens 7 to 7 leave the 6 scores"):
        ours("NGramRepeatBlock", [ids, scores], ngram_size=1)
    with pytest.raises(NodeError, match="ngram_size 0 is not positive"):
        ours("NGramRepeatBlock", [ids, scores], ngram_size=0)


def cheapest(costs):
    """The least sum of all ways, tried out."""

    def ways(i, j):
        if (i, j) == (0, 0):
            return costs[0, 0]
        before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        return costs[i, j] + min(ways(*place) for place in before if min(place) >= 0)

    return ways(costs.shape[0] - 1, costs.shape[1] - 1)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (1, 5), (5, 1), (1, 1), (5, 5)])
def test_dynamic_time_warping(shape) -> None:
    costs = RNG.integers(0, 9, shape).astype(np.float32)
    i, j = ours("DynamicTimeWarping", [costs])
    assert (i[0], j[0], i[-1], j[-1]) == (0, 0, shape[0] - 1, shape[1] - 1)
    assert set(zip(np.diff(i).tolist(), np.diff(j).tolist(), strict=True)) <= {(0, 1), (1, 0), (1, 1)}
    assert costs[i, j].sum() == cheapest(costs)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (1, 5), (5, 1), (20, 30)])
def test_dynamic_time_warping_breaks_ties_as_onnxruntime(shape) -> None:
    for costs in (normal(*shape), np.zeros(shape, np.float32), RNG.integers(0, 3, (1, *shape)).astype(np.float32)):
        assert_agree("DynamicTimeWarping", [costs])
    with pytest.raises(NodeError, match=r"the costs have shape \[2, 3, 4\]"):
        ours("DynamicTimeWarping", [normal(2, 3, 4)])


@pytest.mark.parametrize(("dim", "size", "step"), [(0, 2, 1), (1, 3, 2), (-1, 1, 1), (2, 4, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, ml_dtypes.bfloat16, object])
def test_unfold_tensor(dim, size, step, dtype) -> None:
    x = np.arange(120).reshape(4, 5, 6).astype(str if dtype is object else dtype).astype(dtype)
    axis = dim % 3
    starts = range(0, x.shape[axis] - size + 1, step)
    expected = np.stack([np.stack([x.take(s + i, axis=axis) for i in range(size)], axis=-1) for s in starts], axis=axis)
    y = ours("UnfoldTensor", [x], dim=dim, size=size, step=step)
    assert y.tolist() == expected.tolist()
    if dtype == np.float32:
        assert_agree("UnfoldTensor", [x], dim=dim, size=size, step=step)


def test_unfold_tensor_faults() -> None:
    with pytest.raises(NodeError, match="size 7 and step 1 do not fit 6 elements on axis 2"):
        ours("UnfoldTensor", [normal(4, 5, 6)], size=7)


# Fourier transforms and complex numbers


@pytest.mark.parametrize("signal_ndim", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_rfft_and_back(signal_ndim, dtype) -> None:
    x = normal(3, 4, 8).astype(dtype)
    axes = tuple(range(3 - signal_ndim, 3))
    sizes = [x.shape[axis] for axis in axes]
    expected = np.zeros((*x.shape[:2], 5), complex)
    wide = x.astype(float)
    for place in np.ndindex(expected.shape):
        for there in itertools.product(*map(range, sizes)):
            lead = place[: 3 - signal_ndim]
            turns = sum(p * t / n for p, t, n in zip(place[3 - signal_ndim :], there, sizes, strict=True))
            expected[place] += wide[(*lead, *there)] * np.exp(-2j * np.pi * turns)
    y = ours("Rfft", [x], signal_ndim=signal_ndim)
    assert y.dtype == dtype
    eps = {np.float32: 1e-5, np.float64: 1e-12, np.float16: 2e-2}[dtype]
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1].astype(float), expected, rtol=eps, atol=eps)
    np.testing.assert_allclose(ours("Irfft", [y], signal_ndim=signal_ndim), x, rtol=eps, atol=eps)


def test_rfft_faults() -> None:
    for op_type, how, message in (
        ("Rfft", {"normalized": 1}, "normalized 1 and onesided 1"),
        ("Rfft", {"onesided": 0}, "normalized 0 and onesided 0"),
        ("Rfft", {"signal_ndim": 3}, "signal_ndim 3 does not fit"),
        ("Irfft", {"signal_ndim": 1}, r"complex numbers have shape \[2, 8\]"),
    ):
        with pytest.raises(NodeError, match=message):
            ours(op_type, [normal(2, 8)], **how)


def test_products_of_complex_numbers() -> None:
    a, b = normal(3, 1, 2), normal(4, 2)
    one, other = a[..., 0] + 1j * a[..., 1].astype(float), b[..., 0] + 1j * b[..., 1].astype(float)
    for op_type, expected in (("ComplexMul", one * other), ("ComplexMulConj", one * other.conj())):
        y = ours(op_type, [a, b])
        assert y.dtype == np.float32
        np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], expected, rtol=1e-5, atol=1e-6)


# Dropout, sums and softmax


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_dropout_outside_training(dtype) -> None:
    data, bias, residual = (normal(*shape).astype(dtype) for shape in ((2, 33), (33,), (2, 33)))
    total = data.astype(float) + bias.astype(float)
    eps = float(ml_dtypes.finfo(dtype).eps)
    for op_type, inputs, expected in (
        ("BiasDropout", [data, bias, residual], total + residual.astype(float)),
        ("BiasDropout", [data, data], data.astype(float) * 2),
        ("BitmaskBiasDropout", [data, bias], total),
        ("BitmaskDropout", [data], data.astype(float)),
        ("BitmaskDropout", [data, np.array(0.5, np.float32), np.array(False)], data.astype(float)),
    ):
        y, mask = ours(op_type, inputs, outputs=2)
        np.testing.assert_allclose(y.astype(float), expected, rtol=eps, atol=1e-6)
        assert y.dtype == dtype
        if op_type == "BiasDropout":
            assert mask.dtype == np.bool_
            assert mask.all()
        else:
            assert mask.tolist() == [2**32 - 1] * 3


def test_dropout_in_training_drops_what_its_bits_say() -> None:
    data, residual = np.ones((5, 40), np.float32), normal(5, 40)
    training = [np.array(0.25, np.float32), np.array(True)]
    y, mask = ours("BitmaskBiasDropout", [data, data, residual, *training], outputs=2, seed=3)
    bits = np.array([int(mask[i // 32]) >> i % 32 & 1 for i in range(200)]).reshape(5, 40)
    assert 0.5 < bits.mean() < 0.95
    np.testing.assert_allclose(y, bits * 2 / 0.75 + residual, rtol=1e-5, atol=1e-6)


def test_bias_add_and_softmax() -> None:
    x, bias, skip = normal(2, 3, 4), normal(4), normal(2, 3, 4)
    np.testing.assert_allclose(ours("BiasAdd", [x, bias, skip]), x + bias + skip, rtol=1e-6)
    data, mask = normal(2, 3, 4, 5), normal(2, 1, 1, 5)
    for axis, inner in ((3, 1), (2, 1), (-1, 0)):
        first = axis % 4
        powers = np.exp((data + mask).astype(float)).reshape(*data.shape[:first], -1)
        expected = (powers / powers.sum(axis=-1, keepdims=True)).reshape(data.shape)
        y = ours("BiasSoftmax", [data, mask], axis=axis, is_inner_broadcast=inner)
        np.testing.assert_allclose(y, expected, rtol=1e-5)
    with pytest.raises(NodeError, match=r"the bias does not broadcast from \[3, 3\] to \[2, 3, 4, 5\]"):
        ours("BiasSoftmax", [data, normal(3, 3)], is_inner_broadcast=0)
    with pytest.raises(NodeError, match=r"X, bias and skip have shapes \[2, 3, 4\], \[3\]"):
        ours("BiasAdd", [x, bias[:3], skip])


# Pictures

BOXES = np.array(
    [[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [-0.3, 0.2, 1.4, 0.5], [0.7, 0.8, 0.1, 0.2], [0.5, 0.5, 0.5, 0.5]], np.float32
)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 1), (1, 3), (7, 2)])
@pytest.mark.parametrize("outside", [0.0, 2.5])
def test_crop_and_resize(mode, size, outside) -> None:
    x, of = normal(2, 3, 5, 6), whole(0, 1, 0, 1, 0)
    expected = np.full((5, 3, *size), outside)
    for r, i, j in itertools.product(range(5), range(size[0]), range(size[1])):
        place = []
        for at, low, high, count, extent in ((i, 0, 2, size[0], 5), (j, 1, 3, size[1], 6)):
            first, last = BOXES[r, low], BOXES[r, high]
            if count == 1:
                place.append(0.5 * (first + last) * (extent - 1))
            else:
                step = (last - first) * np.float32(extent - 1) / np.float32(count - 1)
                place.append(first * np.float32(extent - 1) + np.float32(at) * step)
        y, across = map(float, place)
        if not (0 <= y <= 4 and 0 <= across <= 5):
            continue
        picture = x[of[r]].astype(float)
        if mode == "nearest":
            expected[r, :, i, j] = picture[:, math.floor(y + 0.5), math.floor(across + 0.5)]
            continue
        down, over = y - math.floor(y), across - math.floor(across)
        for row, weight in ((math.floor(y), 1 - down), (math.ceil(y), down)):
            for column, share in ((math.floor(across), 1 - over), (math.ceil(across), over)):
                near = 0 if row == math.floor(y) and column == math.floor(across) and weight == share == 1 else None
                expected[r, :, i, j] -= outside * weight * share if near is None else outside
                expected[r, :, i, j] += picture[:, row, column] * weight * share
    inputs = [x, BOXES, of, whole(*size)]
    how = {"mode": mode, "extrapolation_value": outside}
    np.testing.assert_allclose(ours("CropAndResize", inputs, **how), expected, rtol=1e-4, atol=1e-5)
    assert_agree("CropAndResize", inputs, **how, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "attributes", "message"),
    [
        ({2: whole(0, 1, 0, 1, 2)}, {}, "batch_indices 0 to 2 leave the 2 pictures"),
        ({3: whole(0, 3)}, {}, r"crop_size \[0, 3\] is not two positive numbers"),
        ({1: BOXES[:, :3]}, {}, "expected .N, C, H, W., .R, 4. and .R."),
        ({}, {"mode": "cubic"}, "mode 'cubic' is neither"),
    ],
)
def test_crop_and_resize_faults(change, attributes, message) -> None:
    inputs = [normal(2, 3, 5, 6), BOXES, whole(0, 1, 0, 1, 0), whole(3, 4)]
    for place, value in change.items():
        inputs[place] = value
    with pytest.raises(NodeError, match=message):
        ours("CropAndResize", inputs, **attributes)


# What the standard has, too


@pytest.mark.parametrize("upper", [0, 1, None])
@pytest.mark.parametrize("k", [None, 1, -1, 0])
def test_trilu(upper, k) -> None:
    x = normal(2, 3, 4)
    inputs = [x, None if k is None else np.array(k)]
    expected = (np.tril if upper == 0 else np.triu)(x, k or 0)
    np.testing.assert_array_equal(ours("Trilu", inputs, upper=upper), expected)
    assert_agree("Trilu", inputs, upper=upper)


def test_grid_sample_is_that_of_opset_16() -> None:
    x, grid = normal(2, 3, 5, 6), normal(2, 3, 4, 2)
    for how in ({}, {"mode": "bicubic", "padding_mode": "border", "align_corners": 1}, {"mode": "nearest"}):
        expected = ours("GridSample", [x, grid], domain="", opset=16, **how)
        np.testing.assert_array_equal(ours("GridSample", [x, grid], **how), expected)
        assert_agree("GridSample", [x, grid], **how, atol=1e-5)


@pytest.mark.parametrize("axis", range(-3, 3))
def test_expand_dims(axis) -> None:
    x = normal(2, 3)
    np.testing.assert_array_equal(ours("ExpandDims", [x, np.array(axis, np.int32)]), np.expand_dims(x, axis))
    assert_agree("ExpandDims", [x, np.array(axis, np.int32)])


def test_expand_dims_faults() -> None:
    with pytest.raises(NodeError, match="axis 3"):
        ours("ExpandDims", [normal(2, 3), whole(3)])


def test_others_that_repeat_the_standard() -> None:
    data, places = normal(2, 3, 4), whole(0, 1, 1, -1).reshape(2, 2)
    np.testing.assert_array_equal(ours("GatherND", [data, places]), data[[0, 1], [1, -1]])
    assert_agree("GatherND", [data, places])
    np.testing.assert_array_equal(ours("Range", [whole(1).reshape(()), whole(5).reshape(())]), [1, 2, 3, 4])
    floats = [np.array([v], np.float32) for v in (1, 5, 1.5)]
    np.testing.assert_array_equal(ours("Range", floats), [1, 2.5, 4])
    assert_agree("Range", floats)
    numbers = np.array([2, 1, 1, 3, 4, 3], np.float32)
    for given, expected in zip(
        ours("Unique", [numbers], outputs=3), ([2, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]), strict=True
    ):
        np.testing.assert_array_equal(given, expected)
    assert_agree("Unique", [numbers], outputs=3)
    table = normal(4, 2)
    np.testing.assert_array_equal(ours("TorchEmbedding", [table, np.array([[1, 3]])]), table[[[1, 3]]])
    np.testing.assert_array_equal(ours("SampleOp", [table]), table)
    with pytest.raises(NodeError, match="indices 4 to 4 leave the 4 rows"):
        ours("TorchEmbedding", [table, np.array([4])])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad(mode) -> None:
    x = normal(3, 4)
    expected = np.pad(x, ((1, 1), (0, 2)), mode=mode)
    np.testing.assert_array_equal(ours("Pad", [x, np.array([1, 0, 1, 2])], mode=mode), expected)
    assert_agree("Pad", [x, np.array([1, 0, 1, 2])], mode=mode)
    inputs = [x, np.array([[1, -1, 0, 2]]), np.array([2.5], np.float32)]
    assert_agree("Pad", inputs, mode=mode)


def test_is_all_finite() -> None:
    fine, nan, inf = normal(3), np.array([1, np.nan], np.float32), np.array([np.inf], np.float32)
    for inputs, how, expected in (
        ([fine, fine], {}, True),
        ([fine, nan], {}, False),
        ([inf], {}, False),
        ([inf], {"isnan_only": 1}, True),
        ([nan], {"isnan_only": 1}, False),
        ([nan], {"isinf_only": 1}, True),
        ([inf.astype(ml_dtypes.bfloat16)], {"isinf_only": 1}, False),
    ):
        assert ours("IsAllFinite", inputs, **how).item() is expected
    with pytest.raises(NodeError, match="exclude each other"):
        ours("IsAllFinite", [fine], isnan_only=1, isinf_only=1)
