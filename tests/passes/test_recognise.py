"""Expressions that models spell out become one step that computes the same, and near misses stay as they are."""

import importlib

import ml_dtypes
import numpy as np
import pytest
from onnx import numpy_helper, parser
from passes.plans import operators

import onnxeval

HEADER = '<ir_version: 10, opset_import: ["" : {opset}]>\n'


def model(inputs: str, body: str, opset: int = 20, constants: dict | None = None, outputs: str = "float[*] y"):
    text = HEADER.format(opset=opset) + f"g ({inputs}) => ({outputs.replace('[*]', '')}) {{\n{body}\n}}"
    proto = parser.parse_model(text)
    for name, value in (constants or {}).items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return onnxeval.load(proto)


def f(value) -> np.ndarray:
    return np.float32(value)


X = np.random.default_rng(7).normal(0, 3, (2, 3, 8)).astype(np.float32)
VECTOR = np.random.default_rng(8).normal(1, 0.2, 8).astype(np.float32)
C = {
    "one": f(1),
    "half": f(0.5),
    "two": f(2),
    "three": f(3),
    "six": f(6),
    "zero": f(0),
    "sixth": f(1 / 6),
    "root2": f(2**0.5),
    "inverse_root2": f(0.5**0.5),
    "c": f(0.044715),
    "k": f(0.7978845608),
    "eps": f(1e-5),
    "gamma": VECTOR,
    "beta": VECTOR[::-1].copy(),
    "last": np.array([-1]),
}

MEAN = "m = ReduceMean<axes=[-1]>(x)\nd = Sub(x, m)\n"
SPELLED = {
    "gelu": ("Gelu", 17, "a = Div(x, root2)\nb = Erf(a)\nc1 = Add(b, one)\ne = Mul(x, c1)\ny = Mul(e, half)"),
    "gelu, half first": (
        "Gelu",
        17,
        "h = Mul(half, x)\na = Mul(x, inverse_root2)\nb = Erf(a)\nc1 = Add(one, b)\ny = Mul(h, c1)",
    ),
    "gelu, half inside": (
        "Gelu",
        17,
        "a = Div(x, root2)\nb = Erf(a)\nc1 = Add(b, one)\ne = Mul(c1, half)\ny = Mul(e, x)",
    ),
    "gelu by tanh": (
        "Gelu",
        17,
        "p = Pow(x, three)\nq = Mul(c, p)\nr = Add(x, q)\ns = Mul(r, k)\n"
        "t = Tanh(s)\nu = Add(t, one)\nv = Mul(x, u)\ny = Mul(v, half)",
    ),
    "silu": ("Swish", 17, "s = Sigmoid(x)\ny = Mul(s, x)"),
    "hard swish": ("HardSwish", 17, "a = Add(x, three)\nb = Clip(a, zero, six)\nc1 = Mul(x, b)\ny = Div(c1, six)"),
    "hard swish, sixth": (
        "HardSwish",
        17,
        "a = Add(x, three)\nb = Clip(a, zero, six)\nc1 = Mul(b, sixth)\ny = Mul(c1, x)",
    ),
    "hard swish, opset 9": (
        "HardSwish",
        9,
        "a = Add(x, three)\nb = Clip<min=0.0, max=6.0>(a)\nc1 = Mul(x, b)\ny = Div(c1, six)",
    ),
    "hard swish, hard sigmoid": ("HardSwish", 17, "a = HardSigmoid<alpha=0.16666667, beta=0.5>(x)\ny = Mul(x, a)"),
    "layer normalisation": (
        "LayerNormalization",
        13,
        MEAN + "q = Pow(d, two)\nv = ReduceMean<axes=[-1]>(q)\nw = Add(v, eps)\n"
        "r = Sqrt(w)\nn = Div(d, r)\ng1 = Mul(n, gamma)\ny = Add(g1, beta)",
    ),
    "layer normalisation, two differences": (
        "LayerNormalization",
        18,
        "m = ReduceMean(x, last)\nd = Sub(x, m)\nd2 = Sub(x, m)\n"
        "q = Mul(d2, d2)\nv = ReduceMean(q, last)\nw = Add(v, eps)\n"
        "r = Sqrt(w)\nn = Div(d, r)\ng1 = Mul(gamma, n)\ny = Add(beta, g1)",
    ),
    "root mean square": (
        "RMSNormalization",
        18,
        "q = Pow(x, two)\nv = ReduceMean(q, last)\nw = Add(v, eps)\n"
        "r = Sqrt(w)\ni = Reciprocal(r)\nn = Mul(x, i)\ny = Mul(gamma, n)",
    ),
    "softmax": (
        "Softmax",
        13,
        "m = ReduceMax<axes=[-1]>(x)\nd = Sub(x, m)\ne = Exp(d)\ns = ReduceSum(e, last)\ny = Div(e, s)",
    ),
}


@pytest.mark.parametrize("name", SPELLED)
def test_an_expression_is_one_step(name):
    expected, opset, body = SPELLED[name]
    spelled = model("float[2,3,8] x", body, opset, C)
    assert operators(spelled.plan()) == [expected]
    (step,) = spelled.plan().steps
    assert step.label.count(" + ") == body.count("\n") - ("two" in name)  # like differences are one step before
    wanted = spelled.run({"x": X}, reference=True)["y"]
    np.testing.assert_allclose(spelled.run({"x": X})["y"], wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", SPELLED)
def test_a_value_that_is_asked_for_stays(name):
    """Each value inside an expression, asked for, is what the readable path gives."""
    _, opset, body = SPELLED[name]
    spelled = model("float[2,3,8] x", body, opset, C)
    for line in body.splitlines():
        value = line.split(" = ")[0]
        both = [spelled.run({"x": X}, [value, "y"], reference=reference) for reference in (False, True)]
        for key in both[0]:
            np.testing.assert_allclose(both[0][key], both[1][key], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["layer normalisation", "root mean square"])
def test_a_scale_that_broadcasts_over_the_last_axis(name):
    """A last axis of one element, which the scale makes longer: no normalisation of the standard does that."""
    _, opset, body = SPELLED[name]
    spelled = model("float[2,3,K] x", body, opset, C)
    x = X[..., :1]
    wanted = spelled.run({"x": x}, reference=True)["y"]
    assert wanted.shape == (2, 3, 8)
    for _ in range(3):
        np.testing.assert_allclose(spelled.run({"x": x})["y"], wanted, rtol=2e-5, atol=2e-6)
        assert spelled.run({"x": X})["y"].shape == X.shape


NEAR = {
    "another number": (17, "a = Div(x, half)\nb = Erf(a)\nc1 = Add(b, one)\ne = Mul(x, c1)\ny = Mul(e, half)"),
    "another value": (17, "z = Neg(x)\ns = Sigmoid(z)\ny = Mul(s, x)"),
    "another axis": (
        13,
        "m = ReduceMean<axes=[1]>(x)\nd = Sub(x, m)\nq = Pow(d, two)\nv = ReduceMean<axes=[1]>(q)\nw = Add(v, eps)\n"
        "r = Sqrt(w)\nn = Div(d, r)\ng1 = Mul(n, gamma)\ny = Add(g1, beta)",
    ),
    "other bounds": (17, "a = Add(x, three)\nb = Clip(a, half, six)\nc1 = Mul(x, b)\ny = Div(c1, six)"),
    "another slope": (17, "a = HardSigmoid<alpha=0.2, beta=0.5>(x)\ny = Mul(x, a)"),
    "a reader more": (17, "s = Sigmoid(x)\nt = Mul(s, x)\ny = Add(t, s)"),
}


@pytest.mark.parametrize("name", NEAR)
def test_a_near_miss_stays(name):
    opset, body = NEAR[name]
    spelled = model("float[2,3,8] x", body, opset, C)
    assert operators(spelled.plan()) == operators(spelled.plan(reference=True))


SCORES = "s = MatMul(q, kt)\nt = Div(s, two)\nu = Add(t, mask)\np = Softmax<axis=-1>(u)\n"


@pytest.mark.parametrize(
    ("body", "zeros"),
    [
        (SCORES + "y = MatMul(p, v)", False),
        (SCORES + "i = IsNaN(p)\nw = Where(i, zero, p)\ny = MatMul(w, v)", True),
        ("s = MatMul(q, kt)\nu = Add(s, mask)\np = Softmax<axis=-1>(u)\ny = MatMul(p, v)", False),
        ("s = MatMul(q, kt)\nt = Mul(two, s)\np = Softmax<axis=-1>(t)\ny = MatMul(p, v)", False),
    ],
)
def test_attention(body, zeros):
    rng = np.random.default_rng(1)
    spelled = model("float[1,2,4,8] q, float[1,2,8,5] kt, float[1,2,5,3] v, float[1,1,4,5] mask", body, 17, C)
    feeds = {
        n: rng.normal(size=s).astype(np.float32)
        for n, s in (("q", (1, 2, 4, 8)), ("kt", (1, 2, 8, 5)), ("v", (1, 2, 5, 3)))
    }
    feeds["mask"] = np.where(rng.random((1, 1, 4, 5)) < 0.3, -np.inf, 0).astype(np.float32)
    feeds["mask"][0, 0, 2] = -np.inf  # a row that sees nothing
    (step,) = spelled.plan().steps
    assert step.kernel.__name__.startswith("attend")
    result, wanted = (spelled.run(feeds, reference=reference)["y"] for reference in (False, True))
    np.testing.assert_allclose(result, wanted, rtol=2e-5, atol=2e-6)
    assert np.isnan(result[0, :, 2]).all() != (zeros or "mask" not in body)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_attention_of_halves_is_rounded_after_each_operator(monkeypatch, dtype, native):
    """Scores of float16 overflow where those of bfloat16 do not."""
    if not native:
        monkeypatch.setattr(importlib.import_module("onnxeval.passes.use_native"), "native", lambda: None)
    body = "a = MatMul(q, k)\nb = Add(a, mask)\nc1 = Softmax<axis=-1>(b)\ny = MatMul(c1, v)"
    inputs = ", ".join(f"{dtype}[2,{shape}] {name}" for name, shape in (("q", "4,8"), ("k", "8,5"), ("v", "5,3")))
    spelled = model(f"{inputs}, {dtype}[2,4,5] mask", body, 17, outputs=f"{dtype}[*] y")
    assert len(spelled.plan().steps) == 1
    kind = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    rng = np.random.default_rng(6)
    feeds = {
        name: rng.normal(size=(2, *shape)).astype(kind)
        for name, shape in (("q", (4, 8)), ("k", (8, 5)), ("v", (5, 3)), ("mask", (4, 5)))
    }
    feeds["q"][0, 0] = feeds["k"][0, :, 0] = 200
    for _ in range(4):
        result, wanted = (spelled.run(feeds, reference=reference)["y"] for reference in (False, True))
        assert result.dtype == kind
        assert np.isnan(wanted[0, 0].astype(float)).all() == (dtype == "float16")
        np.testing.assert_allclose(result.astype(float), wanted.astype(float), rtol=2e-2, atol=2e-3)


def test_rotary():
    body = (
        "b = Slice(x, four, eight, last, step)\nn = Neg(b)\na = Slice(x, none, four, last, step)\n"
        "r = Concat<axis=-1>(n, a)\ns = Mul(r, sin)\nc1 = Mul(x, cos)\ny = Add(c1, s)"
    )
    angles = np.random.default_rng(3).uniform(0, 6, (3, 8))
    constants = {
        **C,
        "four": np.array([4]),
        "eight": np.array([2**62]),
        "none": np.array([0]),
        "step": np.array([1]),
        "sin": np.sin(angles).astype(np.float32),
        "cos": np.cos(angles).astype(np.float32),
    }
    spelled = model("float[2,3,8] x", body, 17, constants)
    (step,) = spelled.plan().steps
    assert step.kernel.__name__ == "rotate_halves"
    one, other = (spelled.run({"x": X}, reference=reference)["y"] for reference in (False, True))
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_rotary_of_one_element():
    """It broadcasts over the angles and has no second half."""
    body = (
        "b = Slice(x, four, eight, last, step)\nn = Neg(b)\na = Slice(x, none, four, last, step)\n"
        "r = Concat<axis=-1>(n, a)\ns = Mul(r, sin)\nc1 = Mul(x, cos)\ny = Add(c1, s)"
    )
    numbers = {"four": [4], "eight": [2**62], "none": [0], "step": [1], "last": [-1]}
    constants = {name: np.array(value) for name, value in numbers.items()}
    spelled = model("float[2,N] x", body, 17, {**constants, "sin": VECTOR, "cos": -3 * VECTOR})
    x = X[0, :2, :1]
    np.testing.assert_allclose(spelled.run({"x": x})["y"], x * (-3 * VECTOR) + x * VECTOR, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_other_types(dtype):
    numpy_type = {"double": np.float64}.get(dtype, np.float16)
    constants = {name: np.asarray(value).astype(numpy_type) if name != "last" else value for name, value in C.items()}
    for name, (_, opset, body) in SPELLED.items():
        if "opset 9" in name:
            continue
        spelled = model(f"{dtype}[2,3,8] x", body, opset, constants, f"{dtype}[*] y")
        one, other = (spelled.run({"x": X.astype(numpy_type)}, reference=reference)["y"] for reference in (False, True))
        assert one.dtype == other.dtype == numpy_type
        tolerance = 2e-2 if numpy_type == np.float16 else 1e-12
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("zero", "bias"), [(True, True), (False, True), (True, False)])
def test_dynamic_quantisation(monkeypatch, shared, zero, bias):
    rng = np.random.default_rng(5)
    body = "q, s, z = DynamicQuantizeLinear(x)\n"
    for n in "wv" if shared else "w":
        body += f"i{n} = MatMulInteger(q, {n}, z{', wz' if zero else ''})\nf{n} = Cast<to=1>(i{n})\n"
        body += f"m{n} = Mul(s, s{n})\np{n} = Mul(f{n}, m{n})\n" + (f"b{n} = Add(p{n}, bias)\n" if bias else "")
    last = "b" if bias else "p"
    body += f"y = Sub({last}w, {last}v)" if shared else f"y = Neg({last}w)"
    constants = {
        "w": rng.integers(-128, 128, (8, 5)).astype(np.int8),
        "v": rng.integers(-128, 128, (8, 5)).astype(np.int8),
        "wz": np.int8(3),
        "sw": f(0.02),
        "sv": f(0.03),
        "bias": rng.normal(size=5).astype(np.float32),
    }
    spelled = model("float[2,3,8] x", body, 17, constants)
    with monkeypatch.context() as readable:  # compiled kernels have other names
        readable.setattr(importlib.import_module("onnxeval.passes.use_native"), "native", lambda: None)
        plan = model("float[2,3,8] x", body, 17, constants).plan()
    names = [getattr(step.kernel, "__name__", "") for step in plan.steps]
    if shared:
        assert names.count("matmul_integer_to_float") == 2
    else:
        assert names[0] == "dynamic_quantize_matmul"
    one, other = (spelled.run({"x": X}, reference=reference)["y"] for reference in (False, True))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("start", "inside"),
    [
        ("t = Add(x, v)\nh = Tanh(t)", ("Add", "Tanh")),
        ("h = Tanh(x)", ("Tanh",)),
        ("t = Neg(x)\nh = Tanh(t)", ("Tanh",)),
        ("t = Add(x, v)\nh = Tanh(t)\nu = Neg(t)", ("Tanh",)),
        ("t = Add(x, v)\nh = Tanh(t)\nu = Neg(h)", ()),
    ],
)
def test_tangents_that_are_quantised(monkeypatch, start, inside):
    """A tangent, and the sum that it is of, are part of the product that quantises it, unless others read them too."""
    rng = np.random.default_rng(6)
    body = f"{start}\nq, s, z = DynamicQuantizeLinear(h)\ni = MatMulInteger(q, w, z)\nf = Cast<to=1>(i)\n"
    body += "m = Mul(s, sw)\np = Mul(f, m)\n" + ("y = Sub(p, u)" if "u =" in start else "y = Neg(p)")
    constants = {
        "w": rng.integers(-128, 128, (8, 8)).astype(np.int8),
        "v": rng.standard_normal((2, 1, 8)).astype(np.float32),
        "sw": f(0.02),
    }
    spelled = model("float[2,3,8] x", body, 17, constants)
    with monkeypatch.context() as readable:  # compiled kernels have other names
        readable.setattr(importlib.import_module("onnxeval.passes.use_native"), "native", lambda: None)
        plan = model("float[2,3,8] x", body, 17, constants).plan()
    (product,) = (step for step in plan.steps if "MatMulInteger" in step.fused)
    assert product.kernel.__name__ == "dynamic_quantize_matmul" + ("_of_tanh" if inside else "")
    assert [name for name in ("Add", "Tanh") if name in product.fused] == list(inside)
    assert len(product.label.split(" + ")) == len(product.fused) == 5 + len(inside)
    assert len([name for name in product.inputs if name]) == 3 + ("Add" in inside)
    one, other = (spelled.run({"x": X}, reference=reference)["y"] for reference in (False, True))
    # The tangents differ in their last bits, so that a code may be the next one
    np.testing.assert_allclose(one, other, rtol=0, atol=0.03)


def test_numbers_that_add_axes_keep_their_steps() -> None:
    """One element of shape (1, 1) makes a matrix of a vector."""
    constants = {"root2": np.full((1, 1), 2**0.5, np.float32), "one": f(1), "half": f(0.5)}
    body = "a = Div(x, root2)\nb = Erf(a)\nc = Add(b, one)\nd = Mul(x, c)\ny = Mul(d, half)"
    spelled = model("float[8] x", body, 20, constants)
    assert spelled.run({"x": VECTOR})["y"].shape == (1, 8)
    constants["weights"] = np.ones((8, 8), np.float32)
    body = "m = Gemm(x, weights)\n" + body.replace("(x,", "(m,")
    wide = model("float[2,8] x", body, 20, constants)
    assert "Gelu" in operators(wide.plan())[-1]


def test_old_broadcasting_keeps_its_steps() -> None:
    """Before opset 7 a vector may lie along any axis, here the first."""
    constants = {"two": f(2), "eps": f(1e-5), "scale": VECTOR, "bias": VECTOR}
    spelled = model(
        "float[8,8] x",
        "m = ReduceMean<axes=[-1]>(x) d = Sub<broadcast=1>(x, m) q = Pow<broadcast=1>(d, two)"
        "v = ReduceMean<axes=[-1]>(q) w = Add<broadcast=1>(v, eps) r = Sqrt(w) n = Div<broadcast=1>(d, r)"
        "s = Mul<broadcast=1, axis=0>(n, scale) y = Add<broadcast=1, axis=0>(s, bias)",
        6,
        constants,
    )
    x = np.random.default_rng(3).normal(size=(8, 8)).astype(np.float32)
    n = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    wanted = n * VECTOR[:, None] + VECTOR[:, None]
    np.testing.assert_allclose(spelled.run({"x": x})["y"], wanted, rtol=2e-5, atol=2e-6)
