"""Models as exporters and converters leave them: odd imports, names, orders and declarations. All of them run."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxeval

X = np.arange(8, dtype=np.float32).reshape(2, 2, 2)


def declared(name: str, shape: list | None = [2, 2, 2], element_type: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:  # noqa: B006  # read only
    return helper.make_tensor_value_info(name, element_type, shape)


def model_of(nodes: list, imports: dict[str, int] | None = None, ir_version: int = 10, **parts) -> onnx.ModelProto:
    """A model of ``nodes`` from x to y, float32[2, 2, 2]; ``parts`` replace or add to those of its graph."""
    functions = parts.pop("functions", ())
    inputs, outputs = parts.pop("inputs", [declared("x")]), parts.pop("outputs", [declared("y")])
    graph = helper.make_graph(nodes, "g", inputs, outputs, **parts)
    opsets = [helper.make_opsetid(*entry) for entry in ({"": 21} if imports is None else imports).items()]
    model = helper.make_model(graph, opset_imports=opsets, functions=functions)
    model.ir_version = ir_version
    return model


def run(proto: onnx.ModelProto, **feeds) -> tuple[dict, list[str]]:
    model = onnxeval.load(proto.SerializeToString())
    return model.run(feeds or {"x": X}), model.warnings


def softmax(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


SOFTMAX = [helper.make_node("Softmax", ["x"], ["y"])]
NEG = [helper.make_node("Neg", ["x"], ["y"])]


# Imports


@pytest.mark.parametrize(
    ("ir_version", "version", "axes"), [(3, 8, (1, 2)), (6, 11, (1, 2)), (7, 14, -1), (8, 18, -1), (10, 22, -1)]
)
def test_a_missing_import_means_the_newest_opset_of_the_ir_version(ir_version, version, axes) -> None:
    """Softmax flattens at axis 1 before opset 13."""
    got, warnings = run(model_of(SOFTMAX, {"ai.onnx.ml": 1}, ir_version))
    np.testing.assert_allclose(got["y"], softmax(X, axes), rtol=1e-6)
    assert warnings == [
        'the model uses operators of "ai.onnx" and does not import it: '
        f"taken at version {version}, the newest for the model's IR version"
    ]


def test_no_import_at_all_is_taken_the_same_way() -> None:
    got, warnings = run(model_of(NEG, {}))
    np.testing.assert_array_equal(got["y"], -X)
    assert "taken at version 22" in warnings[0]


def test_before_ir_version_3_no_import_means_version_1() -> None:
    elu = helper.make_node("Elu", ["x"], ["y"], consumed_inputs=[0])  # an attribute of the first version alone
    got, warnings = run(model_of([elu], {}, 2))
    np.testing.assert_array_equal(got["y"], X)
    assert warnings == []


def test_the_machine_learning_operators_can_be_missing_too() -> None:
    node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=3.0)
    got, warnings = run(model_of([node], {"": 15}, 8))
    np.testing.assert_array_equal(got["y"], (X > 3).astype(np.float32))
    assert '"ai.onnx.ml" and does not import it: taken at version 3' in warnings[0]


def test_operators_of_onnxruntime_need_no_import() -> None:
    node = helper.make_node("FusedMatMul", ["x", "x"], ["y"], domain="com.microsoft", alpha=2.0)
    got, warnings = run(model_of([node]))
    np.testing.assert_allclose(got["y"], 2 * X @ X)
    assert '"com.microsoft" and does not import it' in warnings[0]


@pytest.mark.parametrize("imported", ["", "ai.onnx"])
@pytest.mark.parametrize("used", ["", "ai.onnx"])
def test_ai_onnx_is_the_empty_domain(imported: str, used: str) -> None:
    body = [helper.make_node("Neg", ["a"], ["b"], domain=used)]
    function = helper.make_function(used, "Opposite", ["a"], ["b"], body, [helper.make_opsetid(imported, 21)])
    nodes = [helper.make_node("Opposite", ["x"], ["t"]), helper.make_node("Abs", ["t"], ["y"], domain=used)]
    got, warnings = run(model_of(nodes, {imported: 21}, functions=[function]))
    np.testing.assert_array_equal(got["y"], X)
    assert warnings == []


def test_both_spellings_may_be_imported_at_one_version() -> None:
    got, _ = run(model_of(NEG, {"": 21, "ai.onnx": 21}))
    np.testing.assert_array_equal(got["y"], -X)
    with pytest.raises(onnxeval.ModelError, match=r"imported at version 21 and at 20"):
        onnxeval.load(model_of(NEG, {"": 21, "ai.onnx": 20}))


def test_unused_imports_may_be_unknown_and_newer_than_any() -> None:
    got, warnings = run(model_of(NEG, {"": 21, "org.pytorch.aten": 1, "ai.onnx.ml": 99, "com.acme": 2**40}))
    np.testing.assert_array_equal(got["y"], -X)
    assert warnings == []


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (model_of(NEG, {"": 99}), r'opset 99 of "ai.onnx" is newer than the installed onnx package knows \(\d+\)'),
        (model_of(NEG, ir_version=99), r"has IR version 99, the installed onnx .* knows versions up to \d+"),
    ],
)
def test_what_is_newer_than_known_is_told_with_a_way_out(proto: onnx.ModelProto, message: str) -> None:
    with pytest.raises(onnxeval.ModelError, match=message) as raised:
        run(proto)
    assert raised.value.exit_code == 3
    assert "upgrade the onnx package, or export the model for an older" in raised.value.hint


# Names and order


@pytest.mark.parametrize("name", ["a b", "a/b:0", "x=1", "*", "∂η", "\n", "a\0b", "0", "None", "..", "🙂" * 300])
def test_names_may_hold_any_character(name: str) -> None:
    nodes = [helper.make_node("Neg", [name], [name + "'"], name=name), helper.make_node("Abs", [name + "'"], ["y"])]
    got, _ = run(model_of(nodes, inputs=[declared(name)]), **{name: X})
    np.testing.assert_array_equal(got["y"], X)


def test_nodes_may_share_a_name_or_have_none() -> None:
    nodes = [helper.make_node("Neg", ["x"], ["t"], name="n"), helper.make_node("Exp", ["t"], ["y"], name="n")]
    np.testing.assert_allclose(run(model_of(nodes))[0]["y"], np.exp(-X))


def test_the_file_may_hold_the_nodes_in_any_order() -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["y"]), helper.make_node("Neg", ["a"], ["b"])]
    got, _ = run(model_of([*nodes, helper.make_node("Exp", ["x"], ["a"])]))
    np.testing.assert_array_equal(got["y"], np.zeros_like(X))


def test_inputs_outputs_and_initializers_without_a_name_are_ignored() -> None:
    blank = [numpy_helper.from_array(X), numpy_helper.from_array(X)]
    proto = model_of(
        NEG, inputs=[declared("x"), declared("")], outputs=[declared(""), declared("y")], initializer=blank
    )
    got, warnings = run(proto)
    assert list(got) == ["y"]
    assert warnings == ["2 of the graph's inputs and outputs have no name: they are ignored"]


def test_a_blank_output_is_not_kept() -> None:
    nodes = [helper.make_node("Dropout", ["x"], ["t", ""]), helper.make_node("MaxPool", ["t"], ["y"], kernel_shape=[1])]
    np.testing.assert_array_equal(run(model_of(nodes))[0]["y"], X)


def test_an_output_that_an_operator_always_gives_may_be_blank() -> None:
    k = numpy_helper.from_array(np.array([1]), "k")
    nodes = [helper.make_node("TopK", ["x", "k"], ["", "i"])]
    proto = model_of(nodes, initializer=[k], outputs=[declared("i", [2, 2, 1], TensorProto.INT64)])
    np.testing.assert_array_equal(run(proto)[0]["i"], np.ones((2, 2, 1)))


def test_inputs_and_initializers_can_be_outputs() -> None:
    proto = model_of([], initializer=[numpy_helper.from_array(X + 1, "w")], outputs=[declared("w"), declared("x")])
    got, _ = run(proto)
    np.testing.assert_array_equal(got["w"], X + 1)
    np.testing.assert_array_equal(got["x"], X)


def test_attributes_that_begin_with_two_underscores_are_a_tools_own() -> None:
    node = helper.make_node("Neg", ["x"], ["y"], __layer__="encoder", __ints=[1, 2])
    np.testing.assert_array_equal(run(model_of([node]))[0]["y"], -X)
    with pytest.raises(onnxeval.ModelError, match='Neg-13 has no attribute "_layer"'):
        run(model_of([helper.make_node("Neg", ["x"], ["y"], _layer="encoder")]))


# Initializers


@pytest.mark.parametrize("ir_version", [3, 4, 10])
@pytest.mark.parametrize("listed", [True, False])
def test_initializers_may_be_inputs_or_not_at_any_ir_version(ir_version: int, listed: bool) -> None:
    """Before IR version 4 they had to be; then who is among the inputs can be fed."""
    inputs = [declared("w"), declared("x")] if listed else [declared("x")]
    node = helper.make_node("Sub", ["x", "w"], ["y"])
    proto = model_of([node], {"": 8}, ir_version, inputs=inputs, initializer=[numpy_helper.from_array(X * 3, "w")])
    model = onnxeval.load(proto)
    np.testing.assert_array_equal(model.run({"x": X})["y"], -2 * X)
    if listed:
        np.testing.assert_array_equal(model.run({"x": X, "w": X})["y"], np.zeros_like(X))
        np.testing.assert_array_equal(model.run({"x": X})["y"], -2 * X)


def test_an_initializer_of_a_sub_graph_may_be_listed_among_its_inputs() -> None:
    """IR version 3 lists them after the inputs that the operator gives: none for If."""
    branch = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["t"])],
        "branch",
        [declared("w")],
        [declared("t")],
        initializer=[numpy_helper.from_array(X, "w")],
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    proto = model_of([node], {"": 8}, 3, inputs=[declared("x"), declared("c", [], TensorProto.BOOL)])
    np.testing.assert_array_equal(run(proto, x=X, c=np.array(True))[0]["y"], 2 * X)


# Declarations that contradict the truth


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (declared("y", [8]), "is float32[2, 2, 2], the model declares float32[8]"),
        (declared("y", [2, 3, 2]), "is float32[2, 2, 2], the model declares float32[2, 3, 2]"),
        (declared("y", None, TensorProto.INT64), "is float32[2, 2, 2], the model declares int64"),
        (declared("y", ["N", 2, 2]), "is float32[2, 2, 2], the model declares float32[N, 2, 2], N is 5 in the inputs"),
        (
            helper.make_value_info("y", helper.make_sequence_type_proto(declared("", None).type)),
            "is float32[2, 2, 2], the model declares seq(float32)",
        ),
    ],
)
def test_a_wrong_declaration_of_an_output_is_told_and_changes_nothing(wrong: onnx.ValueInfoProto, told: str) -> None:
    got, warnings = run(
        model_of(NEG, inputs=[declared("x"), declared("n", ["N"])], outputs=[wrong]), x=X, n=np.zeros(5, np.float32)
    )
    np.testing.assert_array_equal(got["y"], -X)
    assert warnings == [f'the value "y" {told}']


@pytest.mark.parametrize(
    "right",
    [
        declared("y", ["A", "B", 2]),
        declared("y", [None, -1, 2]),
        declared("y", None),
        declared("y", None, TensorProto.UNDEFINED),
        onnx.ValueInfoProto(name="y"),
    ],
)
def test_an_open_declaration_of_an_output_fits(right: onnx.ValueInfoProto) -> None:
    got, warnings = run(model_of(NEG, outputs=[right]))
    np.testing.assert_array_equal(got["y"], -X)
    assert warnings == []


def test_a_wrong_value_info_is_told_of_the_values_asked_for() -> None:
    nodes = [helper.make_node("Neg", ["x"], ["t"]), helper.make_node("Abs", ["t"], ["y"])]
    model = onnxeval.load(model_of(nodes, value_info=[declared("t", [1], TensorProto.INT32), declared("y", [9])]))
    np.testing.assert_array_equal(model.run({"x": X})["y"], X)
    assert model.warnings == []
    np.testing.assert_array_equal(model.run({"x": X}, ["t"])["t"], -X)
    assert model.warnings == ['the value "t" is float32[2, 2, 2], the model declares int32[1]']


def test_warnings_do_not_grow_with_every_run() -> None:
    model = onnxeval.load(model_of(NEG, inputs=[declared("x", ["N"])], outputs=[declared("y", [1])]))
    for size in range(2, 5):
        model.run({"x": np.zeros(size, np.float32)})
    assert model.warnings == ['the value "y" is float32[4], the model declares float32[1]']
