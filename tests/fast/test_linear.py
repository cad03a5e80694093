"""Compiled linear models, scaled and normalised rows: what the readable kernels give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxeval.fast import replacement
from onnxeval.ops.traditionalml.features import normalizer, scaler
from onnxeval.ops.traditionalml.linear import linear_classifier, linear_regressor
from onnxeval.ops.traditionalml.maps import zip_map
from tests.fast.guarded import guarded

TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


def table(data, rng):
    shape = data.draw(st.sampled_from([(1, 1), (3, 4), (5,), (40, 3), (0, 2), (2, 17)]))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.int32, np.int64]))
    return guarded((rng.normal(size=shape) * 3).astype(dtype))


def compare(kernel, attributes, x, **more):
    quick = replacement(kernel, [None], attributes)
    assert quick is not None
    with np.errstate(all="ignore"):
        results = [each(x, **attributes, **more) for each in (quick, kernel)]
    for got, wanted in zip(*(each if isinstance(each, tuple) else (each,) for each in results), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted, rtol=2e-7, atol=1e-12)
        else:
            np.testing.assert_array_equal(got, wanted)


def floats(rng, count):
    return tuple(rng.normal(size=count).astype(np.float32).tolist())


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_linear_classifiers_are_the_readable_ones(threads, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    x = table(data, rng)
    classes, scores = data.draw(st.sampled_from([(1, 1), (2, 1), (2, 2), (5, 5)]))
    labels = tuple(range(10, 10 + classes))
    is_named = data.draw(st.booleans())
    attributes = {
        "coefficients": floats(rng, scores * x.shape[-1]),
        "intercepts": floats(rng, scores) if data.draw(st.booleans()) else None,
        "classlabels_ints": None if is_named else labels,
        "classlabels_strings": tuple(map(str, labels)) if is_named else None,
        "multi_class": 0,
        "post_transform": data.draw(st.sampled_from(TRANSFORMS)),
    }
    compare(linear_classifier, attributes, x, allocate=np.empty)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_linear_regressors_are_the_readable_ones(threads, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    x = table(data, rng)
    targets = data.draw(st.sampled_from([1, 3, 9]))
    attributes = {
        "coefficients": floats(rng, targets * x.shape[-1] + data.draw(st.integers(0, 2))),
        "intercepts": floats(rng, targets) if data.draw(st.booleans()) else None,
        "targets": targets,
        "post_transform": data.draw(st.sampled_from(TRANSFORMS)),
    }
    compare(linear_regressor, attributes, x, allocate=np.empty)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_scalers_and_normalizers_are_the_readable_ones(threads, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    x = table(data, rng)
    if x.dtype.kind == "f":
        x[rng.random(x.shape) < data.draw(st.sampled_from([0, 0.1, 1]))] = data.draw(
            st.sampled_from([0, np.nan, np.inf])
        )
    count = data.draw(st.sampled_from([1, x.shape[-1]]))
    offset, scale = (floats(rng, count) if data.draw(st.booleans()) else None for _ in range(2))
    compare(scaler, {"offset": offset, "scale": scale}, x)
    compare(normalizer, {"norm": data.draw(st.sampled_from(["MAX", "L1", "L2"]))}, x)


def test_large_tables_are_cut_into_parts(threads, rng):
    x = guarded(rng.normal(size=(700, 90)).astype(np.float32))
    compare(scaler, {"offset": floats(rng, 90), "scale": floats(rng, 90)}, x)
    compare(normalizer, {"norm": "L2"}, x)


@pytest.mark.parametrize(
    ("x", "labels"),
    [
        (np.float32([[0.25, 0.5], [1, 2]]), {"classlabels_strings": ("a", "b"), "classlabels_int64s": None}),
        (np.float32([[0.1, 0.2, 0.3]]), {"classlabels_strings": None, "classlabels_int64s": (3, 1, 2)}),
        (np.zeros((0, 1), np.float32), {"classlabels_strings": None, "classlabels_int64s": (3,)}),
        (np.float32([0.1, 0.2]), {"classlabels_strings": None, "classlabels_int64s": (3, 1)}),
    ],
)
def test_maps_are_the_readable_ones(kernels, x, labels):
    got, wanted = replacement(zip_map, [None], labels)(x, **labels), zip_map(x, **labels)
    assert (got, got.element_type) == (wanted, wanted.element_type)
    assert [[type(value) for value in row.values()] for row in got] == [[np.float32] * x.shape[-1]] * len(got)
    with pytest.raises(ValueError, match="columns for"):
        replacement(zip_map, [None], labels)(np.zeros((1, 7), np.float32), **labels)


def test_what_is_wrong_is_left_to_the_readable_kernel(kernels, rng):
    assert replacement(normalizer, [None], {"norm": "L3"}) is None
    assert replacement(scaler, [None], {"offset": (1.0,), "scale": (1.0, 2.0)}) is None
    quick = replacement(scaler, [None], {"offset": (1.0, 2.0), "scale": None})
    with pytest.raises(ValueError, match="offset has 2 elements for 3 features"):
        quick(np.zeros((1, 3), np.float32), offset=(1.0, 2.0), scale=None)
    attributes = {"coefficients": (1.0,), "intercepts": None, "targets": 1, "post_transform": "NONE"}
    assert replacement(linear_regressor, [None], {**attributes, "post_transform": "PROBIT"}) is None
    quick = replacement(linear_regressor, [None], attributes)
    with pytest.raises(ValueError, match="1 coefficients for 1 scores of 3 features"):
        quick(np.zeros((1, 3), np.float32), **attributes, allocate=np.empty)


def test_sizes_are_held_against_the_buffers(kernels):
    x, out, chosen = np.zeros((4, 3)), np.zeros((4, 2), np.float32), np.zeros(4, np.int64)
    right = [x, np.zeros((3, 1)), np.zeros(1), 1, 2, 0, np.zeros(2, np.int64), chosen, out]
    kernels.run_linear(*right)
    for place, value in [(1, None), (1, x), (2, x), (3, 0), (4, 3), (8, out[:2]), (8, np.zeros((4, 3), np.float32))]:
        arguments = right.copy()
        arguments[place] = value
        with pytest.raises((TypeError, ValueError)):
            kernels.run_linear(*arguments)
    row, same = np.zeros(3), np.zeros((4, 3), np.float32)
    for arguments in ((x, row, None, same), (x, row[:2], row, same), (x, row, row, out), (x, row, row, None)):
        with pytest.raises((TypeError, ValueError)):
            kernels.run_scaler(*arguments)
    for arguments in ((x, 3, same), (x, 0, out), (x[0], 0, row), (x, 0, None)):
        with pytest.raises((TypeError, ValueError)):
            kernels.run_normalizer(*arguments)
