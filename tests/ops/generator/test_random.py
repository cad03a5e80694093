"""The random operators: types, ranges, moments, seeds. EyeLike is here as well."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from onnxeval import dtypes
from onnxeval.registry import OpKey, Registry

FLOATS = {TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64, TensorProto.FLOAT16: np.float16}
FLOATS[TensorProto.BFLOAT16] = ml_dtypes.bfloat16


def kernel(op_type, version=22):
    return Registry.standard()[OpKey("", op_type, version)]


def rng(seed=0):
    return np.random.default_rng(seed)


def uniform(shape, low=0.0, high=1.0, dtype=TensorProto.FLOAT, seed=None, generator=None):
    given = {"shape": shape, "low": low, "high": high, "dtype": dtype, "seed": seed}
    return kernel("RandomUniform")(**given, rng=generator or rng(), allocate=np.empty)


def normal(shape, mean=0.0, scale=1.0, dtype=TensorProto.FLOAT, seed=None, generator=None):
    given = {"shape": shape, "mean": mean, "scale": scale, "dtype": dtype, "seed": seed}
    return kernel("RandomNormal")(**given, rng=generator or rng(), allocate=np.empty)


@pytest.mark.parametrize("draw", [uniform, normal])
@pytest.mark.parametrize("element_type", FLOATS)
@pytest.mark.parametrize("shape", [(), (3, 4), (0, 2)])
def test_shape_and_type(draw, element_type, shape):
    got = draw(shape, dtype=element_type)
    assert (got.shape, got.dtype) == (shape, FLOATS[element_type])


def test_moments():
    flat = uniform((20000,), -2.0, 6.0).astype(float)
    assert -2 <= flat.min() < -1.9
    assert 5.9 < flat.max() <= 6
    assert abs(flat.mean() - 2) < 0.1
    assert abs(np.histogram(flat, 4, (-2, 6))[0] - 5000).max() < 300
    bell = normal((20000,), 3.0, 0.5).astype(float)
    assert abs(bell.mean() - 3) < 0.02
    assert abs(bell.std() - 0.5) < 0.02
    assert abs(np.mean(np.abs(bell - 3) < 0.5) - 0.6827) < 0.02


@pytest.mark.parametrize("draw", [uniform, normal])
def test_a_seed_makes_its_own_generator(draw):
    one = draw((5,), seed=2.5, generator=rng(1))
    assert one.tolist() == draw((5,), seed=2.5, generator=rng(2)).tolist()
    assert one.tolist() != draw((5,), seed=2.0).tolist()
    assert draw((5,), seed=0.0).tolist() != draw((5,), seed=-0.0).tolist()
    shared = rng(3)
    draw((5,), seed=1.0, generator=shared)
    assert shared.random() == rng(3).random()


@pytest.mark.parametrize("draw", [uniform, normal])
def test_without_a_seed_the_generator_of_the_run_goes_on(draw):
    shared = rng(4)
    first, second = draw((5,), generator=shared), draw((5,), generator=shared)
    assert first.tolist() != second.tolist()
    assert first.tolist() == draw((5,), generator=rng(4)).tolist()


@pytest.mark.parametrize("op_type", ["RandomUniformLike", "RandomNormalLike"])
@pytest.mark.parametrize("version", [1, 22])
def test_like(op_type, version):
    bounds = {"low": 0.0, "high": 1.0} if "Uniform" in op_type else {"mean": 0.0, "scale": 1.0}
    x = np.zeros((2, 3), np.float16)

    def run(x, dtype):
        return kernel(op_type, version)(x, dtype=dtype, seed=1.0, **bounds, rng=rng(), allocate=np.empty)

    assert (run(x, None).dtype, run(x, None).shape) == (np.float16, (2, 3))
    assert run(np.zeros((4,), np.int32), TensorProto.DOUBLE).dtype == np.float64
    with pytest.raises(ValueError, match="int32"):
        run(np.zeros((4,), np.int32), None)


def test_uniform_and_normal_refuse():
    with pytest.raises(ValueError, match=r"low 1\.0 is not below high 0\.0"):
        uniform((2,), 1.0, 0.0)
    with pytest.raises(ValueError, match="nan"):
        uniform((2,), np.nan, 1.0)
    with pytest.raises(ValueError, match=r"scale -1\.0"):
        normal((2,), scale=-1.0)
    with pytest.raises(ValueError, match="negative size"):
        normal((2, -1))
    for dtype in (TensorProto.INT64, TensorProto.STRING, TensorProto.FLOAT8E4M3FN):
        with pytest.raises(ValueError, match="not defined"):
            uniform((2,), dtype=dtype)

    def refuse(shape, dtype):
        raise MemoryError(shape)

    with pytest.raises(MemoryError):
        kernel("RandomNormal")(shape=(2**40,), dtype=1, mean=0.0, scale=1.0, seed=None, rng=rng(), allocate=refuse)


@pytest.mark.parametrize("dtype", [None, TensorProto.INT32, TensorProto.BOOL, TensorProto.BFLOAT16])
@pytest.mark.parametrize("source", [np.float32, np.float16, np.float64])
def test_bernoulli(dtype, source):
    p = np.repeat(np.array([0, 0.25, 1], source), 4000).reshape(3, 4000)
    for version in (15, 22):
        got = kernel("Bernoulli", version)(p, dtype=dtype, seed=3.0, rng=rng())
        assert got.dtype == (source if dtype is None else dtypes.dtype_of(dtype))
        assert got.shape == p.shape
        mean = got.astype(float).mean(axis=1)
        assert mean[0] == 0
        assert mean[2] == 1
        assert abs(mean[1] - 0.25) < 0.03
    assert set(np.unique(got.astype(float))) == {0, 1}


@pytest.mark.parametrize("p", [-0.1, 1.1, np.nan])
def test_bernoulli_refuses(p):
    with pytest.raises(ValueError, match="outside"):
        kernel("Bernoulli")(np.array([0.5, p]), dtype=None, seed=None, rng=rng())


def multinomial(x, **given):
    attributes = {"dtype": TensorProto.INT32, "sample_size": 1, "seed": None, **given}
    return kernel("Multinomial")(x, **attributes, rng=rng(), allocate=np.empty)


@pytest.mark.parametrize("source", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16])
def test_multinomial(source):
    p = np.array([[1, 0, 3, 4], [0, 1, 0, 0]])
    with np.errstate(divide="ignore"):
        logs = np.log(p / 100).astype(source)  # not normalised
    got = multinomial(logs, sample_size=8000, dtype=TensorProto.INT64)
    assert (got.dtype, got.shape) == (np.int64, (2, 8000))
    shares = np.bincount(got[0], minlength=4) / 8000
    assert abs(shares - p[0] / 8).max() < 0.02
    assert shares[1] == 0
    assert set(got[1]) == {1}
    assert multinomial(logs).dtype == np.int32
    assert multinomial(logs, sample_size=0).shape == (2, 0)


def test_multinomial_refuses():
    for x in (np.zeros(3), np.zeros((2, 0))):
        with pytest.raises(ValueError, match="expected a matrix"):
            multinomial(x)
    for bad in (-np.inf, np.nan, np.inf):
        with pytest.raises(ValueError, match="no class of finite weight"):
            multinomial(np.array([[0, 0], [bad, bad]]))
    with pytest.raises(ValueError, match="negative size"):
        multinomial(np.zeros((1, 2)), sample_size=-1)
    with pytest.raises(ValueError, match="float32 is not an integer type"):
        multinomial(np.zeros((1, 2)), dtype=TensorProto.FLOAT)


@pytest.mark.parametrize("k", [0, 1, -1, 2, -2, 3, 4, -9, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("dtype", [None, TensorProto.INT8, TensorProto.BOOL, TensorProto.BFLOAT16])
def test_eye_like(k, dtype):
    x = np.full((3, 4), 7, np.uint16)
    for version in (9, 22):
        got = kernel("EyeLike", version)(x, dtype=dtype, k=k)
        assert got.dtype == (np.uint16 if dtype is None else dtypes.dtype_of(dtype))
        assert got.astype(int).tolist() == [[int(j == i + k) for j in range(4)] for i in range(3)]


def test_eye_like_edges():
    assert kernel("EyeLike")(np.zeros((0, 3)), dtype=None, k=0).shape == (0, 3)
    with pytest.raises(ValueError, match="rank 1"):
        kernel("EyeLike")(np.zeros(3), dtype=None, k=0)
