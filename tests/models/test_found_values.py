"""What models take and give besides tensors of numbers: sequences, maps, optionals and strings."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxeval
from onnxeval.values import MapType, Sequence, TensorType


def parse(text: str, imports: str = '"": 21, "ai.onnx.ml": 3') -> onnx.ModelProto:
    return onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]> {text}")


def strings(*texts: str) -> np.ndarray:
    return np.array(texts, object)


def test_a_sequence_of_tensors_of_different_shapes_is_an_output() -> None:
    model = onnxeval.load(
        parse("g (float[N] x, int64[M] s) => (seq(float[K]) y) { y = SplitToSequence <axis = 0> (x, s) }")
    )
    got = model.run({"x": np.arange(6, dtype=np.float32), "s": np.array([1, 2, 3])})["y"]
    assert isinstance(got, Sequence)
    assert [item.tolist() for item in got] == [[0], [1, 2], [3, 4, 5]]
    assert got.element_type == TensorType(np.dtype(np.float32))
    assert model.warnings == []


def test_sequences_go_in_and_come_out_changed() -> None:
    model = onnxeval.load(
        parse("g (seq(int64[N]) s, int64[N] x, int64 i) => (seq(int64[N]) y) { y = SequenceInsert (s, x, i) }")
    )
    feeds = {"s": [np.array([1, 2])], "x": np.array([3, 4]), "i": np.array(0)}
    assert [item.tolist() for item in model.run(feeds)["y"]] == [[3, 4], [1, 2]]


def test_a_sequence_with_elements_of_another_type_than_declared_is_told() -> None:
    model = onnxeval.load(parse("g (int64[N] x) => (seq(float[N]) y) { y = SequenceConstruct (x, x) }"))
    assert len(model.run({"x": np.array([1])})["y"]) == 2
    assert model.warnings == ['the value "y" is sequence of 2 int64, the model declares seq(float32[N])']


@pytest.mark.parametrize(
    ("attribute", "keys", "key_type"),
    [
        ("classlabels_int64s = [7, 3]", [7, 3], np.dtype(np.int64)),
        ('classlabels_strings = ["a", "b"]', ["a", "b"], np.dtype(object)),
    ],
)
def test_class_probabilities_come_as_a_sequence_of_maps(attribute: str, keys: list, key_type: np.dtype) -> None:
    """What converters of scikit-learn write by default."""
    element = "int64" if key_type.kind == "i" else "string"
    model = onnxeval.load(
        parse(f"g (float[N, 2] x) => (seq(map({element}, float)) y) {{ y = ai.onnx.ml.ZipMap <{attribute}> (x) }}")
    )
    x = np.array([[0.25, 0.75], [1, 0]], np.float32)
    got = model.run({"x": x})["y"]
    assert got == [dict(zip(keys, row, strict=True)) for row in x.tolist()]
    assert got.element_type == MapType(key_type, TensorType(np.dtype(np.float32)))
    assert model.warnings == []


def test_a_map_is_an_input_and_can_be_asked_for() -> None:
    node = 'ai.onnx.ml.DictVectorizer <string_vocabulary = ["c", "a", "b"]> (m)'
    model = onnxeval.load(parse(f"g (map(string, float) m) => (float[3] y) {{ y = {node} }}"))
    assert model.run({"m": {"a": 1.5, "b": 2.0}})["y"].tolist() == [0, 1.5, 2]
    assert model.run({"m": {"a": 1.5}}, ["m"])["m"] == {"a": 1.5}


def test_an_optional_is_an_output_with_and_without_a_value() -> None:
    model = onnxeval.load(parse("g (optional(float[N]) x) => (optional(float[N]) y) { y = Identity (x) }"))
    assert model.run({"x": np.ones(2, np.float32)})["y"].tolist() == [1, 1]
    assert model.run({"x": None})["y"] is None
    assert model.warnings == []


def test_strings_of_any_kind_flow_through_a_model() -> None:
    text = """g (string[N] x, string[M] w) => (string[N] y, bool[N] same, string[K] both, int64[N] code)
        <string[2] w = {"", "ünï\u0000cödé"}> {
            y = StringNormalizer <case_change_action = "UPPER", is_case_sensitive = 1> (x)
            same = Equal (x, y)
            both = Concat <axis = 0> (x, w)
            code = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "B"], values_int64s = [5, 6], default_int64 = -1> (x)
        }"""
    proto = parse(text.replace('"ünï\u0000cödé"', '"u"'))
    proto.graph.initializer[0].string_data[1] = "ünï\0cödé".encode()
    got = onnxeval.load(proto).run({"x": strings("a", "B", "long " * 50)})
    assert got["y"].tolist() == ["A", "B", "LONG " * 50]
    assert got["same"].tolist() == [False, True, False]
    assert got["both"].tolist() == ["a", "B", "long " * 50, "", "ünï\0cödé"]
    assert got["code"].tolist() == [5, 6, -1]


def test_strings_can_be_chosen_gathered_and_compared() -> None:
    model = onnxeval.load(
        parse(
            """g (string[N] x, int64[K] i, bool[K] c) => (string[K] y, string[U] unique) {
                picked = Gather (x, i)
                other = Constant <value_strings = ["none"]> ()
                y = Where (c, picked, other)
                unique = Unique (y)
            }"""
        )
    )
    got = model.run({"x": strings("b", "a"), "i": np.array([1, 0, 1]), "c": np.array([True, True, False])})
    assert got["y"].tolist() == ["a", "b", "none"]
    assert got["unique"].tolist() == ["a", "b", "none"]


def test_a_model_without_inputs_or_without_nodes() -> None:
    assert onnxeval.load(parse("g () => (float y) { y = Constant <value_float = 1.5> () }")).run({})["y"].item() == 1.5
    graph = helper.make_graph([], "g", [helper.make_tensor_value_info("x", TensorProto.INT8, [1])], [])
    assert onnxeval.load(helper.make_model(graph)).run({"x": np.zeros(1, np.int8)}) == {}
