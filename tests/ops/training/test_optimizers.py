"""The optimizers against their pseudo code, one number at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onnxeval.ops.training import optimizers as _  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

DOMAIN = "ai.onnx.preview.training"


def tensors(kinds, dtypes):
    rng = np.random.default_rng(0)
    shapes = [(2, 3), (), (0,)][: len(dtypes)]
    return [
        rng.uniform(0.1, 2, shape).astype(dtype)
        for kind in range(kinds)
        for shape, dtype in zip(shapes, dtypes, strict=True)
    ]


def check(results, inputs, kinds, step):
    count = len(inputs) // kinds
    outputs = kinds - 1
    assert len(results) == outputs * count
    for i in range(count):
        group = inputs[i::count]
        got = results[i::count]
        for place in np.ndindex(group[0].shape):
            expected = step(*(float(x[place]) for x in group))
            for result, value in zip(got, expected, strict=True):
                np.testing.assert_allclose(np.asarray(result)[place], value, rtol=1e-5)
        for result in got:
            assert result.dtype == group[0].dtype
            assert result.shape == group[0].shape


@pytest.mark.parametrize("rate", [np.float32, np.float64])
@pytest.mark.parametrize("dtypes", [[np.float32], [np.float64], [np.float32, np.float64, np.float32]])
@pytest.mark.parametrize("count", [0, 1, 5])
class TestSteps:
    def test_adagrad(self, rate, dtypes, count):
        inputs = tensors(3, dtypes)
        results = STANDARD[DOMAIN, "Adagrad", 1](
            np.array(0.5, rate), np.array(count), *inputs, norm_coefficient=0.25, decay_factor=0.125, epsilon=1e-3
        )

        def step(x, g, h):
            r = 0.5 / (1 + count * 0.125)
            regularized = 0.25 * x + g
            h_new = h + regularized * regularized
            return x - r * regularized / (math.sqrt(h_new) + 1e-3), h_new

        check(results, inputs, 3, step)

    def test_adam(self, rate, dtypes, count):
        inputs = tensors(4, dtypes)
        results = STANDARD[DOMAIN, "Adam", 1](
            np.array([0.5], rate),
            np.array(count),
            *inputs,
            alpha=0.75,
            beta=0.875,
            norm_coefficient=0.25,
            norm_coefficient_post=0.125,
            epsilon=1e-3,
        )

        def step(x, g, v, h):
            regularized = 0.25 * x + g
            v_new = 0.75 * v + 0.25 * regularized
            h_new = 0.875 * h + 0.125 * regularized * regularized
            r = 0.5 * math.sqrt(1 - 0.875**count) / (1 - 0.75**count) if count > 0 else 0.5
            return (1 - 0.125) * (x - r * v_new / (math.sqrt(h_new) + 1e-3)), v_new, h_new

        check(results, inputs, 4, step)

    @pytest.mark.parametrize("mode", ["standard", "nesterov"])
    def test_momentum(self, rate, dtypes, count, mode):
        inputs = tensors(3, dtypes)
        results = STANDARD[DOMAIN, "Momentum", 1](
            np.array(0.5, rate), np.array(count), *inputs, alpha=0.75, beta=0.25, norm_coefficient=0.125, mode=mode
        )

        def step(x, g, v):
            regularized = 0.125 * x + g
            v_new = 0.75 * v + (0.25 if count > 0 else 1) * regularized
            return x - 0.5 * (v_new if mode == "standard" else regularized + 0.75 * v_new), v_new

        check(results, inputs, 3, step)


def momentum(*inputs, mode="standard"):
    kernel = STANDARD[DOMAIN, "Momentum", 1]
    return kernel(np.array(1.0), np.array(1), *inputs, alpha=1.0, beta=1.0, norm_coefficient=0.0, mode=mode)


def test_what_is_refused():
    with pytest.raises(ValueError, match="2 tensors are given, expected a multiple of 3"):
        momentum(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match=r"\[2\] and \[3\] differ"):
        momentum(np.ones(2), np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="mode 'fast'"):
        momentum(np.ones(2), np.ones(2), np.ones(2), mode="fast")
    with pytest.raises(ValueError, match="R must be a scalar"):
        STANDARD[DOMAIN, "Adagrad", 1](
            np.ones(2), np.array(0), *[np.ones(2)] * 3, norm_coefficient=0.0, decay_factor=0.0, epsilon=0.0
        )


def test_the_inputs_stay_as_they_are():
    x = np.ones(2)
    momentum(x, x, x)
    assert x.tolist() == [1, 1]
