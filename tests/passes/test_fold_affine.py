"""What scales and shifts channels becomes part of the weights before it, and near misses stay."""

import itertools

import numpy as np
import pytest
from onnx import numpy_helper, parser
from passes.plans import operators

import onnxeval

RNG = np.random.default_rng(5)
LINEAR = {
    "conv": ("y0 = Conv<pads=[1,1,1,1]>(x, w)", {"w": (6, 4, 3, 3)}, (2, 4, 5, 5)),
    "grouped conv with bias": ("y0 = Conv<group=2>(x, w, b)", {"w": (6, 2, 1, 1), "b": (6,)}, (2, 4, 5, 5)),
    "transposed": (
        "y0 = ConvTranspose<group=2, strides=[2,2]>(x, w, b)",
        {"w": (4, 3, 2, 2), "b": (6,)},
        (2, 4, 5, 5),
    ),
    "gemm": ("y0 = Gemm<alpha=0.5, beta=2.0>(x, w, b)", {"w": (4, 6), "b": (1, 6)}, (3, 4)),
    "gemm, transposed": ("y0 = Gemm<transB=1, beta=0.5>(x, w, b)", {"w": (6, 4), "b": ()}, (3, 4)),
    "gemm without bias": ("y0 = Gemm(x, w)", {"w": (4, 6)}, (3, 4)),
}
AFTER = {
    "mul": ("y = Mul(y0, c)", True),
    "mul from the left": ("y = Mul(c, y0)", True),
    "add": ("y = Add(c, y0)", True),
    "sub": ("y = Sub(y0, c)", True),
    "div": ("y = Div(y0, c)", True),
    "norm": ("y = BatchNormalization(y0, s, t, m, v)", True),
    "several": ("y1 = Mul(y0, c)\ny2 = BatchNormalization(y1, s, t, m, v)\ny3 = Add(y2, c)\ny = Div(y3, c)", True),
    "sub from": ("y = Sub(c, y0)", False),
    "div of": ("y = Div(c, y0)", False),
    "norm in training": ("y, p, q = BatchNormalization<training_mode=1>(y0, s, t, m, v)", False),
    "by itself": ("y = Mul(y0, y0)", False),
}


def build(linear: str, after: str, factor: tuple[int, ...], opset: int = 15) -> tuple[onnxeval.Model, dict]:
    first, shapes, x = LINEAR[linear]
    second, _ = AFTER[after]
    rank = len(x)
    proto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[{",".join("ABCD"[:rank])}] x) => (float y)'
        f"{{ {first}\n{second} }}"
    )
    constants = {name: RNG.normal(size=shape) for name, shape in shapes.items()}
    constants["c"] = RNG.uniform(0.5, 2, factor)
    constants.update({name: RNG.uniform(0.5, 2, 6) for name in "stmv"})
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.float32(value), name))
    return onnxeval.load(proto), {"x": RNG.normal(size=x).astype(np.float32)}


@pytest.mark.parametrize(("linear", "after"), list(itertools.product(LINEAR, AFTER)))
def test_one_step(linear, after):
    rank = len(LINEAR[linear][2])
    for factor in ((), (1,), (1, 6, *(1,) * (rank - 2)), (6, *(1,) * (rank - 2))):
        model, feeds = build(linear, after, factor)
        wanted = model.run(feeds, reference=True)["y"]
        rtol = 1e-3 if after == "div of" else 1e-4  # one that is divided by may be near zero
        np.testing.assert_allclose(model.run(feeds)["y"], wanted, rtol=rtol, atol=1e-5)
        assert (len(operators(model.plan())) == 1) == AFTER[after][1]


@pytest.mark.parametrize("factor", [(5,), (1, 1, 5, 1), (1, 1, 1, 1, 1), (2, 1, 1, 1)])
def test_other_axes_stay(factor):
    model, feeds = build("conv", "mul", factor)
    assert len(operators(model.plan())) == 2
    wanted = model.run(feeds, reference=True)["y"]
    np.testing.assert_allclose(model.run(feeds)["y"], wanted, rtol=1e-4, atol=1e-5)


def test_what_overflows_stays():
    model, feeds = build("conv", "several", ())
    infinite = onnxeval.load(model.proto)
    scale = next(t for t in infinite.proto.graph.initializer if t.name == "c")
    scale.CopyFrom(numpy_helper.from_array(np.float32(0), "c"))  # divides in the end
    assert len(operators(infinite.plan())) > 1
    results = [infinite.run(feeds, reference=reference)["y"] for reference in (False, True)]
    np.testing.assert_array_equal(*results)


def test_a_second_reader_keeps_the_steps():
    model, feeds = build("conv", "mul", ())
    both = [model.run(feeds, ["y0", "y"], reference=reference) for reference in (False, True)]
    for name in ("y0", "y"):
        np.testing.assert_allclose(both[0][name], both[1][name], rtol=1e-4, atol=1e-5)
    assert len(operators(model.plan(["y0", "y"]))) == 2


@pytest.mark.parametrize("shape", [(), (3,), (3, 0, 1, 1), (0, 3, 1, 1), (5, 3, 1, 1)], ids=str)
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "Gemm"])
def test_weights_of_a_wrong_shape_are_told_when_they_run(op: str, shape: tuple[int, ...]) -> None:
    group = "" if op == "Gemm" else "<group = 2>"
    body = f"a = {op} {group} (x, w) y = Mul (a, c)"
    proto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3, 4, 4] x) => (float y) {{ {body} }}'
    )
    for name, value in {"w": np.ones(shape, np.float32), "c": np.float32(2)}.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    with pytest.raises(onnxeval.NodeError, match=op):
        onnxeval.load(proto).run({"x": np.ones((2, 3, 4, 4), np.float32)})


def test_what_overflows_by_the_way_stays_so():
    """A quotient by what is next to nothing is infinite, and what it is multiplied by afterwards does not help."""
    body = "y0 = Conv(x, w)\ny1 = Div(y0, tiny)\ny = Mul(y1, tiny)"
    proto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 15]> g (float[A,B,C,D] x) => (float y) {{ {body} }}'
    )
    constants = {"w": np.ones((1, 1, 1, 1)), "tiny": np.array(1e-40)}
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.float32(value), name))
    x = np.float32([[[[1, -2, 0]]]])
    model = onnxeval.load(proto)
    for reference in (True, False):
        np.testing.assert_array_equal(model.run({"x": x}, reference=reference)["y"], [[[[np.inf, -np.inf, 0]]]])
