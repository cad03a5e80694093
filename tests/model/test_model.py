"""The Python API: load, run, feeds against their declaration, the backend interface."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxeval
from onnxeval import backend
from onnxeval.dtypes import BY_ELEMENT_TYPE, STRING, name_of
from onnxeval.values import Sequence, TensorType

HEADER = '<ir_version: 10, opset_import: ["" : 21]>'


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def identity(type_text: str) -> onnxeval.Model:
    return onnxeval.load(parse(f"{HEADER} g ({type_text} x) => ({type_text} y) {{ y = Identity (x) }}"))


def test_inputs_and_outputs_tell_what_is_declared() -> None:
    model = onnxeval.load(parse(f"{HEADER} g (float[N, 3] x, int64[1] n) => (y) {{ y = Expand (x, n) }}"))
    assert [(entry.name, entry.dtype, entry.shape) for entry in model.inputs] == [
        ("x", np.float32, ("N", 3)),
        ("n", np.int64, (1,)),
    ]
    assert [(entry.name, entry.type, entry.shape) for entry in model.outputs] == [("y", None, None)]


def test_a_model_shows_what_it_takes_and_gives() -> None:
    model = onnxeval.load(parse(f"{HEADER} g (float[N, 3] x, int64[1] n) => (y) {{ y = Expand (x, n) }}"))
    assert repr(model) == "<Model: x float32[N, 3], n int64[1] -> y>"


def test_public_names_are_listed_before_they_are_imported() -> None:
    assert dir(onnxeval) == sorted(onnxeval.__all__)
    assert all(hasattr(onnxeval, name) for name in onnxeval.__all__)


def test_outputs_come_in_the_graphs_order_or_as_asked_for() -> None:
    model = onnxeval.load(
        parse(f"{HEADER} g (float[2] x) => (float[2] b, float[2] a) {{ a = Neg (x) h = Abs (a) b = Neg (h) }}")
    )
    x = np.array([1, -2], np.float32)
    assert list(model.run({"x": x})) == ["b", "a"]
    assert list(model.run({"x": x}, outputs=["h", "x", "a"])) == ["h", "x", "a"]
    assert model.values == ("x", "a", "h", "b")


TWO = f"{HEADER} g (float[N, 2] x, float[N] w) => (float[N, 2] y) {{ y = Identity (x) }}"
GOOD = {"x": np.zeros((3, 2), np.float32), "w": np.zeros(3, np.float32)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, 'input "x" is None'),
        ({"q": np.zeros(1)}, 'no input "q"'),
        ({"x": np.zeros((3, 2))}, 'input "x" is float64, the model declares float32'),
        ({"x": np.zeros(3, np.float32)}, r'input "x" has shape \[3\], the model declares float32\[N, 2\]'),
        ({"x": np.zeros((3, 3), np.float32)}, r"\[3, 3\], the model declares float32\[N, 2\]: axis 1 differs"),
        ({"w": np.zeros(4, np.float32)}, 'N is 4 here and 3 in "x"'),
        ({"x": [[1, 2], [3]]}, 'input "x" cannot become a tensor'),
        ({"x": np.array([["a", "b"]] * 3)}, 'input "x" is string'),
        ({"x": {"a": 1}}, "input"),
        ({"x": Sequence([np.zeros(2, np.float32)] * 3)}, 'input "x" is a sequence of 3 float32, the model'),
    ],
)
def test_feeds_are_held_against_their_declaration(changes: dict, message: str) -> None:
    model = onnxeval.load(parse(TWO))
    model.run(GOOD)
    with pytest.raises(onnxeval.InputError, match=message) as raised:
        model.run({**GOOD, **changes})
    assert raised.value.exit_code == 5


SCALAR = HEADER + " g ({} x) => ({} y) {{ y = Cast <to = 1> (x) }}"


@pytest.mark.parametrize(
    ("declared", "value", "message"),
    [
        ("uint64", -1, "holds -1, which uint64 cannot"),
        ("int4", 8, "holds 8, which int4 cannot"),
        ("float", 1e39, r"holds 1e\+39, which float32 cannot"),
        ("bfloat16", 3.4e38, r"holds 3.4e\+38, which bfloat16 cannot"),
        ("float8e4m3fn", 1000, "holds 1000, which float8e4m3fn cannot"),
        ("float", [1], "has shape"),
        ("float", "1", 'input "x" is string'),
        ("string", [1, "a"], "holds int 1, expected strings"),
        ("string", "\ud800", "half a character"),
        ("bool", 1, 'input "x" is int64'),
        ("float", object(), "cannot become a tensor|holds object"),
    ],
)
def test_python_numbers_that_the_declared_type_cannot_hold(declared: str, value: object, message: str) -> None:
    model = onnxeval.load(parse(SCALAR.format(declared, "float")))
    with pytest.raises(onnxeval.InputError, match=message):
        model.run({"x": value})


def test_python_numbers_are_rounded_once() -> None:
    """Just above the tie of two bfloat16 numbers: by way of float32 it would be the lower, even one."""
    model = onnxeval.load(parse(SCALAR.format("bfloat16", "float")))
    assert model.run({"x": 1 + 2**-8 + 2**-30})["y"] == 1 + 2**-7
    assert model.run({"x": [-float("inf")][0]})["y"] == -np.inf


@pytest.mark.parametrize("value", [[1], [object()], [[[]]], {1.5: 1}, {2**63: 1}, {1: "a"}, 3, None])
def test_python_objects_that_are_no_map(value: object) -> None:
    proto = parse(f"{HEADER} g (float x) => (float y) {{ y = Neg (x) }}")
    proto.graph.input[0].type.map_type.key_type = TensorProto.INT64
    proto.graph.input[0].type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    with pytest.raises(onnxeval.InputError, match='input "x"'):
        onnxeval.load(proto).run({"x": value})


def test_missing_feeds_are_all_named() -> None:
    with pytest.raises(onnxeval.InputError, match=r'the inputs "x" \(float32\[N, 2\]\), "w" \(float32\[N\]\)'):
        onnxeval.load(parse(TWO)).run({})


def test_feeds_without_names_and_outputs_that_are_no_list_are_refused() -> None:
    model = onnxeval.load(parse(TWO))
    with pytest.raises(onnxeval.InputError, match="the feeds are a list, not a dict"):
        model.run([GOOD["x"], GOOD["w"]])
    with pytest.raises(onnxeval.InputError, match='a list of names, not the text "y"') as raised:
        model.run(GOOD, outputs="y")
    assert raised.value.hint == 'outputs=["y"]'


def test_a_name_that_is_nearly_right_gets_a_hint() -> None:
    model = onnxeval.load(parse(f"{HEADER} g (float[1] image) => (float[1] y) {{ y = Neg (image) }}"))
    with pytest.raises(onnxeval.InputError) as raised:
        model.run({"imgae": np.zeros(1, np.float32)})
    assert raised.value.hint == 'did you mean "image"?'


def test_python_numbers_take_the_declared_type_where_it_can_hold_them() -> None:
    assert identity("float[2]").run({"x": [1, 2.5]})["y"].dtype == np.float32
    assert identity("uint8[]").run({"x": 7})["y"].dtype == np.uint8
    with pytest.raises(onnxeval.InputError, match="holds 300, which uint8 cannot"):
        identity("uint8[]").run({"x": 300})
    with pytest.raises(onnxeval.InputError, match="is float64, the model declares int64"):
        identity("int64[]").run({"x": 1.5})


@pytest.mark.parametrize("element_type", BY_ELEMENT_TYPE, ids=TensorProto.DataType.Name)
def test_every_element_type_flows(element_type: int) -> None:
    dtype = BY_ELEMENT_TYPE[element_type]
    x = np.array(["a", "\0"], object) if dtype == STRING else np.ones(2).astype(dtype)
    info = [helper.make_tensor_value_info(name, element_type, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=element_type)], "g", info[:1], info[1:])
    model = onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)]))
    got = model.run({"x": x}, outputs=["x"])["x"]
    assert got.dtype == dtype, name_of(dtype)
    assert got.tolist() == x.tolist()


def test_npy_forms_of_what_numpy_does_not_know_are_viewed_as_declared() -> None:
    halves = np.array([1, -2], ml_dtypes.bfloat16)
    assert identity("bfloat16[2]").run({"x": halves.view("V2")})["y"].tolist() == [1, -2]
    assert identity("string[2]").run({"x": np.array(["a", "bc"])})["y"].tolist() == ["a", "bc"]
    assert identity("float[1]").run({"x": np.array([1.5], ">f4")})["y"].tolist() == [1.5]


def test_sequences_maps_and_optionals_are_plain_python() -> None:
    model = onnxeval.load(parse(f"{HEADER} g (seq(float[N]) x) => (seq(float[N]) y) {{ y = Identity (x) }}"))
    got = model.run({"x": [np.ones(1, np.float32), np.ones(2, np.float32)]})["y"]
    assert isinstance(got, Sequence)
    assert [len(item) for item in got] == [1, 2]
    empty = model.run({"x": []})["y"]
    assert empty == []
    assert empty.element_type == TensorType(np.dtype(np.float32))
    optional = onnxeval.load(
        parse(f"{HEADER} g (optional(float[2]) x) => (optional(float[2]) y) {{ y = Identity (x) }}")
    )
    assert optional.run({"x": None})["y"] is None
    assert optional.run({})["y"] is None
    assert optional.run({"x": np.ones(2, np.float32)})["y"].tolist() == [1, 1]


def test_results_do_not_change_when_the_model_runs_again() -> None:
    model = identity("float[2]")
    x = np.array([1, 2], np.float32)
    first = model.run({"x": x})["y"]
    model.run({"x": x * 2})
    assert first.tolist() == [1, 2]


def test_the_backend_interface() -> None:
    model = parse(f"{HEADER} g (float[2] x, float[2] w = {{10, 20}}) => (float[2] y) {{ y = Mul (x, w) }}")
    x = np.array([1, -2], np.float32)
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA:0")
    assert backend.is_compatible(model)
    for inputs in (x, [x], {"x": x}):
        assert backend.prepare(model).run(inputs)[0].tolist() == [10, -40]
    assert backend.run_model(model, [x, x])[0].tolist() == [1, 4]
    (neg,) = backend.run_node(helper.make_node("Neg", ["x"], ["y"]), [x])
    assert neg.tolist() == [-1, 2]
    binarizer = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=0.0)
    assert backend.run_node(binarizer, [x])[0].tolist() == [1, 0]
    clip = helper.make_node("Clip", ["x", "", "high"], ["y"])
    assert backend.run_node(clip, [x, np.float32(0.5)])[0].tolist() == [0.5, -2]
    with pytest.raises(ValueError, match="reads 2 inputs, 1 are given"):
        backend.run_node(clip, [x])
    with pytest.raises(ValueError, match="not on 'CUDA'"):
        backend.prepare(model, "CUDA")
    with pytest.raises(ValueError, match="has 2 inputs, 3 are given"):
        backend.prepare(model).run([x, x, x])
