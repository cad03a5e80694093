"""Conv and ConvTranspose against loops over every product, written from the texts."""

import random

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.nn import _banded, _correlate
from onnxeval.ops.nn.conv import conv
from onnxeval.ops.nn.conv_transpose import conv_transpose, conv_transpose_1

PLAIN = {"auto_pad": "NOTSET", "dilations": None, "group": 1, "kernel_shape": None, "pads": None, "strides": None}
TRANSPOSED = {**PLAIN, "output_padding": None, "output_shape": None}


def convolved(x, w, b=None, **attributes):
    return conv(x, w, b, allocate=np.empty, **{**PLAIN, **attributes})


def transposed(x, w, b=None, *, kernel=conv_transpose, **attributes):
    return kernel(x, w, b, allocate=np.empty, **{**TRANSPOSED, **attributes})


def looped_conv(x, w, b, strides, dilations, begins, counts, group):
    y = np.zeros((x.shape[0], w.shape[0], *counts), np.float64)
    for n, m, *place in np.ndindex(y.shape):
        first_channel = m // (w.shape[0] // group) * w.shape[1]
        y[(n, m, *place)] = 0 if b is None else b[m]
        for c, *tap in np.ndindex(w.shape[1:]):
            at = [
                p * s + t * d - begin for p, s, t, d, begin in zip(place, strides, tap, dilations, begins, strict=True)
            ]
            if all(0 <= a < size for a, size in zip(at, x.shape[2:], strict=True)):
                y[(n, m, *place)] += float(x[(n, first_channel + c, *at)]) * float(w[(m, c, *tap)])
    return y


def looped_transpose(x, w, b, strides, dilations, begins, sizes, group):
    maps = w.shape[1] * group
    y = np.zeros((x.shape[0], maps, *sizes), np.float64)
    for n, c, *place in np.ndindex(x.shape):
        for m, *tap in np.ndindex(w.shape[1:]):
            at = [
                p * s + t * d - begin for p, s, t, d, begin in zip(place, strides, tap, dilations, begins, strict=True)
            ]
            if all(0 <= a < size for a, size in zip(at, sizes, strict=True)):
                target = c // (x.shape[1] // group) * w.shape[1] + m
                y[(n, target, *at)] += float(x[(n, c, *place)]) * float(w[(c, m, *tap)])
    return y if b is None else y + np.reshape(b, (-1, *(1 for _ in sizes)))


def halves(total, more_at_end):
    return (total // 2, total - total // 2) if more_at_end else (total - total // 2, total // 2)


def some_convs(count=50):
    chance = random.Random(11)
    while count:
        rank, group = chance.choice([1, 2, 2, 3]), chance.choice([1, 1, 2, 3])
        auto_pad = chance.choice(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
        kernel, strides, dilations = ([chance.randint(1, most) for _ in range(rank)] for most in (3, 3, 2))
        sizes = [chance.randint(3, 6) for _ in range(rank)]
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        pads = [chance.randint(0, 2) if auto_pad == "NOTSET" else 0 for _ in range(2 * rank)]
        begins, counts = pads[:rank], []
        for i in range(rank):
            if auto_pad.startswith("SAME"):
                counts.append(-(-sizes[i] // strides[i]))
                missing = max(0, (counts[i] - 1) * strides[i] + extents[i] - sizes[i])
                begins[i] = halves(missing, auto_pad == "SAME_UPPER")[0]
            else:
                counts.append((sizes[i] + pads[i] + pads[rank + i] - extents[i]) // strides[i] + 1)
        if min(counts) < 1:
            continue
        count -= 1
        numbers = np.random.default_rng(count)
        channels, maps = chance.randint(1, 2), chance.randint(1, 2)
        x = numbers.standard_normal((2, channels * group, *sizes)).astype(np.float32)
        w = numbers.standard_normal((maps * group, channels, *kernel)).astype(np.float32)
        b = numbers.standard_normal(maps * group).astype(np.float32) if chance.random() < 0.5 else None
        attributes = {"auto_pad": auto_pad, "strides": strides, "dilations": dilations, "group": group, "pads": pads}
        expected = looped_conv(x, w, b, strides, dilations, begins, counts, group)
        yield pytest.param(x, w, b, attributes, expected, id=f"{rank}d-{group}-{auto_pad}-{count}")


CONVS = list(some_convs())


@pytest.mark.parametrize(("x", "w", "b", "attributes", "expected"), CONVS)
def test_conv(x, w, b, attributes, expected):
    np.testing.assert_allclose(convolved(x, w, b, **attributes), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("x", "w", "b", "attributes", "expected"), CONVS[:15])
def test_conv_in_small_parts(monkeypatch, x, w, b, attributes, expected):
    monkeypatch.setattr(_correlate, "_BLOCK", 8)
    y = convolved(x.astype(np.float64), w.astype(np.float64), b, **attributes)
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)


def some_transposes(count=50):
    chance = random.Random(13)
    while count:
        rank, group = chance.choice([1, 2, 2, 3]), chance.choice([1, 1, 2])
        mode = chance.choice(["pads", "pads", "output_shape", "SAME_UPPER", "SAME_LOWER", "VALID"])
        kernel, strides, dilations = ([chance.randint(1, most) for _ in range(rank)] for most in (3, 3, 2))
        sizes = [chance.randint(1, 4) for _ in range(rank)]
        extra = [chance.randint(0, max(s, d) - 1) for s, d in zip(strides, dilations, strict=True)]
        full = [strides[i] * (sizes[i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1 for i in range(rank)]
        attributes = {"strides": strides, "dilations": dilations, "group": group, "output_padding": extra}
        begins = [0] * rank
        if mode == "pads":
            pads = attributes["pads"] = [chance.randint(0, 1) for _ in range(2 * rank)]
            begins, outputs = pads[:rank], [full[i] - pads[i] - pads[rank + i] for i in range(rank)]
        elif mode == "VALID":
            attributes["auto_pad"], outputs = mode, full
        else:
            auto_pad = attributes["auto_pad"] = (
                chance.choice(["NOTSET", "SAME_UPPER", "SAME_LOWER"]) if mode == "output_shape" else mode
            )
            if mode == "output_shape":
                outputs = attributes["output_shape"] = [max(1, size - chance.randint(-2, 3)) for size in full]
            else:
                outputs = [s * size for s, size in zip(strides, sizes, strict=True)]
            totals = [max(0, size - out) for size, out in zip(full, outputs, strict=True)]
            begins = [halves(total, auto_pad == "SAME_UPPER")[0] for total in totals]
        if min(outputs) < 1:
            continue
        count -= 1
        numbers = np.random.default_rng(count)
        x = numbers.standard_normal((2, 2 * group, *sizes)).astype(np.float32)
        w = numbers.standard_normal((2 * group, chance.randint(1, 2), *kernel)).astype(np.float32)
        b = numbers.standard_normal(w.shape[1] * group).astype(np.float32) if chance.random() < 0.5 else None
        expected = looped_transpose(x, w, b, strides, dilations, begins, outputs, group)
        yield pytest.param(x, w, b, attributes, expected, id=f"{rank}d-{group}-{mode}-{count}")


@pytest.mark.parametrize(("x", "w", "b", "attributes", "expected"), list(some_transposes()))
def test_conv_transpose(x, w, b, attributes, expected):
    np.testing.assert_allclose(transposed(x, w, b, **attributes), expected, rtol=1e-5, atol=1e-5)


def test_conv_transpose_is_the_gradient_of_conv():
    numbers = np.random.default_rng(3)
    x, w = numbers.standard_normal((1, 2, 7, 6)), numbers.standard_normal((3, 2, 3, 2))
    attributes = {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 2, 1]}
    y = convolved(x, w, **attributes)
    upstream = numbers.standard_normal(y.shape)
    back = transposed(upstream, w, output_shape=[7, 6], **{**attributes, "pads": None})
    by_pads = transposed(upstream, w, output_padding=[1, 0], **attributes)
    assert by_pads.shape == back.shape == x.shape
    np.testing.assert_allclose((by_pads * x).sum(), (upstream * y).sum())


THREE = np.array([[[1, 10, 100]]], np.float32)  # with the kernel 1, 2, 3 in steps of 2: 1 2 13 20 130 200 300
ONE_TWO_THREE = np.array([[[1, 2, 3]]], np.float32)


@pytest.mark.parametrize(
    ("kernel", "auto_pad", "first"),
    [
        (conv_transpose, "NOTSET", 2),
        (conv_transpose, "SAME_LOWER", 2),
        (conv_transpose, "SAME_UPPER", 1),
        (conv_transpose_1, "NOTSET", 1),
        (conv_transpose_1, "SAME_LOWER", 1),
        (conv_transpose_1, "SAME_UPPER", 2),
    ],
)
def test_version_11_turns_the_odd_pad_of_output_shape_around(kernel, auto_pad, first):
    y = transposed(THREE, ONE_TWO_THREE, kernel=kernel, strides=[2], output_shape=[6], auto_pad=auto_pad)
    np.testing.assert_array_equal(y[0, 0], [1, 2, 13, 20, 130, 200] if first == 1 else [2, 13, 20, 130, 200, 300])


@pytest.mark.parametrize("kernel", [conv_transpose, conv_transpose_1])
def test_same_upper_takes_the_odd_pad_from_the_end(kernel):
    upper = transposed(THREE, ONE_TWO_THREE, kernel=kernel, strides=[2], auto_pad="SAME_UPPER")
    lower = transposed(THREE, ONE_TWO_THREE, kernel=kernel, strides=[2], auto_pad="SAME_LOWER")
    np.testing.assert_array_equal(upper[0, 0], [1, 2, 13, 20, 130, 200])
    np.testing.assert_array_equal(lower[0, 0], [2, 13, 20, 130, 200, 300])


def test_a_stride_beyond_the_kernel_leaves_zeros_at_the_end():
    for auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        y = transposed(THREE, ONE_TWO_THREE[..., :1], strides=[3], auto_pad=auto_pad)
        np.testing.assert_array_equal(y[0, 0], [1, 0, 0, 10, 0, 0, 100, 0, 0])


def test_output_shape_ignores_pads_and_may_be_larger():
    y = transposed(THREE, ONE_TWO_THREE, strides=[2], output_shape=[9], pads=[1, 1])
    np.testing.assert_array_equal(y[0, 0], [1, 2, 13, 20, 130, 200, 300, 0, 0])
    bias = transposed(THREE, ONE_TWO_THREE, np.array([5], np.float32), strides=[2], output_shape=[9])
    np.testing.assert_array_equal(bias[0, 0], [6, 7, 18, 25, 135, 205, 305, 5, 5])


def test_same_with_dilations_keeps_the_size():
    x = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
    w = np.ones((1, 1, 2), np.float32)
    # taps at o - 1 and o + 2 for SAME_UPPER, at o - 2 and o + 1 for SAME_LOWER
    np.testing.assert_array_equal(convolved(x, w, auto_pad="SAME_UPPER", dilations=[3])[0, 0], [3, 5, 7, 3, 4])
    np.testing.assert_array_equal(convolved(x, w, auto_pad="SAME_LOWER", dilations=[3])[0, 0], [2, 3, 5, 7, 3])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_rounds_once(dtype):
    x, w = np.array([[[1000, 1, -1000]]]).astype(dtype), np.array([[[60, 1 / 8, 60]]]).astype(dtype)
    y = convolved(x, w)
    assert y.dtype == dtype
    assert y[0, 0, 0] == dtype(1 / 8)
    assert transposed(x, w).dtype == dtype


def test_empty_batches_and_no_channels():
    empty = np.empty((0, 2, 4, 4), np.float32)
    assert convolved(empty, np.ones((3, 2, 2, 2), np.float32)).shape == (0, 3, 3, 3)
    assert transposed(empty, np.ones((2, 3, 2, 2), np.float32)).shape == (0, 3, 5, 5)
    b = np.array([1, 2], np.float32)
    y = convolved(np.empty((1, 0, 3), np.float32), np.empty((2, 0, 2), np.float32), b)
    np.testing.assert_array_equal(y, [[[1, 1], [2, 2]]])


def test_a_view_is_as_good_as_an_array():
    numbers = np.random.default_rng(5)
    x, w = numbers.standard_normal((1, 6, 5, 2)).transpose(0, 3, 1, 2), numbers.standard_normal((2, 2, 1, 1))
    np.testing.assert_allclose(convolved(x, w), np.einsum("nchw,mc->nmhw", x, w[..., 0, 0]))
    np.testing.assert_allclose(transposed(x, w), np.einsum("nchw,cm->nmhw", x, w[..., 0, 0]))


X = np.zeros((1, 4, 3, 3), np.float32)
W = np.zeros((2, 4, 2, 2), np.float32)


@pytest.mark.parametrize(
    ("x", "w", "b", "attributes", "message"),
    [
        (X, W[..., 0], None, {}, "the weights have rank 3, the input has rank 4"),
        (X[0, 0], W, None, {}, "the input has rank 2"),
        (X, W[:, :3], None, {"group": 2}, "the input has 4 channels, expected 3 for each of 2 groups"),
        (X, np.zeros((3, 2, 2, 2), np.float32), None, {"group": 2}, "3 feature maps are not a multiple of 2"),
        (X, W, None, {"group": 0}, "group 0 is not positive"),
        (X, W, None, {"kernel_shape": [3, 2]}, r"kernel_shape \[3, 2\] is not the \[2, 2\] of the weights"),
        (X, W, np.zeros(3, np.float32), {}, r"the bias has shape \(3,\), expected \(2,\)"),
        (X, W, None, {"dilations": [3, 1]}, "spatial axis 0 has no window: its size 3 .* the 4 elements"),
        (X, W[..., :0], None, {}, r"kernel_shape \[2, 0\] has a value below 1"),
    ],
)
def test_bad_conv(x, w, b, attributes, message):
    with pytest.raises(ValueError, match=message):
        convolved(x, w, b, **attributes)


@pytest.mark.parametrize(
    ("w", "attributes", "message"),
    [
        (np.zeros((4, 1, 2), np.float32), {}, "the weights have rank 3, the input has rank 4"),
        (np.zeros((3, 1, 2, 2), np.float32), {}, "the weights are for 3 channels, the input has 4"),
        (np.zeros((4, 1, 2, 2), np.float32), {"group": 3}, "4 channels cannot be divided into 3 groups"),
        (
            np.zeros((4, 1, 2, 2), np.float32),
            {"pads": [2, 0, 2, 0]},
            "axis 0 has no output: pads 2 and 2 take all of its 4",
        ),
        (np.zeros((4, 1, 2, 2), np.float32), {"output_shape": [0, 3]}, r"output_shape \[0, 3\] has a value below 1"),
        (np.zeros((4, 1, 2, 2), np.float32), {"output_padding": [0, 1]}, r"output_padding \[0, 1\] is not below"),
        (
            np.zeros((4, 1, 2, 2), np.float32),
            {"output_padding": [-1, 0]},
            r"output_padding \[-1, 0\] has a value below 0",
        ),
    ],
)
def test_bad_conv_transpose(w, attributes, message):
    with pytest.raises(ValueError, match=message):
        transposed(X, w, **attributes)


def test_version_1_does_not_limit_output_padding():
    y = transposed(THREE, ONE_TWO_THREE, kernel=conv_transpose_1, output_padding=[2])
    np.testing.assert_array_equal(y[0, 0], [1, 12, 123, 230, 300, 0, 0])


def test_against_onnxruntime():
    onnxruntime = pytest.importorskip("onnxruntime")
    helper = pytest.importorskip("onnx").helper
    numbers = np.random.default_rng(17)
    x, w = (
        numbers.standard_normal((2, 32, 19, 21)).astype(np.float32),
        numbers.standard_normal((48, 8, 3, 3)).astype(np.float32),
    )
    b = numbers.standard_normal(48).astype(np.float32)
    attributes = {"group": 4, "strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]}
    values = {"x": x, "w": w, "b": b}
    graph = helper.make_graph(
        [helper.make_node("Conv", list(values), ["y"], **attributes)],
        "conv",
        [helper.make_tensor_value_info(name, 1, value.shape) for name, value in values.items()],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(convolved(x, w, b, **attributes), session.run(None, values)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "kernel", "strides", "dilations", "pads"),
    [
        ((2, 5, 7, 7), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
        ((1, 3, 4, 37), (5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
        ((1, 3, 9, 41), (3, 5), (2, 2), (2, 1), (1, 0, 2, 3)),
        ((1, 4, 6, 6), (6, 6), (1, 1), (1, 1), (0, 0, 0, 0)),
        ((1, 2, 5, 40), (1, 2), (1, 3), (1, 1), (0, 0, 0, 0)),
        ((1, 2, 5, 9), (3, 3), (1, 1), (1, 2), (1, 1, 1, 1)),
    ],
)
@pytest.mark.parametrize("block", [1 << 18, 1])
def test_a_channel_a_group(shape, kernel, strides, dilations, pads, block, monkeypatch) -> None:
    monkeypatch.setattr(_banded, "_BLOCK", max(block, 256 * 36))
    draw = np.random.default_rng(4)
    x, w = (draw.standard_normal(s).astype(np.float32) for s in (shape, (shape[1], 1, *kernel)))
    y = convolved(x, w, group=shape[1], strides=strides, dilations=dilations, pads=pads)
    wanted = looped_conv(x, w, None, strides, dilations, pads[:2], y.shape[2:], shape[1])
    np.testing.assert_allclose(y, wanted, atol=1e-4)


def test_an_infinity_stays_in_the_windows_that_see_it() -> None:
    x, w = np.ones((1, 2, 5, 9), np.float32), np.ones((2, 1, 3, 3), np.float32)
    x[0, 1, 2, 4], x[0, 0, 0, 0] = np.inf, np.nan
    with np.errstate(all="ignore"):
        y = convolved(x, w, group=2, pads=(1, 1, 1, 1))
    seen = np.zeros(y.shape, bool)
    seen[0, 1, 1:4, 3:6] = seen[0, 0, :2, :2] = True
    np.testing.assert_array_equal(~np.isfinite(y), seen)
