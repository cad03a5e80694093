"""Products with weights of few bits are those of float64, as near as the readable kernel's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.contrib.matmul_nbits import matmul_nbits


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_products_of_any_block(tier, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    bits, block = data.draw(st.sampled_from([4, 8])), data.draw(st.sampled_from([16, 32, 64, 128, 256]))
    k = data.draw(st.sampled_from([1, 15, 16, 17, 31, 33, 48, 64, 100, 300, 700]))
    n = data.draw(st.sampled_from([1, 2, 15, 16, 17, 50, 97]))
    m = data.draw(st.sampled_from([1, 1, 2, 3, 4, 5, 9, 17]))
    blocks = -(-k // block)
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
    scales = (rng.random((n, blocks)) + 0.1).astype(np.float32)
    packed = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
    zeros = packed if data.draw(st.booleans()) else None
    bias = data.draw(st.sampled_from([None, rng.standard_normal(n).astype(np.float32)]))
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
    inputs = [guarded(each) if each is not None else None for each in (a, b, scales, zeros, None, bias)]
    got = replacement(matmul_nbits, [None] * 6, attributes)(*inputs, **attributes)
    codes = b.reshape(n, -1)
    if bits == 4:
        codes = np.stack([codes & 15, codes >> 4], -1).reshape(n, -1)
        packed = np.stack([packed & 15, packed >> 4], -1).reshape(n, -1)[:, :blocks]
    origin = np.repeat(packed if zeros is not None else np.full((n, blocks), 2 ** (bits - 1)), block, 1)[:, :k]
    weights = (codes[:, :k].astype(float) - origin) * np.repeat(scales, block, 1)[:, :k]
    wanted = a.astype(float) @ weights.T + (0 if bias is None else bias)
    assert got.dtype == np.float32
    assert (np.abs(got - wanted) <= 2e-6 * (np.abs(a) @ np.abs(weights).T + 1)).all()


def test_what_is_left_to_the_readable_kernel(kernels, rng):
    attributes = {"K": 32, "N": 3, "bits": 4, "block_size": 16}
    a, scales = rng.standard_normal((2, 32)).astype(np.float32), rng.random((3, 2)).astype(np.float32)
    b = rng.integers(0, 256, (3, 2, 8)).astype(np.uint8)
    kernel = replacement(matmul_nbits, [None] * 6, attributes)
    for inputs in (
        (a, b, scales, scales, None, None),
        (a, b, scales, None, np.repeat(np.arange(2, dtype=np.int32), 16), None),
        (a.astype(np.float16), b, scales.astype(np.float16), None, None, None),
    ):
        np.testing.assert_array_equal(kernel(*inputs, **attributes), matmul_nbits(*inputs, **attributes))
    with pytest.raises(ValueError, match="expected"):
        kernel(a[:, :31], b, scales, None, None, None, **attributes)
    assert replacement(matmul_nbits, [None] * 6, {**attributes, "bits": 2}) is None
    out = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="as many rows"):
        kernels.multiply_bits(a[:1], b, scales, None, out, None, 4, 16)
    with pytest.raises(ValueError, match="scale and a block"):
        kernels.multiply_bits(a, b[:2], scales, None, out, None, 4, 16)
    with pytest.raises(ValueError, match="zero point"):
        kernels.multiply_bits(a, b, scales, b.reshape(-1)[:2].copy(), out, None, 4, 16)
