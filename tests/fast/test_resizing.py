"""Resize axis by axis: at one with the readable kernels in every mode, to the last bit where elements are copied."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.alike import MOVED, compare, drawn
from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.tensor._sampling import COORDINATES, NEAREST
from onnxeval.ops.tensor.resize import resize, resize_by_scales, upsample

SCALES = [1.0, 1.0, 2.0, 0.5, 1.5, 0.3, 3.0, 2.6]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize(tier, mode, data):
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 7, 20]), min_size=1, max_size=4)))
    dtype = data.draw(st.sampled_from(MOVED)) if mode == "nearest" else np.float32
    x = drawn(data, dtype, shape)
    scales, sizes = None, None
    if data.draw(st.booleans()):
        scales = np.array([data.draw(st.sampled_from(SCALES)) for _ in shape], np.float32)
    else:
        sizes = np.array([data.draw(st.sampled_from([size, 1, 2, 5, 14])) for size in shape], np.int64)
    attributes = {
        "mode": mode,
        "nearest_mode": data.draw(st.sampled_from(sorted(NEAREST))),
        "coordinate_transformation_mode": data.draw(st.sampled_from(sorted(set(COORDINATES) - {"tf_crop_and_resize"}))),
        "cubic_coeff_a": -0.75,
        "exclude_outside": data.draw(st.integers(0, 1)),
        "extrapolation_value": 0.0,
        "antialias": data.draw(st.integers(0, 1)),
        "axes": None,
        "keep_aspect_ratio_policy": data.draw(st.sampled_from(["stretch", "stretch", "not_larger", "not_smaller"])),
    }
    within = None if mode == "nearest" else {"rtol": 1e-5, "atol": 1e-4}
    compare(resize, [x, None, scales, sizes], attributes, within=within, allocate=np.empty)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("readable", [resize_by_scales, upsample])
def test_resize_by_scales_alone(tier, readable, data):
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 7, 20]), min_size=1, max_size=4)))
    mode = data.draw(st.sampled_from(["nearest", "linear"]))
    choice = st.sampled_from(SCALES if readable is resize_by_scales else [1.0, 2.0, 3.0, 1.3])
    scales = [data.draw(choice) for _ in shape]
    within = None if mode == "nearest" else {"rtol": 1e-5, "atol": 1e-4}
    x = drawn(data, np.float32, shape)
    compare(readable, [x, np.array(scales, np.float32)], {"mode": mode}, within=within, allocate=np.empty)


def test_long_rows_are_shared_between_threads(tier, rng):
    x = guarded(rng.standard_normal((1, 3, 50, 60, 70)).astype(np.float32))
    scales = np.array([1, 1, 1.7, 1, 2.5], np.float32)
    compare(resize_by_scales, [x, scales], {"mode": "linear"}, within={"rtol": 1e-5, "atol": 1e-5}, allocate=np.empty)


def test_crops_are_for_the_readable_kernel(kernels):
    attributes = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "cubic_coeff_a": 0.0}
    assert replacement(resize, [None] * 4, attributes) is None


def test_what_does_not_fit_is_refused(kernels):
    x, places, weights = np.zeros((2, 3), np.float32), np.zeros((1, 4), np.int32), np.zeros((1, 4), np.float32)
    with pytest.raises(ValueError, match="do not fit"):
        kernels.resample(x, np.zeros((2, 3), np.float32), places, weights, 1)
    with pytest.raises(IndexError):
        kernels.resample(x, np.zeros((2, 4), np.float32), places + 3, weights, 1)
