"""What is said of shapes with open sizes is so in ONNX's cases, for the sizes that these have."""

import numpy as np
import onnx
import pytest
from conformance.test_conformance import CASES
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper, parser

import onnxeval
from onnxeval.passes._facts import Facts
from onnxeval.passes._rewrite import op_type
from onnxeval.passes._sizes import Numbers, Symbol

NODES = sorted(name for name, case in CASES.items() if case.kind == "node")


def assert_holds(said, actual, sizes):
    """``sizes`` are what symbols stand for; those that are met for the first time stand for what is there."""
    assert len(said) == len(actual), f"{said} is said of {actual}"
    for one, other in zip(said, actual, strict=True):
        if isinstance(one, Symbol):
            assert sizes.setdefault(one, other) == other
        elif one is not None:
            assert one == other


def assert_facts_hold(facts, values, sizes):
    for name, value in values.items():
        if isinstance(value, np.ndarray) and name in facts.shapes:
            assert_holds(facts.shapes[name], value.shape, sizes)
        if name in facts.numbers:
            numbers = facts.numbers[name]
            assert (numbers.dtype, numbers.rank) == (value.dtype, value.ndim)
            assert_holds(numbers.items, value.reshape(-1).tolist(), sizes)


@pytest.mark.parametrize("constant", [True, False], ids=["numbers known", "numbers unknown"])
@pytest.mark.parametrize("name", NODES)
def test_cases_of_onnx(name, constant):
    """Every size of the inputs is a symbol of its own; with ``constant`` what integers hold is known."""
    case = CASES[name]
    model = onnxeval.load(case.model)
    inputs, _ = next(case.data_sets)
    values = dict(zip([entry.name for entry in model.inputs], inputs, strict=False))
    plan = model.plan(reference=True)
    if len(plan.steps) != 1:
        return
    (step,) = plan.steps
    facts, sizes = Facts({}, {}), {}
    for key, value in values.items():
        if not isinstance(value, np.ndarray):
            continue
        if constant and value.dtype.kind in "ib" and value.ndim < 2:
            facts.add_constant(key, value)
        else:
            facts.shapes[key] = tuple([Symbol() for _ in value.shape])
            sizes.update(zip(facts.shapes[key], value.shape, strict=True))
    facts.follow(step)
    assert_facts_hold(facts, {**values, **model.run(values)}, sizes)


def model_of(body, inputs, outputs, opset=21, **constants):
    proto = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : {opset}]> g ({inputs}) => ({outputs}) {{ {body} }}'
    )
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return proto


def operators(proto):
    """Those of the plan, those of its chains included."""
    return [name for step in onnxeval.load(proto).plan().steps for name in (step.fused or (op_type(step),))]


def test_the_width_of_a_product_is_a_constant():
    """As GRUs are spelled out: the gates of a product are cut at thirds of its width."""
    body = """
        p = MatMul (x, w) s = Shape (p) g = Gather (s, two) third = Div (g, three)
        low = Unsqueeze (third, zero) high = Mul (low, two1)
        a = Slice (p, zero, low, two1) b = Slice (p, low, high, two1) y = Add (a, b)
    """
    constants = {"two": 2, "three": 3, "zero": [0], "two1": [2], "w": np.eye(4, 12, dtype=np.float32)}
    proto = model_of(body, "float[B,T,4] x", "float[B,T,U] y", **constants)
    assert not {"Shape", "Gather", "Div", "Unsqueeze", "Mul"} & {*operators(proto)}
    model = onnxeval.load(proto)
    for shape in ((2, 3, 4), (1, 5, 4), (0, 2, 4)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        product = x @ constants["w"]
        np.testing.assert_array_equal(model.run({"x": x})["y"], product[..., :4] + product[..., 4:8])


@pytest.mark.parametrize("allowzero", [0, 1])
@pytest.mark.parametrize("last", [-1, 3])
def test_a_reshape_copies_open_sizes(allowzero, last):
    """As attention is spelled out: heads are split off, batch and sequence stay."""
    body = f"""
        b = Shape <start = 0, end = 1> (ids) t = Shape <start = 1, end = 2> (ids)
        e = Gather (table, ids) r = Relu (e) s = Concat <axis = 0> (b, t, two, last)
        y = Reshape <allowzero = {allowzero}> (r, s)
    """
    table = np.arange(-30, 30, dtype=np.float32).reshape(10, 6)
    proto = model_of(body, "int64[B,T] ids", "float[B,T,2,3] y", two=[2], last=[last], table=table)
    assert not {"Shape", "Concat"} & {*operators(proto)}
    model = onnxeval.load(proto)
    for shape in ((2, 5), (4, 1), (1, 1)):
        ids = np.arange(np.prod(shape)).reshape(shape) % 10
        np.testing.assert_array_equal(model.run({"ids": ids})["y"], table.clip(0)[ids].reshape(*shape, 2, 3))
    empty = np.zeros((0, 3), np.int64)
    if last == 3:
        assert model.run({"ids": empty})["y"].shape == (0, 3, 2, 3)
    else:  # nothing tells the -1 beside a size of 0
        for reference in (True, False):
            with pytest.raises(onnxeval.NodeError):
                model.run({"ids": empty}, reference=reference)


def test_a_zero_that_is_meant_stays():
    body = "b = Shape <start = 0, end = 1> (x) s = Concat <axis = 0> (b, zero) y = Reshape <allowzero = 1> (x, s)"
    model = onnxeval.load(model_of(body, "float[N,M] x", "float[N,K] y", zero=[0]))
    assert model.run({"x": np.zeros((3, 0), np.float32)})["y"].shape == (3, 0)
    with pytest.raises(onnxeval.NodeError):
        model.run({"x": np.zeros((3, 2), np.float32)})


def test_sizes_of_the_same_name_are_the_same():
    """And two inputs with open sizes are not: there the Reshape stays as it is."""
    body = "s = Shape (z) y = Reshape (x, s)"
    same = model_of(body, "float[A,B] x, float[A,B] z", "float[A,B] y")
    other = model_of(body, "float[A,B] x, float[C,D] z", "float[C,D] y")
    assert "Shape" not in operators(same)
    assert "Shape" in operators(other)
    x, z = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((3, 2), np.float32)
    np.testing.assert_array_equal(onnxeval.load(other).run({"x": x, "z": z})["y"], x.reshape(3, 2))


def test_inside_a_branch():
    """What the graph around knows of a captured value is known inside."""
    inner = helper.make_graph(
        [
            helper.make_node("Shape", ["p"], ["s"], start=-1),
            helper.make_node("Concat", ["minus", "s"], ["s2"], axis=0),
            helper.make_node("Reshape", ["p", "s2"], ["y1"]),
        ],
        "then",
        [],
        [helper.make_tensor_value_info("y1", 1, None)],
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["p"], ["y2"])], "else", [], [helper.make_tensor_value_info("y2", 1, None)]
    )
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["p"]),
            helper.make_node("If", ["which"], ["y"], then_branch=inner, else_branch=other),
        ],
        "g",
        [helper.make_tensor_value_info("x", 1, ["A", "B", 2]), helper.make_tensor_value_info("which", 9, [])],
        [helper.make_tensor_value_info("y", 1, None)],
        [
            numpy_helper.from_array(np.eye(2, 5, dtype=np.float32), "w"),
            numpy_helper.from_array(np.array([-1]), "minus"),
        ],
    )
    model = onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))
    (branch,) = [step for step in model.plan().steps if step.subgraphs]
    assert len(branch.subgraphs["then_branch"].steps) == 1
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    for which in (True, False, True):
        got = model.run({"x": x, "which": np.array(which)})["y"]
        product = x @ np.eye(2, 5, dtype=np.float32)
        np.testing.assert_array_equal(got, product.reshape(-1, 5) if which else product)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_arithmetic_on_sizes(data):
    """Against NumPy, with sizes in the place of some numbers: None draws a symbol for a size."""
    operator = data.draw(st.sampled_from(["Add", "Sub", "Mul", "Div", "Equal", "Concat", "Where"]))
    facts, sizes, values = Facts({}, {}), {}, {}
    count = data.draw(st.integers(1, 4))
    for key in ("a", "b"):
        drawn = data.draw(st.lists(st.one_of(st.integers(-3, 9), st.none()), min_size=count, max_size=count))
        symbols = [Symbol() if item is None else item for item in drawn]
        sizes.update({item: data.draw(st.integers(0, 9)) for item in symbols if isinstance(item, Symbol)})
        facts.numbers[key] = Numbers(np.dtype(np.int64), 1, tuple(symbols))
        facts.shapes[key] = (count,)
        values[key] = np.array([sizes.get(item, item) for item in symbols], np.int64)
    flags = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    facts.add_constant("flags", flags)
    inputs = ["flags", "a", "b"] if operator == "Where" else ["a", "b"]
    given_inputs = {name: {**values, "flags": flags}[name] for name in inputs}
    kinds = [helper.make_tensor_value_info(name, 9 if name == "flags" else 7, None) for name in inputs]
    node = helper.make_node(operator, inputs, ["y"], **({"axis": 0} if operator == "Concat" else {}))
    graph = helper.make_graph([node], "g", kinds, [onnx.ValueInfoProto(name="y")])
    model = onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))
    (step,) = model.plan(reference=True).steps
    facts.follow(step)
    if operator == "Div" and not values["b"].all():
        return
    assert_facts_hold(facts, {**given_inputs, **model.run(given_inputs, reference=True)}, sizes)


def test_of_numbers_some_are_open():
    """What is left of them says nothing of the others, which fail or do not."""
    body = """
        s = Shape (x) t = Concat <axis = 0> (s, two) u = {operator} (three, t) y = Slice (u, minus, end)
    """
    constants = {"two": [2], "three": [3], "minus": [-1], "end": [9]}
    for operator, expected in (("Add", 5), ("Div", 1)):
        model = onnxeval.load(model_of(body.format(operator=operator), "float[A] x", "int64[1] y", **constants))
        assert model.run({"x": np.zeros(4, np.float32)})["y"] == [expected]
    with pytest.raises(onnxeval.NodeError):
        model.run({"x": np.zeros(0, np.float32)}, reference=True)
    with pytest.raises(onnxeval.NodeError):
        model.run({"x": np.zeros(0, np.float32)})


def test_a_step_that_may_fail_stays_though_only_its_shape_is_read():
    proto = model_of(
        "p = MatMul (x, w) y = Shape (p)", "float[A,B,3] x", "int64[3] y", w=np.zeros((2, 3, 4), np.float32)
    )
    model = onnxeval.load(proto)
    assert model.run({"x": np.zeros((2, 5, 3), np.float32)})["y"].tolist() == [2, 5, 4]
    for reference in (True, False):
        with pytest.raises(onnxeval.NodeError, match="broadcast"):
            model.run({"x": np.zeros((3, 5, 3), np.float32)}, reference=reference)


def contrib(operator):
    """A node of com.microsoft, with constants for all inputs but the first, and that."""
    rng = np.random.default_rng(0)

    def codes(*shape):
        return rng.integers(0, 255, shape).astype(np.uint8)

    scale, zero = np.float32(0.1), np.uint8(3)
    if operator == "DynamicQuantizeLSTM":
        constants = {
            "w": codes(2, 5, 24),
            "r": codes(2, 6, 24),
            "b": None,
            "lengths": None,
            "h": None,
            "c": None,
            "p": None,
            "w_scale": np.full(2, scale),
            "w_zero": np.full(2, zero),
            "r_scale": np.full(2, scale),
            "r_zero": np.full(2, zero),
        }
        attributes = {"direction": "bidirectional", "hidden_size": 6}
        return constants, attributes, rng.standard_normal((4, 3, 5)).astype(np.float32), 3
    if operator == "DynamicQuantizeMatMul":
        constants = {"w": codes(5, 7), "w_scale": scale, "w_zero": zero}
        return constants, {}, rng.standard_normal((2, 3, 5)).astype(np.float32), 1
    constants = {"w": codes(5, 7), "x_scale": scale, "w_scale": scale, "x_zero": zero, "w_zero": zero}
    return constants, {}, codes(2, 3, 5), 1


@pytest.mark.parametrize("operator", ["DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"])
def test_operators_of_onnxruntime(operator):
    constants, attributes, x, count = contrib(operator)
    outputs = [f"y{place}" for place in range(count)]
    inputs = ["x", *(name if value is not None else "" for name, value in constants.items())]
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [helper.make_node(operator, inputs, outputs, domain="com.microsoft", **attributes)],
        "g",
        [helper.make_tensor_value_info("x", kind, None)],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items() if value is not None],
    )
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = onnxeval.load(helper.make_model(graph, opset_imports=imports, ir_version=9))
    (step,) = model.plan(reference=True).steps
    facts = Facts({"x": tuple([Symbol() for _ in x.shape])}, {})
    sizes = dict(zip(facts.shapes["x"], x.shape, strict=True))
    for name, value in constants.items():
        if value is not None:
            facts.add_constant(name, np.asarray(value))
    facts.follow(step)
    assert facts.shapes.keys() >= {*outputs}
    assert_facts_hold(facts, {"x": x, **model.run({"x": x})}, sizes)
