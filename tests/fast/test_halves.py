"""16-bit floats on compiled kernels: what float64 gives, rounded once."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import onnxeval
from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.math.clip import clip_attributes
from onnxeval.ops.math.matmul import gemm, matmul
from onnxeval.ops.math.rectifiers import leaky_relu, relu
from onnxeval.ops.math.sigmoids import gelu, sigmoid
from onnxeval.ops.math.softmax import softmax
from onnxeval.ops.nn.attention import attention
from onnxeval.ops.nn.batch_norm import batch_normalization
from onnxeval.ops.nn.conv import conv
from onnxeval.ops.nn.conv_transpose import conv_transpose
from onnxeval.ops.nn.layer_norm import layer_normalization, rms_normalization
from onnxeval.registry import STANDARD, OpKey

HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
USUAL = {"auto_pad": "NOTSET", "dilations": None, "group": 1, "kernel_shape": None, "pads": None, "strides": None}
LAID = USUAL | {"output_padding": None, "output_shape": None}
SCALED = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1}
ROWS = {"axis": -1, "epsilon": 1e-5, "stash_type": 1}
HEADS = {"is_causal": 1, "kv_num_heads": None, "q_num_heads": None, "qk_matmul_output_mode": 0, "scale": None}
HEADS |= {"softcap": 0.0, "softmax_precision": None, "left_window_size": -1, "right_window_size": -1, "n_outputs": 3}

#: Readable kernel, shapes of the inputs, which of them are constant, attributes, results that are rounded.
KERNELS = {
    "matmul": (matmul, [(3, 20, 50), (50, 33)], [1], {}, 1),
    "matmul of two": (matmul, [(3, 20, 50), (3, 50, 33)], [], {}, 1),
    "matmul of vectors": (matmul, [(50,), (50,)], [], {}, 1),
    "gemm": (gemm, [(20, 50), (33, 50), (33,)], [1, 2], SCALED, 1),
    "conv": (conv, [(2, 20, 15, 16), (33, 20, 3, 3), (33,)], [1, 2], USUAL, 1),
    "conv of three axes": (conv, [(2, 3, 5, 9, 8), (7, 3, 2, 3, 3), (7,)], [], USUAL, 1),
    "conv transpose": (conv_transpose, [(2, 6, 9, 8), (6, 7, 2, 2), (7,)], [1], LAID, 1),
    "softmax": (softmax, [(6, 70)], [], {"axis": -1}, 1),
    "relu": (relu, [(6, 70)], [], {}, 1),
    "leaky relu": (leaky_relu, [(6, 70)], [], {"alpha": 0.1}, 1),
    "sigmoid": (sigmoid, [(6, 70)], [], {}, 1),
    "sigmoid of one number": (sigmoid, [()], [], {}, 1),
    "gelu": (gelu, [(6, 70)], [], {"approximate": "none"}, 1),
    "layer normalization": (layer_normalization, [(6, 70), (70,), (70,)], [1, 2], ROWS, 1),
    "rms normalization": (rms_normalization, [(6, 70), (70,)], [], ROWS, 1),
    "attention": (attention, [(2, 4, 9, 16), (2, 2, 9, 16), (2, 2, 9, 16), (9, 9)], [], HEADS, 3),
}


def results_of(kernel, inputs, attributes, n_inputs):
    supplied = {"allocate": np.empty} if "auto_pad" in attributes else {}
    padded = [*inputs, *[None] * (n_inputs - len(inputs))]
    results = kernel(*padded, **attributes, **supplied)
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", KERNELS)
def test_the_exact_result_is_rounded_once(tier, rng, name, half):
    readable, shapes, fixed, attributes, rounded = KERNELS[name]
    dtype = HALVES[half]
    inputs = [guarded(rng.standard_normal(shape).astype(dtype)) for shape in shapes]
    n_inputs = 7 if readable is attention else len(inputs)
    constants = [inputs[place] if place in fixed else None for place in range(n_inputs)]
    kernel = replacement(readable, constants, attributes)
    exact = results_of(readable, [x.astype(np.float64) for x in inputs], attributes, n_inputs)
    for _ in range(3):  # weights are packed when they are met again
        got = results_of(kernel, inputs, attributes, n_inputs)
        assert len(got) == len(exact)
        for place, (one, other) in enumerate(zip(got, exact, strict=True)):
            assert one.shape == other.shape
            assert one.dtype == (dtype if place < rounded else np.float32)
            spacing = np.spacing(np.abs(other).astype(dtype)).astype(np.float64)
            assert (np.abs(one.astype(np.float64) - other) <= 0.501 * spacing + 1e-5).all()


@pytest.mark.parametrize("half", HALVES)
def test_infinities_and_what_is_too_large(tier, half):
    dtype = HALVES[half]
    x = np.array([[3e4, 3e4], [np.inf, 1], [np.nan, 1], [-np.inf, 2]], np.float32).astype(dtype)
    got = replacement(matmul, [None, None], {})(x, x[:2])
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.astype(np.float32), matmul(x, x[:2]).astype(np.float32))


def test_floats_of_several_types_are_left_to_the_readable_kernel(kernels, rng):
    x, scale = rng.standard_normal((6, 70)).astype(np.float16), rng.standard_normal(70).astype(np.float32)
    got = replacement(rms_normalization, [None, None], ROWS)(x, scale, **ROWS)
    wanted = rms_normalization(x, scale, **ROWS)
    assert got.dtype == wanted.dtype == np.float32
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("half", HALVES)
def test_operators_that_follow_each_other_round_each(kernels, rng, half):
    """A sum that is too large for float16 is infinite, whatever comes after it."""
    weights = numpy_helper.from_array(rng.standard_normal((8, 3, 3, 3)).astype(np.float32).astype(HALVES[half]), "w")
    text = f"""
    <ir_version: 10, opset_import: ["": 22]>
    g ({half}[1, 3, 20, 20] x, {half}[1, 8, 18, 18] r, {half}[8, 1, 1] s) => ({half}[1, 8, 18, 18] y) {{
        c = Conv (x, w) a = Add (c, r) b = Mul (a, s) d = Relu (b) y = Div (d, s)
    }}"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(weights)
    model = onnxeval.load(model)
    feeds = {"x": (1, 3, 20, 20), "r": (1, 8, 18, 18), "s": (8, 1, 1)}
    feeds = {name: (rng.standard_normal(shape) * 50).astype(HALVES[half]) for name, shape in feeds.items()}
    feeds["s"] = (feeds["s"].astype(np.float32) * 50).astype(HALVES[half])
    wanted = model.run(feeds, reference=True)["y"]
    assert np.isinf(wanted).any() == (half == "float16")
    for _ in range(4):  # the plan adapts to shapes that come again
        got = model.run(feeds)["y"]
        assert got.dtype == wanted.dtype
        one, other = got.astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
        usual = np.isfinite(other)
        np.testing.assert_allclose(one[usual], other[usual], rtol=4 * 2.0 ** (-10 if half == "float16" else -7), atol=2)


#: What chooses among numbers, or is exact in float32: opset, number of inputs, constant ones.
EXACT = {
    "Max": (13, 2, {}),
    "Min": (13, 2, {}),
    "Pow": (15, 1, {1: 2}),
    "Clip": (13, 1, {1: -0.5, 2: 3}),
    "Neg": (13, 1, {}),
    "Abs": (13, 1, {}),
    "Sqrt": (13, 1, {}),
}


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("op", EXACT)
def test_what_loses_nothing_in_float32(tier, rng, op, half):
    version, n_inputs, fixed = EXACT[op]
    dtype = HALVES[half]
    readable = STANDARD.require(OpKey("", op, version), "math")
    special = [np.nan, np.inf, -np.inf, 300, 1e-7, 6e4, -6e4]
    inputs = [
        guarded(np.append(rng.standard_normal(1200), rng.permutation(special)).astype(dtype)) for _ in range(n_inputs)
    ]
    given = {place: np.array(value, dtype) for place, value in fixed.items()}
    constants = [given.get(place) for place in range(n_inputs + len(fixed))]
    kernel = replacement(readable, constants, {}) or readable
    got, wanted = (run(*inputs, *given.values()) for run in (kernel, readable))
    assert got.dtype == wanted.dtype == dtype
    np.testing.assert_array_equal(got.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("shape", [(2, 5, 7, 7), (3, 5), (1, 5, 900)])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_normalisation_is_rounded_once(tier, rng, shape, half, is_mixed):
    kind = np.float32 if is_mixed else HALVES[half]
    parameters = [guarded(np.abs(rng.standard_normal(5)).astype(kind)) for _ in range(4)]
    x = guarded(rng.standard_normal(shape).astype(HALVES[half]))
    given = {"epsilon": 1e-3, "momentum": 0.9, "training_mode": 0, "n_outputs": 1}
    with tier.Recording() as recording:
        got = replacement(batch_normalization, [None, *parameters], given)(x, *parameters, **given)
    assert len(recording.spans()) > 1  # x was made wide
    (exact,) = batch_normalization(*[each.astype(np.float64) for each in (x, *parameters)], **given)
    assert got.dtype == x.dtype
    spacing = np.spacing(np.abs(exact).astype(x.dtype)).astype(np.float64)
    assert (np.abs(got.astype(np.float64) - exact) <= 0.501 * spacing + 1e-5).all()


def test_bounds_of_float16_that_are_not_given_are_its_own(kernels):
    x = np.array([np.inf, -np.inf, 1, np.nan], np.float16)
    kernel = replacement(clip_attributes, [None], {"min": None, "max": None}) or clip_attributes
    np.testing.assert_array_equal(kernel(x, min=None, max=None), np.array([65504, -65504, 1, np.nan], np.float16))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_chains_round_each_result(tier, data):
    """Of operators that are exact but for one rounding nothing is left to chance."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    name = data.draw(st.sampled_from(list(HALVES)))
    dtype, element_type = HALVES[name], {"float16": 10, "bfloat16": 16}[name]
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 3, 8, 33]), min_size=1, max_size=4)))
    weights = {"low": np.float32(-4), "high": np.float32(5)}
    feeds, nodes, last = {"x": rng.standard_normal(shape) * 4}, [], "x"
    ops = ["Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Relu", "Neg", "Abs", "Sqrt", "Clip", "Square"]
    for place in range(data.draw(st.integers(1, 6))):
        op = data.draw(st.sampled_from(ops)) if place else "Mul"
        names = [last]
        if op in ops[:7]:
            own = data.draw(st.sampled_from([shape, shape[1:], (), shape[:1] + (1,) * (len(shape) - 1)]))
            (feeds if place and data.draw(st.booleans()) else weights)[f"e{place}"] = rng.random(own) * 40 + 0.5
            names.append(f"e{place}")
        names += {"Clip": ["low", "high"], "Square": [last]}.get(op, [])
        if op in ("Add", "Sub", "Mul", "Max", "Min") and data.draw(st.booleans()):
            names.reverse()
        nodes.append(helper.make_node("Mul" if op == "Square" else op, names, [f"v{place}"]))
        last = f"v{place}"
    nodes.append(helper.make_node("Relu", [last], ["y"]))
    feeds, weights = ({key: np.asarray(x).astype(dtype) for key, x in group.items()} for group in (feeds, weights))
    inputs = [helper.make_tensor_value_info(key, element_type, x.shape) for key, x in feeds.items()]
    outputs = [helper.make_tensor_value_info("y", element_type, None)]
    initializers = [numpy_helper.from_array(x, key) for key, x in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    model = onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)]))
    (step,) = model.plan().steps
    assert step.kernel.halves.tail.stop == len(nodes)
    feeds["x"].flat[0] = data.draw(st.sampled_from([0, np.inf, -np.inf, np.nan, 1e-7]))
    wanted = model.run(feeds, reference=True)["y"]
    for _ in range(4):
        got = model.run(feeds)["y"]
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("half", HALVES)
def test_a_product_and_what_follows_round_each_result(tier, rng, half):
    text = f"""
    <ir_version: 10, opset_import: ["": 22]>
    g ({half}[2, 3, 9, 9] x, {half}[2, 8, 7, 7] r) => ({half}[2, 8, 7, 7] y) {{
        c = Conv (x, w, b) n = BatchNormalization (c, s, t, m, v) a = Add (n, r) d = Relu (a) e = Floor (d) y = Neg (e)
    }}"""
    model = onnx.parser.parse_model(text)
    shapes = {"w": (8, 3, 3, 3)} | dict.fromkeys("bstmv", (8,))
    weights = {name: (rng.random(shape) + 0.25).astype(HALVES[half]) for name, shape in shapes.items()}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    model = onnxeval.load(model)
    feeds = {"x": (2, 3, 9, 9), "r": (2, 8, 7, 7)}
    feeds = {name: rng.standard_normal(shape).astype(HALVES[half]) for name, shape in feeds.items()}
    wide = {name: x.astype(np.float64) for name, x in (feeds | weights).items()}

    def rounded(x):
        return x.astype(HALVES[half]).astype(np.float64)

    windows = np.lib.stride_tricks.sliding_window_view(wide["x"], (3, 3), axis=(2, 3))
    conv = rounded(np.einsum("nchwyx,mcyx->nmhw", windows, wide["w"]) + wide["b"].reshape(8, 1, 1))
    scale, shift, mean, variance = (wide[name].reshape(8, 1, 1) for name in "stmv")
    normal = rounded((conv - mean) * scale / np.sqrt(variance + 1e-5) + shift)
    total = rounded(normal + wide["r"])
    for _ in range(4):
        got = model.run(feeds, ["d"])["d"].astype(np.float64)
        spacing = np.spacing(np.maximum(np.abs(total), 1).astype(HALVES[half])).astype(np.float64)
        assert (np.abs(got - np.maximum(total, 0)) <= 4 * spacing).all()  # of float32, few sums are on the other side
        assert (got == np.maximum(total, 0)).mean() > 0.98
        y = model.run(feeds)["y"]
        np.testing.assert_array_equal(y.astype(np.float64), -np.floor(got))


def test_chains_of_several_types_and_wrong_shapes_are_for_their_parts(kernels, rng):
    text = """
    <ir_version: 10, opset_import: ["": 22]> g (float16[A, 8] x, float16[B] r) => (float16[A, 8] y) {
        [product] p = MatMul (x, w) [sum] a = Add (p, r) y = Relu (a)
    }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal((8, 8)).astype(np.float16), "w"))
    model = onnxeval.load(model)
    x = rng.standard_normal((3, 8)).astype(np.float16)
    with pytest.raises(onnxeval.NodeError, match=r"sum \(Add-14\)"):
        model.run({"x": x, "r": np.ones(3, np.float16)})
    for size in (8, 1, 8):
        feeds = {"x": x, "r": np.ones(size, np.float16)}
        got, wanted = (model.run(feeds, reference=reference)["y"] for reference in (False, True))
        np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=2e-3, atol=2e-3)
