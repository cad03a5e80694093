"""Compiling: order, functions, opset imports, overridden initializers, and what cannot be compiled."""

import itertools

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import onnxeval
from onnxeval.model import load
from onnxeval.registry import STANDARD, OpKey

HEADER = '<ir_version: 10, opset_import: ["" : 21]>'
X = np.array([1.0, -2.0], np.float32)


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


@given(st.data())
def test_any_order_in_the_file_gives_the_same_result(data: st.DataObject) -> None:
    """A random DAG of additions, its nodes shuffled, against the sums worked out as it was drawn."""
    count = data.draw(st.integers(1, 12))
    truth = {"x0": 1.0}
    nodes = []
    for place in range(1, count + 1):
        one, other = data.draw(st.sampled_from(sorted(truth))), data.draw(st.sampled_from(sorted(truth)))
        nodes.append(helper.make_node("Add", [one, other], [f"x{place}"]))
        truth[f"x{place}"] = truth[one] + truth[other]
    last = f"x{count}"
    graph = helper.make_graph(
        data.draw(st.permutations(nodes)),
        "g",
        [helper.make_tensor_value_info("x0", TensorProto.DOUBLE, [])],
        [helper.make_tensor_value_info(last, TensorProto.DOUBLE, [])],
    )
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))
    assert model.run({"x0": np.array(1.0)})[last] == truth[last]


def test_a_cycle_is_told_by_its_nodes() -> None:
    model = parse(
        f"""{HEADER} g (float[2] x) => (float[2] y) {{
            [one] a = Add (x, c) [two] b = Neg (a) [three] c = Abs (b) y = Neg (c)
        }}"""
    )
    with pytest.raises(onnxeval.ModelError, match="cycle") as raised:
        load(model)
    trail = str(raised.value).partition(": ")[2].split(" -> ")
    assert trail[0] == trail[-1]
    flow = {"one (Add)": "two (Neg)", "two (Neg)": "three (Abs)", "three (Abs)": "one (Add)"}
    assert all(flow[one] == other for one, other in itertools.pairwise(trail))
    assert raised.value.exit_code == 3


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y = Neg (ghost)", r'^node 0 \(Neg\): value "ghost" is never defined'),
        ("y = Neg (xx)", r'value "xx" is never defined \(did you mean "x"\?\)'),
        ("y = Neg (x) y = Abs (x)", 'value "y" is defined twice'),
        ("x = Neg (y) y = Neg (x)", 'value "x" is defined twice'),
        ("a = Neg (x)", '^value "y" is never defined'),
        ("y = Neg (x, x)", "Neg-13 takes 1 inputs, 2 given"),
        ("y = Neg <zzz = 1> (x)", 'Neg-13 has no attribute "zzz"'),
        ("y = Elu <alpha = 1> (x)", '"alpha" is of type INT, Elu-6 declares FLOAT'),
        ("y = Cast (x)", "Cast-21 needs the attribute to"),
        ("y = acme.Scale (x)", 'domain "acme" is not among the opset imports'),
    ],
)
def test_a_model_that_contradicts_itself_is_a_model_error(body: str, message: str) -> None:
    with pytest.raises(onnxeval.ModelError, match=message):
        load(parse(f"{HEADER} g (float[2] x) => (float[2] y) {{ {body} }}")).run({"x": X})


def test_all_missing_operators_are_named_with_the_nearest_there_is() -> None:
    model = parse(
        """<ir_version: 10, opset_import: ["" : 13, "acme": 1]>
        g (float[2] x) => (float[2] y) { a = Negg (x) [new] b = Mish (a) y = acme.Scale (b) }"""
    )
    with pytest.raises(onnxeval.UnsupportedOperators) as raised:
        load(model).run({"x": X})
    assert [node for node, _ in raised.value.missing] == ["node 0 (Negg)", "new (Mish)", "node 2 (Scale)"]
    assert [reason for _, reason in raised.value.missing] == [
        "Negg is no operator of the standard (did you mean Neg?)",
        "Mish exists since opset 18, the model imports 13",
        'acme.Scale is neither a registered operator nor a function of the model (domain "acme")',
    ]
    assert "  Mish exists since opset 18, the model imports 13: new (Mish)" in str(raised.value).splitlines()
    assert raised.value.exit_code == 4


def test_a_newer_opset_than_the_standard_package_knows_is_refused() -> None:
    model = parse('<ir_version: 10, opset_import: ["" : 999]> g (float[2] x) => (float[2] y) { y = Neg (x) }')
    with pytest.raises(onnxeval.ModelError, match=r"opset 999 .* is newer than the installed onnx package knows"):
        load(model).run({"x": X})


def test_two_versions_of_one_domain_are_refused_however_it_is_spelled() -> None:
    model = parse('<ir_version: 10, opset_import: ["" : 13]> g (float[2] x) => (float[2] y) { y = Neg (x) }')
    model.opset_import.append(helper.make_opsetid("ai.onnx", 14))
    with pytest.raises(onnxeval.ModelError, match="imported at version 13 and at 14"):
        load(model)


def test_an_intermediate_is_computed_without_what_comes_after() -> None:
    model = load(parse(f"{HEADER} g (float[2] x) => (float[2] y) {{ h = Neg (x) y = Negg (h) }}"))
    assert model.run({"x": X}, outputs=["h"])["h"].tolist() == [-1, 2]
    with pytest.raises(onnxeval.UnsupportedOperators):
        model.run({"x": X})
    with pytest.raises(onnxeval.InputError, match='no value "hh"'):
        model.run({"x": X}, outputs=["hh"])


FUNCTION = """
<domain: "acme", opset_import: ["" : 21]>
Scale <factor: float = 2.0> (v) => (w) {
    f = Constant <value_float: float = @factor> ()
    w = Mul (v, f)
}
<domain: "acme", opset_import: ["" : 21, "acme" : 1]>
Twice (v) => (w) { u = acme.Scale (v)  w = acme.Scale <factor = 10.0> (u) }
"""


def test_functions_nest_and_attributes_reach_their_nodes() -> None:
    model = parse(
        '<ir_version: 10, opset_import: ["" : 21, "acme" : 1]>'
        "g (float[2] x) => (float[2] y) { h = acme.Twice (x) y = acme.Scale <factor = 0.5> (h) }" + FUNCTION
    )
    assert load(model).run({"x": X})["y"].tolist() == [10, -20]


def test_a_function_is_bound_by_its_own_opset() -> None:
    """Softmax of a rank-3 tensor at opset 12 normalises whole rows from axis 1 on."""
    model = parse(
        '<ir_version: 10, opset_import: ["" : 21, "acme" : 1]>'
        "g (float[1, 2, 2] x) => (float[1, 2, 2] y) { y = acme.Old (x) }"
        '<domain: "acme", opset_import: ["" : 12]> Old (v) => (w) { w = Softmax (v) }'
    )
    got = load(model).run({"x": np.zeros((1, 2, 2), np.float32)})["y"]
    np.testing.assert_allclose(got, np.full((1, 2, 2), 0.25))


def test_a_function_that_calls_itself_is_refused() -> None:
    model = parse(
        '<ir_version: 10, opset_import: ["" : 21, "acme" : 1]>'
        "g (float[2] x) => (float[2] y) { y = acme.A (x) }"
        '<domain: "acme", opset_import: ["acme" : 1]> A (v) => (w) { w = acme.B (v) }'
        '<domain: "acme", opset_import: ["acme" : 1]> B (v) => (w) { w = acme.A (v) }'
    )
    with pytest.raises(onnxeval.ModelError, match=r"acme.A calls itself: acme.A > acme.B > acme.A"):
        load(model).run({"x": X})


def test_a_function_that_shadows_an_operator_is_not_used_and_that_is_said() -> None:
    model = parse(
        '<ir_version: 10, opset_import: ["" : 21]>'
        "g (float[2] x) => (float[2] y) { y = Neg (x) }"
        '<domain: "", opset_import: ["" : 21]> Neg (v) => (w) { w = Abs (v) }'
    )
    loaded = load(model)
    assert loaded.run({"x": X})["y"].tolist() == [-1, 2]
    assert any("Neg is not used" in note for note in loaded.warnings)


def test_an_initializer_that_is_an_input_may_be_fed() -> None:
    graph = parse(f"{HEADER} g (float[2] x, float[2] w = {{10, 20}}) => (float[2] y) {{ y = Mul (x, w) }}")
    model = load(graph)
    assert [entry.optional for entry in model.inputs] == [False, True]
    assert model.run({"x": X})["y"].tolist() == [10, -40]
    assert model.run({"x": X, "w": X})["y"].tolist() == [1, 4]
    assert model.run({"x": X})["y"].tolist() == [10, -40]


def test_outside_the_standard_the_newest_version_not_above_the_import_serves() -> None:
    for version, factor in ((1, 2), (3, 5)):
        key = OpKey("test.compiler", "Times", version)
        if key not in STANDARD:
            onnxeval.op("Times", domain="test.compiler", versions=(version,))(
                lambda x, *, plus=0, f=factor: x * f + plus
            )
    for imported, factor in ((1, 2), (2, 2), (3, 5), (9, 5)):
        model = parse(
            f'<ir_version: 10, opset_import: ["" : 21, "test.compiler" : {imported}]>'
            "g (float[2] x) => (float[2] y) { y = test.compiler.Times <plus = 1> (x) }"
        )
        assert load(model).run({"x": X})["y"].tolist() == (X * factor + 1).tolist()


def test_registering_a_key_twice_names_both_functions() -> None:
    STANDARD.load_section("tensor")
    with pytest.raises(ValueError, match=r"13 is registered twice: depth_to_space \(depth_space.py:\d+\) and"):
        onnxeval.op("DepthToSpace", versions=(13,))(lambda x: x)


def test_deep_chains_of_functions_are_told_not_crashed_on() -> None:
    depth = 2000
    functions = "".join(
        f'<domain: "acme", opset_import: ["" : 21, "acme" : 1]> F{i} (v) => (w) {{ w = acme.F{i + 1} (v) }}'
        for i in range(depth)
    )
    model = parse(
        '<ir_version: 10, opset_import: ["" : 21, "acme" : 1]> g (float[2] x) => (float[2] y) { y = acme.F0 (x) }'
        + functions
        + f'<domain: "acme", opset_import: ["" : 21]> F{depth} (v) => (w) {{ w = Neg (v) }}'
    )
    with pytest.raises(onnxeval.ModelError, match="nested too deeply"):
        load(model).run({"x": X})
