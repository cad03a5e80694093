"""Functions of the model as exporters write them: nested, overloaded, with attribute references and defaults."""

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper

import onnxeval

X = np.array([1.0, -2.0, 3.0], np.float32)


def parse(functions: str, body: str, header: str = '"": 21, "loc": 1') -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"<ir_version: 10, opset_import: [{header}]> g (float[3] x) => (float[3] y) {{ {body} }} {functions}"
    )


def y(proto: onnx.ModelProto) -> list[float]:
    return onnxeval.load(proto).run({"x": X})["y"].tolist()


NESTED = """
<domain: "loc", opset_import: ["": 21, "loc": 1]> twice (a) => (b) { t = loc.step (a) b = loc.step (t) }
<domain: "loc", opset_import: ["": 21, "loc": 1]> step (a) => (b) { t = loc.plus_one (a) b = Add (t, a) }
<domain: "loc", opset_import: ["": 21]> plus_one (a) => (b) { one = Constant <value_float = 1.0> () b = Add (a, one) }
"""


def test_functions_call_functions_of_any_order() -> None:
    """step(a) = 2 a + 1, so twice(a) = 4 a + 3."""
    assert y(parse(NESTED, "y = loc.twice (x)")) == (4 * X + 3).tolist()


def test_the_same_function_serves_many_calls() -> None:
    assert y(parse(NESTED, "a = loc.step (x) b = loc.step (a) y = Sub (b, a)")) == ((4 * X + 3) - (2 * X + 1)).tolist()


def call(op_type: str, inputs: list[str], outputs: list[str], overload: str = "", **attributes) -> onnx.NodeProto:
    node = helper.make_node(op_type, inputs, outputs, domain="loc", **attributes)
    node.overload = overload
    return node


def model_of(nodes: list, functions: list) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("loc", 1)]
    graph = helper.make_graph(nodes, "g", [x], [y])
    return helper.make_model(graph, ir_version=10, opset_imports=imports, functions=functions)


def function_of(name: str, nodes: list, overload: str = "", **more) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("loc", 1)]
    function = helper.make_function("loc", name, ["a"], ["b"], nodes, imports, **more)
    function.overload = overload
    return function


def test_overloads_of_a_function_are_functions_of_their_own() -> None:
    functions = [
        function_of("f", [helper.make_node("Neg", ["a"], ["b"])]),
        function_of("f", [helper.make_node("Abs", ["a"], ["b"])], overload="abs"),
        function_of("f", [call("f", ["a"], ["t"]), call("f", ["t"], ["b"], "abs")], overload="both"),
    ]
    proto = model_of([call("f", ["x"], ["s"]), call("f", ["s"], ["t"], "both"), call("f", ["t"], ["y"])], functions)
    assert y(proto) == (-np.abs(X)).tolist()
    with pytest.raises(onnxeval.OnnxEvalError, match=r"loc.f"):
        y(model_of([call("f", ["x"], ["y"], "none")], functions))


def reference(node: onnx.NodeProto, name: str, kind: int, to: str) -> onnx.NodeProto:
    node.attribute.add(name=name, type=kind, ref_attr_name=to)
    return node


def leaky(to: str) -> onnx.NodeProto:
    return reference(helper.make_node("LeakyRelu", ["a"], ["b"]), "alpha", AttributeProto.FLOAT, to)


@pytest.mark.parametrize(
    ("given", "slope"),
    [({"slope": 0.5}, 0.5), ({}, 0.25)],
)
def test_an_attribute_of_a_function_has_a_default_or_is_given(given: dict, slope: float) -> None:
    function = function_of("f", [leaky("slope")], attribute_protos=[helper.make_attribute("slope", 0.25)])
    assert y(model_of([call("f", ["x"], ["y"], **given)], [function])) == np.where(X < 0, slope * X, X).tolist()


@pytest.mark.parametrize(("given", "slope"), [({"slope": 0.5}, 0.5), ({}, np.float32(0.01))])
def test_an_attribute_without_a_default_leaves_the_operators_own(given: dict, slope: float) -> None:
    function = function_of("f", [leaky("slope")], attributes=["slope"])
    expected = np.where(X < 0, np.float32(slope) * X, X)
    assert y(model_of([call("f", ["x"], ["y"], **given)], [function])) == expected.tolist()


def test_references_go_through_nested_calls_under_new_names() -> None:
    inner = function_of("inner", [leaky("slope")], attribute_protos=[helper.make_attribute("slope", 9.0)])
    through = reference(call("inner", ["a"], ["b"]), "slope", AttributeProto.FLOAT, "outer_slope")
    outer = function_of("outer", [through], attribute_protos=[helper.make_attribute("outer_slope", 2.0)])
    nodes = [call("outer", ["x"], ["t"], outer_slope=3.0), call("outer", ["t"], ["y"])]
    assert y(model_of(nodes, [inner, outer])) == np.where(X < 0, 6 * X, X).tolist()


def test_references_reach_into_sub_graphs_of_the_body() -> None:
    proto = parse(
        """<domain: "loc", opset_import: ["": 21]> f <slope: float = 4.0> (a) => (b) {
            c = Constant <value = bool {1}> ()
            b = If (c) <
                then_branch = t () => (r) { r = LeakyRelu <alpha: float = @slope> (a) },
                else_branch = e () => (r) { r = Identity (a) }
            >
        }""",
        "y = loc.f (x)",
    )
    assert y(proto) == np.where(X < 0, 4 * X, X).tolist()


def test_a_tensor_and_a_list_can_be_attributes_of_a_function() -> None:
    value = reference(helper.make_node("Constant", [], ["c"]), "value", AttributeProto.TENSOR, "offset")
    nodes = [value, helper.make_node("Add", ["a", "c"], ["b"])]
    offset = onnx.numpy_helper.from_array(np.array([10, 20, 30], np.float32))
    assert y(model_of([call("f", ["x"], ["y"], offset=offset)], [function_of("f", nodes, attributes=["offset"])])) == [
        11,
        18,
        33,
    ]


def test_inputs_and_outputs_that_a_call_leaves_out() -> None:
    """A body reads an absent input as its operators read one."""
    function = helper.make_function(
        "loc",
        "clip",
        ["a", "low", "high"],
        ["b", "mask"],
        [helper.make_node("Clip", ["a", "low", "high"], ["b"]), helper.make_node("Equal", ["a", "b"], ["mask"])],
        [helper.make_opsetid("", 21)],
    )
    zero = onnx.numpy_helper.from_array(np.array(0, np.float32), "zero")
    proto = model_of([call("clip", ["x", "", "zero"], ["y"])], [function])
    proto.graph.initializer.append(zero)
    assert y(proto) == np.minimum(X, 0).tolist()


def test_a_function_without_the_imports_it_needs_has_those_of_the_model() -> None:
    proto = parse(
        '<domain: "loc", opset_import: ["loc": 1]> f (a) => (b) { t = Neg (a) b = other.g (t) }'
        '<domain: "other", opset_import: ["": 21]> g (a) => (b) { b = Abs (a) }',
        "y = loc.f (x)",
        '"": 21, "loc": 1, "other": 1',
    )
    model = onnxeval.load(proto)
    assert model.run({"x": X})["y"].tolist() == np.abs(X).tolist()
    assert [warning.partition(":")[0] for warning in model.warnings] == [
        'function loc.f uses operators of "ai.onnx" and does not import it',
        'function loc.f uses operators of "other" and does not import it',
    ]
