"""Resize and Upsample against the formulas of the text, element by element in double precision."""

import itertools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from onnxeval.errors import ResourceLimitError
from onnxeval.ops.tensor.resize import resize, resize_by_scales, upsample, upsample_attribute, upsample_picture

RNG = np.random.default_rng(11)
MODES = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
]
PLAIN = {
    "mode": "nearest",
    "nearest_mode": "round_prefer_floor",
    "coordinate_transformation_mode": "half_pixel",
    "cubic_coeff_a": -0.75,
    "exclude_outside": 0,
    "extrapolation_value": 0.0,
    "allocate": np.empty,
}


def resized(x, *, scales=None, sizes=None, roi=None, **attributes):
    scales = None if scales is None else np.array(scales, np.float32)
    sizes = None if sizes is None else np.array(sizes, np.int64)
    roi = None if roi is None else np.array(roi, np.float32)
    return resize(x, roi, scales, sizes, **{**PLAIN, **attributes})


def original(mode, x, length_original, length_resized, count, scale, roi):
    """x_original, with the names of the text; ``count`` is the whole part of ``length_resized``."""
    start, end = roi
    match mode:
        case "half_pixel":
            return (x + Fraction(1, 2)) / scale - Fraction(1, 2)
        case "half_pixel_symmetric":
            adjustment = count / length_resized
            return Fraction(length_original, 2) * (1 - adjustment) + (x + Fraction(1, 2)) / scale - Fraction(1, 2)
        case "pytorch_half_pixel":
            return (x + Fraction(1, 2)) / scale - Fraction(1, 2) if count > 1 else 0
        case "align_corners":
            return x * (length_original - 1) / (length_resized - 1) if count > 1 else 0
        case "asymmetric":
            return x / scale
        case "tf_half_pixel_for_nn":
            return (x + Fraction(1, 2)) / scale
    if count == 1:
        return (start + end) / 2 * (length_original - 1)
    return start * (length_original - 1) + x * (end - start) * (length_original - 1) / (length_resized - 1)


ROUND = {
    "round_prefer_floor": lambda x: math.ceil(x - Fraction(1, 2)),
    "round_prefer_ceil": lambda x: math.floor(x + Fraction(1, 2)),
    "floor": math.floor,
    "ceil": math.ceil,
}


def weight(mode, a, distance):
    d = abs(distance)
    if mode == "linear":
        return max(0, 1 - d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0


def looped(x, targets, *, antialias=0, roi=None, **given):
    """``targets``: for each axis (length_resized, scale) as fractions."""
    options = {**PLAIN, **given}
    mode, transform = options["mode"], options["coordinate_transformation_mode"]
    rois = [(Fraction(0), Fraction(1))] * x.ndim if roi is None else [tuple(map(Fraction, r)) for r in roi]
    shape = tuple(math.floor(length) for length, _ in targets)
    output = np.empty(shape)
    for place in np.ndindex(shape):
        parts, outside = [], False
        for axis, at in enumerate(place):
            size, (length, scale) = x.shape[axis], targets[axis]
            c = original(transform, Fraction(at), size, length, shape[axis], scale, rois[axis])
            outside |= transform == "tf_crop_and_resize" and not 0 <= c <= size - 1
            if mode == "nearest":
                parts.append([(min(max(ROUND[options["nearest_mode"]](c), 0), size - 1), 1.0)])
                continue
            shrink = min(scale, 1) if antialias else 1
            reach = math.ceil(2 / shrink) + 1
            taps = [
                (t, float(weight(mode, options["cubic_coeff_a"], float((t - c) * shrink))))
                for t in range(math.floor(c) - reach, math.floor(c) + reach + 1)
            ]
            if options["exclude_outside"]:
                taps = [(t, w) for t, w in taps if 0 <= t < size]
            total = sum(w for _, w in taps)
            parts.append([(min(max(t, 0), size - 1), w / total) for t, w in taps] if total else [(0, 0.0)])
        value = 0.0
        for combination in itertools.product(*parts):
            factor = math.prod(w for _, w in combination)
            value += factor * float(x[tuple(t for t, _ in combination)]) if factor else 0.0
        output[place] = options["extrapolation_value"] if outside else value
    return output


def by_scale(x, scales):
    return [(size * Fraction(scale), Fraction(scale)) for size, scale in zip(x.shape, scales, strict=True)]


def by_size(x, sizes):
    return [(Fraction(size), Fraction(size, old)) for old, size in zip(x.shape, sizes, strict=True)]


@pytest.mark.parametrize("transform", MODES[:-1])
@pytest.mark.parametrize("nearest_mode", ROUND)
@pytest.mark.parametrize(("shape", "scales"), [((5,), [1.75]), ((8,), [0.375]), ((3, 4), [2.5, 0.75]), ((1,), [3.0])])
def test_nearest(transform, nearest_mode, shape, scales):
    x = RNG.integers(-99, 99, shape)
    options = {"coordinate_transformation_mode": transform, "nearest_mode": nearest_mode}
    assert resized(x, scales=scales, **options).tolist() == looped(x, by_scale(x, scales), **options).tolist()
    sizes = [math.ceil(size * scale) for size, scale in zip(shape, scales, strict=True)]
    assert resized(x, sizes=sizes, **options).tolist() == looped(x, by_size(x, sizes), **options).tolist()


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("transform", MODES[:-1])
@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("exclude_outside", [0, 1])
@pytest.mark.parametrize("scales", [[2.5, 0.75], [0.3125, 1.0], [0.5, 0.5]])
def test_averages(mode, transform, antialias, exclude_outside, scales):
    x = RNG.normal(size=(4, 5))
    options = {
        "mode": mode,
        "coordinate_transformation_mode": transform,
        "antialias": antialias,
        "exclude_outside": exclude_outside,
        "cubic_coeff_a": -0.5,
    }
    np.testing.assert_allclose(
        resized(x, scales=scales, **options), looped(x, by_scale(x, scales), **options), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [[4, 3], [1, 6], [2, 2]])
def test_crops(mode, sizes):
    x = RNG.normal(size=(4, 5))
    roi = [0.25, -0.5, 0.875, 1.25]
    options = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": -7.0}
    wanted = looped(x, by_size(x, sizes), roi=[(0.25, 0.875), (-0.5, 1.25)], **options)
    np.testing.assert_allclose(resized(x, sizes=sizes, roi=roi, **options), wanted, rtol=1e-9, atol=1e-12)
    assert (wanted == -7).any()


def test_the_crop_decides_the_length_that_a_scale_gives():
    x = RNG.normal(size=(4, 6))
    options = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": -9.0}
    got = resized(x, scales=[2, 2], roi=[0.25, 0.5, 0.75, 1.25], **options)
    wanted = looped(
        x, [(Fraction(4), Fraction(2)), (Fraction(9), Fraction(2))], roi=[(0.25, 0.75), (0.5, 1.25)], **options
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-9)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_axes_leave_the_others_alone(mode):
    x = RNG.normal(size=(3, 4, 2))
    got = resized(x, scales=[2.0, 0.5], axes=(-1, 0), mode=mode, antialias=1)
    wanted = looped(x, by_scale(x, [0.5, 1.0, 2.0]), mode=mode, antialias=1)
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "roi": [0.5, 0.5]}
    assert resized(x, sizes=[2], axes=(1,), mode="linear", **crop).shape == (3, 2, 2)


@pytest.mark.parametrize(
    ("policy", "shape", "sizes", "wanted"),
    [
        ("stretch", (3, 2), [100, 3], (100, 3)),
        ("not_larger", (3, 2), [100, 3], (5, 3)),  # 3 * 1.5 = 4.5
        ("not_smaller", (3, 2), [4, 3], (5, 3)),
        ("not_larger", (3, 5), [7, 8], (5, 8)),
        ("not_smaller", (3, 5), [7, 8], (7, 12)),
    ],
)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_aspect_ratio(policy, shape, sizes, wanted, mode):
    x = RNG.normal(size=shape)
    got = resized(x, sizes=sizes, keep_aspect_ratio_policy=policy, mode=mode)
    assert got.shape == wanted
    if policy != "stretch":
        ratio = {"not_larger": min, "not_smaller": max}[policy](map(Fraction, sizes, shape))
        targets = [(Fraction(size), ratio) for size in wanted]
        np.testing.assert_allclose(got, looped(x, targets, mode=mode), rtol=1e-9)


def test_a_third_is_meant_though_no_float32_is_one():
    """1 / float32(1/3) is 2.9999999, and float32(0.3) is above 3/10."""
    x = np.arange(9)
    options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    assert resized(x, scales=[1 / 3], **options).tolist() == [0, 3, 6]
    assert resized(np.arange(20), scales=[0.3], nearest_mode="round_prefer_ceil").tolist() == [1, 5, 8, 11, 15, 18]
    assert resized(np.arange(10), scales=[1.3]).shape == (13,)


def test_integers_are_cut_and_stay_within_their_type():
    x = np.array([-100, 0, 127, 127], np.int8)
    cubic = resized(x, scales=[4.0], mode="cubic")
    exact = looped(x, by_scale(x, [4.0]), mode="cubic")
    assert exact.max() > 127
    assert cubic.tolist() == [min(math.trunc(value), 127) for value in exact]
    flat = np.full((5, 7), 201, np.uint8)
    assert np.unique(resized(flat, scales=[1.3, 0.7], mode="cubic", antialias=1)).tolist() == [201]
    negative = resized(
        np.array([0, -3], np.int32), scales=[2.0], mode="linear", coordinate_transformation_mode="asymmetric"
    )
    assert negative.tolist() == [0, -1, -3, -3]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_sixteen_bits_round_once(dtype):
    x = RNG.normal(size=(1, 1, 4, 5)).astype(dtype)
    got = resized(x, sizes=[1, 1, 7, 3], mode="cubic", roi=np.ones(8, np.float32))
    assert got.dtype == dtype
    exact = looped(x.astype(np.float64), by_size(x, [1, 1, 7, 3]), mode="cubic")
    eps = 2.0**-8 if dtype is ml_dtypes.bfloat16 else 2.0**-11
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=eps * 1.01, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.bool_, np.complex64, np.uint64, object])
def test_nearest_copies_any_element(dtype):
    x = (
        np.array(["a", "b"], object)
        if dtype is object
        else np.array([2**64 - 1 if dtype is np.uint64 else 1, 0], dtype)
    )
    got = resized(x, scales=[2.0])
    assert got.dtype == dtype
    assert got.tolist() == [x.tolist()[0]] * 2 + [x.tolist()[1]] * 2
    if dtype in (np.bool_, object):
        with pytest.raises(TypeError, match="has no averages"):
            resized(x, scales=[2.0], mode="linear")


def test_complex_numbers_are_averaged():
    got = resized(
        np.array([0, 2 + 4j], np.complex64), sizes=[3], mode="linear", coordinate_transformation_mode="align_corners"
    )
    assert got.dtype == np.complex64
    assert got.tolist() == [0, 1 + 2j, 2 + 4j]


def test_empty_and_scalar():
    assert resized(np.array(5.0), scales=[]).tolist() == 5
    assert resized(np.zeros((2, 0)), scales=[3.0, 2.0], mode="linear").shape == (6, 0)
    assert resized(np.zeros((2, 3)), sizes=[0, 5]).shape == (0, 5)
    assert resized(np.zeros(1), scales=[0.5]).shape == (0,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scales": [1, 2, 2]}, "scales is"),
        ({"sizes": [2]}, "sizes is"),
        ({"sizes": [2, -1]}, "negative"),
        ({"scales": [1, 1], "sizes": [2, 3]}, "both of scales and sizes"),
        ({"scales": [], "sizes": []}, "neither of scales and sizes"),
        ({"scales": [0, 1]}, "positive"),
        ({"scales": [np.nan, 1]}, "positive"),
        ({"scales": [1, 1], "mode": "area"}, "mode 'area'"),
        ({"scales": [1, 1], "nearest_mode": "round"}, "nearest_mode 'round'"),
        ({"scales": [1, 1], "coordinate_transformation_mode": "pixel"}, "'pixel'"),
        ({"sizes": [1, 1], "keep_aspect_ratio_policy": "keep"}, "'keep'"),
        ({"scales": [1, 1], "coordinate_transformation_mode": "tf_crop_and_resize"}, "needs roi"),
        ({"scales": [1, 1], "coordinate_transformation_mode": "tf_crop_and_resize", "roi": [0, 1]}, "roi is"),
        ({"scales": [1, 1], "axes": (0, -2)}, "twice"),
    ],
)
def test_errors(given, message):
    with pytest.raises(ValueError, match=message):
        resized(np.zeros((2, 3)), **given)


def test_nothing_to_sample():
    with pytest.raises(ValueError, match="no elements"):
        resized(np.zeros((2, 0)), sizes=[2, 1])


def test_the_size_is_refused_before_anything_is_made():
    def refuse(shape, dtype):
        raise ResourceLimitError(f"{shape}")

    for mode in ("nearest", "linear"):
        with pytest.raises(ResourceLimitError):
            resized(np.zeros(4), sizes=[2**40], mode=mode, allocate=refuse)


# Before version 11


def test_resize_10():
    x = np.array([[[[1, 2, 3, 4], [5, 6, 7, 8]]]], np.float32)
    scales = np.array([1, 1, 0.6, 0.6], np.float32)
    assert resize_by_scales(x, scales, mode="nearest", allocate=np.empty).tolist() == [[[[1, 3]]]]
    np.testing.assert_allclose(resize_by_scales(x, scales, mode="linear", allocate=np.empty), [[[[1, 2.6666667]]]])
    with pytest.raises(ValueError, match="mode 'cubic'"):
        resize_by_scales(x, scales, mode="cubic", allocate=np.empty)
    with pytest.raises(ValueError, match="3 elements for 4 axes"):
        resize_by_scales(x, scales[1:], mode="nearest", allocate=np.empty)


def test_upsample():
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    wanted = np.repeat(np.repeat(x, 2, 2), 3, 3)
    scales = np.array([1, 1, 2, 3], np.float32)
    assert upsample(x, scales, mode="nearest", allocate=np.empty).tolist() == wanted.tolist()
    attribute = upsample_attribute(x, scales=(1.0, 1.0, 2.0, 3.0), mode="nearest", allocate=np.empty)
    assert attribute.tolist() == wanted.tolist()
    picture = upsample_picture(x, height_scale=2.0, width_scale=3.0, mode="nearest", allocate=np.empty)
    assert picture.tolist() == wanted.tolist()
    linear = upsample_picture(x, height_scale=2.0, width_scale=2.0, mode="bilinear", allocate=np.empty)
    asymmetric = {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}
    assert linear.tolist() == looped(x, by_scale(x, [1, 1, 2, 2]), **asymmetric).tolist()


def test_upsample_refuses():
    with pytest.raises(ValueError, match="below 1"):
        upsample(np.zeros(4), np.array([0.5], np.float32), mode="nearest", allocate=np.empty)
    with pytest.raises(ValueError, match="rank 3"):
        upsample_picture(np.zeros((1, 2, 3)), height_scale=1.0, width_scale=1.0, mode="nearest", allocate=np.empty)
    with pytest.raises(ValueError, match="mode 'linear'"):
        upsample_picture(np.zeros((1, 1, 2, 3)), height_scale=1.0, width_scale=1.0, mode="linear", allocate=np.empty)
