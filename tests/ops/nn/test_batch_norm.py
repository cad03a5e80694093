from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

import onnxeval
from onnxeval.ops.nn import batch_norm  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
RNG = np.random.default_rng(7)


def kernel(version):
    return STANDARD["", "BatchNormalization", version]


def parameters(shape, dtype=np.float32):
    scale, bias, mean = (RNG.normal(size=shape).astype(dtype) for _ in range(3))
    return scale, bias, mean, RNG.uniform(0.5, 2, size=shape).astype(dtype)


def by_hand(x, scale, bias, mean, variance, epsilon):
    """Element by element, in double precision."""
    result = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        c = index[1] if x.ndim > 1 else 0
        result[index] = (float(x[index]) - float(mean[c])) / (float(variance[c]) + epsilon) ** 0.5 * float(
            scale[c]
        ) + float(bias[c])
    return result


def batch_statistics(x):
    """Mean and population variance of each channel."""
    channels = range(x.shape[1]) if x.ndim > 1 else [slice(None)]
    values = [[float(v) for v in (x[:, c] if x.ndim > 1 else x).ravel()] for c in channels]
    means = [sum(v) / len(v) for v in values]
    return np.array(means), np.array(
        [sum((e - m) ** 2 for e in v) / len(v) for v, m in zip(values, means, strict=True)]
    )


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 2, 2), (2, 3, 2, 1, 2), (5,)])
@pytest.mark.parametrize(("version", "extra"), [(15, {"training_mode": 0}), (9, {}), (7, {"spatial": 1})])
def test_inference(shape, version, extra):
    x = RNG.normal(size=shape).astype(np.float32)
    given = parameters((shape[1] if len(shape) > 1 else 1,))
    (y,) = kernel(version)(x, *given, momentum=0.9, epsilon=1e-3, n_outputs=1, **extra)
    assert y.dtype == x.dtype
    np.testing.assert_allclose(y, by_hand(x, *given, 1e-3), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 2), (3, 2, 4), (2, 2, 3, 2), (5,)])
def test_training(shape):
    x = RNG.normal(size=shape).astype(np.float32)
    scale, bias, mean, variance = parameters((shape[1] if len(shape) > 1 else 1,))
    outputs = kernel(15)(x, scale, bias, mean, variance, training_mode=1, momentum=0.75, epsilon=1e-2, n_outputs=3)
    batch_mean, batch_variance = batch_statistics(x)
    expected = (
        by_hand(x, scale, bias, batch_mean, batch_variance, 1e-2),
        mean * 0.75 + batch_mean * 0.25,
        variance * 0.75 + batch_variance * 0.25,
    )
    for got, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("version", "extra", "n_outputs"),
    [(9, {}, 5), (7, {"spatial": 1}, 2), (6, {"spatial": 1, "is_test": 0}, 1), (1, {"spatial": 1, "is_test": 0}, 5)],
)
def test_old_training_gives_the_batch_statistics_too(version, extra, n_outputs):
    x = RNG.normal(size=(4, 2, 3)).astype(np.float32)
    given = parameters((2,))
    outputs = kernel(version)(x, *given, momentum=0.5, epsilon=1e-5, n_outputs=n_outputs, **extra)
    newest = kernel(15)(x, *given, training_mode=1, momentum=0.5, epsilon=1e-5, n_outputs=3)
    for got, wanted in zip(outputs, (*newest, *batch_statistics(x)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("version", "extra"), [(7, {}), (6, {"is_test": 1}), (1, {"is_test": 1})])
def test_each_feature_by_itself(version, extra):
    x = RNG.normal(size=(4, 2, 3)).astype(np.float32)
    given = parameters((2, 3))
    (y,) = kernel(version)(x, *given, spatial=0, momentum=0.9, epsilon=1e-5, n_outputs=1, **extra)
    flat = by_hand(x.reshape(4, 6), *(p.ravel() for p in given), 1e-5)
    np.testing.assert_allclose(y, flat.reshape(4, 2, 3), rtol=1e-5, atol=1e-6)
    (same,) = kernel(version)(
        x, *(p.ravel() for p in given), spatial=0, momentum=0.9, epsilon=1e-5, n_outputs=1, **extra
    )
    np.testing.assert_array_equal(same, y)


def test_each_feature_by_itself_in_training():
    x = RNG.normal(size=(4, 2, 3)).astype(np.float32)
    given = parameters((2, 3))
    y, mean, variance, saved_mean, saved_variance = kernel(7)(
        x, *given, spatial=0, momentum=0.9, epsilon=1e-5, n_outputs=5
    )
    flat = kernel(15)(
        x.reshape(4, 6), *(p.ravel() for p in given), training_mode=1, momentum=0.9, epsilon=1e-5, n_outputs=3
    )
    for got, wanted in zip((y, mean, variance), flat, strict=True):
        np.testing.assert_allclose(got, wanted.reshape(got.shape), rtol=1e-6)
    np.testing.assert_allclose(saved_mean, x.mean(axis=0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(saved_variance, x.var(axis=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16, np.float64])
def test_types_may_differ(dtype):
    x = np.array([[60000, 1], [59000, 2]], np.float32).astype(dtype)
    scale, bias = np.ones(2, np.float32), np.zeros(2, np.float32)
    mean, variance = np.zeros(2), np.ones(2)
    y, running_mean, running_variance = kernel(15)(
        x, scale, bias, mean, variance, training_mode=1, momentum=0.0, epsilon=0.0, n_outputs=3
    )
    assert (y.dtype, running_mean.dtype, running_variance.dtype) == (x.dtype, np.float64, np.float64)
    np.testing.assert_array_equal(y.astype(np.float32), [[1, -1], [-1, 1]])
    np.testing.assert_array_equal(running_mean, x.astype(np.float64).mean(axis=0))


def test_an_empty_batch_is_empty():
    (y,) = kernel(15)(
        np.zeros((0, 2, 3), np.float32), *parameters((2,)), training_mode=0, momentum=0.9, epsilon=1e-5, n_outputs=1
    )
    assert y.shape == (0, 2, 3)


@pytest.mark.parametrize(
    ("version", "extra", "n_outputs"), [(14, {"training_mode": 0}, 3), (6, {"spatial": 1, "is_test": 1}, 5)]
)
def test_more_outputs_outside_training_are_refused(version, extra, n_outputs):
    with pytest.raises(ValueError, match=r"lists [35] outputs"):
        kernel(version)(
            np.zeros((1, 2), np.float32), *parameters((2,)), momentum=0.9, epsilon=1e-5, n_outputs=n_outputs, **extra
        )


def test_wrong_sizes_are_refused():
    x = np.zeros((1, 2, 3), np.float32)
    with pytest.raises(ValueError, match=r"var has shape \[3\], expected \[2\]"):
        kernel(15)(
            x, *parameters((2,))[:3], np.ones(3, np.float32), training_mode=0, momentum=0.9, epsilon=1e-5, n_outputs=1
        )
    with pytest.raises(ValueError, match=r"scale has shape \[2\], expected \[2, 3\]"):
        kernel(7)(x, *parameters((2,)), spatial=0, momentum=0.9, epsilon=1e-5, n_outputs=1)
    with pytest.raises(ValueError, match="scalar"):
        kernel(15)(
            np.float32(1).reshape(()), *parameters((1,)), training_mode=0, momentum=0.9, epsilon=1e-5, n_outputs=1
        )


def test_blank_outputs_at_the_end_are_not_listed():
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "", "", "", ""])
    inputs = [helper.make_tensor_value_info(name, 1, [2, 2] if name == "x" else [2]) for name in node.input]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", 1, [2, 2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)
    x, given = RNG.normal(size=(2, 2)).astype(np.float32), parameters((2,))
    outputs = onnxeval.load(model).run(dict(zip(node.input, (x, *given), strict=True)))
    np.testing.assert_allclose(outputs["y"], by_hand(x, *given, 1e-5), rtol=1e-5, atol=1e-6)
