"""Rules on the values of attributes: what the text of each version allows, and no more."""

import onnx
import pytest
from onnx import AttributeProto, ModelProto, helper

import onnxeval
from onnxeval.checks import values
from onnxeval.schema import Schema, all_schemas

LISTED = [
    (schema, attribute, versions)
    for operators, attribute, versions in values._NAMES
    for schema in all_schemas()
    if schema.key.op_type in operators.split() and attribute in schema.attributes
]


def errors(text: str, opset: int = 21) -> list[tuple[str, str, str]]:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}, "loc": 1]> {text}')
    return [(f.rule, f.message, f.hint) for f in onnxeval.check(model, ignore=["graph/unused-*"])]


# Names


@pytest.mark.parametrize(("schema", "attribute", "versions"), LISTED, ids=lambda value: getattr(value, "label", ""))
def test_the_names_stand_in_the_text(schema: Schema, attribute: str, versions: dict[int, str]) -> None:
    since = max((version for version in versions if version <= schema.key.since_version), default=None)
    if since is None:
        return
    text = f"{schema.definition.attributes[attribute].description} {schema.definition.doc}"
    for name in versions[since].split():
        assert name in text, f"{schema.label} does not list {name}"


def test_every_row_is_of_operators_that_there_are() -> None:
    known = {(schema.key.op_type, attribute) for schema, attribute, _ in LISTED}
    for operators, attribute, _ in values._NAMES:
        for operator in operators.split():
            assert (operator, attribute) in known


def test_defaults_are_allowed() -> None:
    """GRU-1 misspells its own."""
    for schema in all_schemas():
        for attribute in schema.attributes.values():
            if attribute.default is not None and attribute.kind in (AttributeProto.STRING, AttributeProto.INT):
                given = [helper.make_attribute(attribute.name, attribute.default)]
                assert list(values.name_not_listed(values.Valued("", schema, given))) == []
                assert list(values.number_not_allowed(values.Valued("", schema, given))) == []


@pytest.mark.parametrize(
    ("text", "opset", "message", "hint"),
    [
        (
            'g (float[3] x, int64[1,1] i, float[1] u) => (float[3] y) {y = ScatterND<reduction = "max">(x, i, u)}',
            16,
            '"max": ScatterND-16 takes none, add or mul',
            "opset 18 brought it",
        ),
        (
            'g (float[3] x) => (float[3] y) {y = Gelu<approximate = "tahn">(x)}',
            21,
            '"tahn": Gelu-20 takes none or tanh',
            'did you mean "tanh"?',
        ),
        (
            'g (float[1,1,4,4] x, float[1,2,2,2] i) => (float[1,1,2,2] y) {y = GridSample<mode = "bilinear">(x, i)}',
            20,
            '"bilinear": GridSample-20 takes linear, nearest or cubic',
            'did you mean "linear"?',
        ),
        (
            "g (float[3,1,2] x, float[1,4,2] w, float[1,4,4] r) => (float[3,1,1,4] y) "
            '{y = RNN<hidden_size = 4, activations = ["Gelu"]>(x, w, r)}',
            14,
            '"Gelu": RNN-14 takes Relu, Tanh, Sigmoid, Affine, LeakyRelu, ThresholdedRelu, ScaledTanh, HardSigmoid, '
            "Elu, Softsign or Softplus",
            'did you mean "Elu"?',
        ),
    ],
)
def test_names(text: str, opset: int, message: str, hint: str) -> None:
    assert errors(text, opset) == [("value/name", message, hint)]


def test_a_name_that_exporters_go_on_writing_passes() -> None:
    text = """g (float[1,1,4,4] x, float[4] scales) => (float[N,M,K,L] y) {
        y = Resize<coordinate_transformation_mode = "tf_half_pixel_for_nn">(x, "", scales)}"""
    assert errors(text, 13) == errors(text, 18) == []


def test_activations_are_written_in_any_case() -> None:
    inputs = "g (float[3,1,2] x, float[1,4,2] w, float[1,4,4] r) => (float[3,1,1,4] y)"
    for name in ("tanh", "TANH", "Tanh"):
        assert errors(f'{inputs} {{y = RNN<hidden_size = 4, activations = ["{name}"]>(x, w, r)}}') == []


# Numbers


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = MaxPool<kernel_shape = [2, 0]>(x)", "[2, 0]: MaxPool-12 takes numbers from 1 up"),
        ("y = MaxPool<kernel_shape = [2, 2], strides = [-1, 1]>(x)", "[-1, 1]: MaxPool-12 takes numbers from 1 up"),
        (
            "y = MaxPool<kernel_shape = [2, 2], pads = [-1, 0, 0, 0]>(x)",
            "[-1, 0, 0, 0]: MaxPool-12 takes numbers from 0",
        ),
        ("y = MaxPool<kernel_shape = [2, 2], storage_order = 2>(x)", "2: MaxPool-12 takes 0 or 1"),
        ("y = LpPool<kernel_shape = [2, 2], p = 0>(x)", "0: LpPool-18 takes numbers from 1 up"),
        ("y = LpNormalization<p = 3>(x)", "3: LpNormalization-1 takes 1 or 2"),
        ("y = SpaceToDepth<blocksize = -2>(x)", "-2: SpaceToDepth-13 takes numbers from 1 up"),
    ],
)
def test_numbers(line: str, message: str) -> None:
    ((rule, said, _),) = errors(f"g (float[1,4,4,4] x) => (float[N,M,K,L] y) {{{line}}}")
    assert rule == "value/number"
    assert said.startswith(message)


def test_pads_of_pad_may_be_negative() -> None:
    text = "g (float[4] x) => (float[3] y) {{y = Pad<pads = [-1, 0]>(x)}}".replace("{{", "{").replace("}}", "}")
    assert errors(text, 2) == []


def test_an_attribute_that_a_call_gives_is_judged_there() -> None:
    text = """g (float[1,4,4,4] x) => (float[N,M,K,L] y) {{y = loc.pool<size = [{}, 2]>(x)}}
        <domain: "loc", opset_import: ["": 21]> pool <size> (a) => (b) {{b = MaxPool<kernel_shape: ints = @size>(a)}}"""
    assert errors(text.format(2)) == []
    ((rule, message, _),) = errors(text.format(0))
    assert rule == "value/number"
    assert message.startswith("[0, 2]: MaxPool-12 takes numbers from 1 up (called from graph/node[0] (pool))")


# Padding, axes, lengths


def pool(attributes: str) -> list[str]:
    text = f"g (float[1,1,5,5] x) => (float[1,1,N,M] y) {{y = MaxPool<kernel_shape = [3, 3], {attributes}>(x)}}"
    return [rule for rule, _, _ in errors(text)]


def test_pads_beside_auto_pad() -> None:
    assert pool('auto_pad = "VALID", pads = [1, 1, 1, 1]') == ["value/padding"]
    assert pool('auto_pad = "NOTSET", pads = [1, 1, 1, 1]') == []
    assert pool('auto_pad = "SAME_LOWER"') == []


@pytest.mark.parametrize("attributes", ["strides = [1]", "pads = [1, 1]", "dilations = [1, 1, 1]"])
def test_a_number_for_each_axis(attributes: str) -> None:
    assert pool(attributes) == ["value/length"]


def test_a_permutation_has_an_entry_for_each_axis() -> None:
    assert errors("g (float[2,3] x) => (float[N] y) {y = Transpose<perm = [2, 0, 1]>(x)}") == [
        ("value/length", '"perm" is [2, 0, 1], an input of shape [2, 3] takes 2 numbers', "")
    ]


@pytest.mark.parametrize(
    ("line", "opset", "message"),
    [
        ("y = Softmax<axis = -3>(x)", 13, '"axis" is -3, Softmax-13 of [2, 3] takes -2 to 1'),
        ("y = ReduceSum<axes = [0, 2]>(x)", 11, '"axes" is 2, ReduceSum-11 of [2, 3] takes -2 to 1'),
        ("y = ReduceSum(x, two)", 13, '"two" is 2, ReduceSum-13 of [2, 3] takes -2 to 1'),
        ("y = Unsqueeze(x, two)", 13, ""),
        ("y = Unsqueeze<axes = [1, 1]>(x)", 11, '"axes" is [1, 1]: Unsqueeze-11 of [2, 3] takes each axis once'),
        ("y = Unsqueeze<axes = [1, -3]>(x)", 11, '"axes" is [1, -3]: Unsqueeze-11 of [2, 3] takes each axis once'),
        ("y = Flatten<axis = 2>(x)", 13, ""),
    ],
)
def test_axes(line: str, opset: int, message: str) -> None:
    output = "float[N,M,K]" if "Unsqueeze" in line else "float[N,M]"
    text = f"g (float[2,3] x) => ({output} y) <int64[1] two = {{2}}> {{{line}}}"
    if "two" not in line:
        text = text.replace("<int64[1] two = {2}>", "")
    assert errors(text, opset) == ([("value/axis", message, "")] if message else [])


def test_the_axis_of_a_scalar_is_the_type_rules_matter() -> None:
    assert [rule for rule, _, _ in errors("g (float x) => (float y) {y = Softmax<axis = 0>(x)}")] == ["value/axis"]


def test_values_of_unknown_shapes_are_not_guessed_at() -> None:
    model: ModelProto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[2] x, int64[N] s) => (float[N] y) '
        "{h = Reshape(x, s) y = Softmax<axis = 5>(h)}"
    )
    assert onnxeval.check(model) == []
