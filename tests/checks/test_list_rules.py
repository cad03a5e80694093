"""Lists of numbers, single numbers and scales against what they are meant for; broadcasting before opset 7."""

import re

import onnx
import pytest

import onnxeval


def found(inputs: str, line: str, opset: int = 21, output: str = "float[?]") -> list[tuple[str, str]]:
    names = iter("abcdefgh")
    output = re.sub(r"\?", lambda _: f"dim_{next(names)}", output)
    ir_version = 3 if opset < 7 else 10
    model = onnx.parser.parse_model(
        f'<ir_version: {ir_version}, opset_import: ["": {opset}]> g ({inputs}) => ({output} y) {{ {line} }}'
    )
    findings = onnxeval.check(model, ignore=["graph", "type/declared-output"])
    return [(finding.rule, finding.message) for finding in findings]


@pytest.mark.parametrize(
    ("inputs", "line", "opset", "message"),
    [
        ("float[1,1,2,2] x, float[4] s", 'y = Resize(x, "", s)', 21, ""),
        ("float[1,1,2,2] x, float[K] s", 'y = Resize(x, "", s)', 21, ""),
        ("float[1,1,2,2] x, float[0] r, float[0] s, int64[4] z", "y = Resize(x, r, s, z)", 11, ""),
        ("float[1,1,2,2] x, int64[2] z", 'y = Resize<axes = [2, 3]>(x, "", "", z)', 21, ""),
        (
            "float[1,1,2,2] x, int64[3] z",
            'y = Resize(x, "", "", z)',
            21,
            '"z" has 3 numbers, Resize-19 of 4 axes takes 4',
        ),
        ("float[1,1,2,2] x, float[1] s", "y = Resize(x, s)", 10, '"s" has 1 number, Resize-10 of 4 axes takes 4'),
        ("float[1,1,2,2] x, float[2] s", "y = Upsample(x, s)", 9, '"s" has 2 numbers, Upsample-9 of 4 axes takes 4'),
        ("float[2,3] x, int64[1] s", "y = CenterCropPad<axes = [1]>(x, s)", 21, ""),
        (
            "float[2,3] x, int64[1] s",
            "y = CenterCropPad(x, s)",
            21,
            '"s" has 1 number, CenterCropPad-18 of 2 axes takes 2',
        ),
        ("float[2,3] x, int64[4] p", "y = Pad(x, p)", 13, ""),
        ("float[2,3] x, int64[2] p, int64[1] a", 'y = Pad(x, p, "", a)', 21, ""),
        ("float[2,3] x, int64[2] p, int64[K] a", 'y = Pad(x, p, "", a)', 21, ""),
        (
            "float[2,3] x, int64[3] p, int64[1] a",
            'y = Pad(x, p, "", a)',
            21,
            '"p" has 3 numbers, Pad-21 of 1 axis takes 2',
        ),
        ("float[2,3] x, int64[2] p", "y = Pad(x, p)", 13, '"p" has 2 numbers, Pad-13 of 2 axes takes 4'),
    ],
)
def test_a_number_for_each_axis(inputs: str, line: str, opset: int, message: str) -> None:
    assert found(inputs, line, opset) == ([("shape/list-length", message)] if message else [])


@pytest.mark.parametrize(
    ("inputs", "line", "message"),
    [
        ("float[3] x, float m", "y = Clip(x, m)", ""),
        ("float[3] x, float[1] m", "y = Clip(x, m)", ""),
        ("float[3] x, float[K] m", "y = Clip(x, m)", ""),
        ("float[3] x, float[3] m", 'y = Clip(x, "", m)', "it is float32[3], Clip-13 takes one number as max"),
        (
            "float[3] x, bool[0] t",
            'y = Dropout(x, "", t)',
            "it is bool[0], Dropout-13 takes one number as training_mode",
        ),
        ("float[3,3] x, int64[2] k", "y = Trilu(x, k)", "it is int64[2], Trilu-14 takes one number as k"),
    ],
)
def test_one_number(inputs: str, line: str, message: str) -> None:
    assert found(inputs, line) == ([("shape/scalar", message)] if message else [])


@pytest.mark.parametrize(
    ("inputs", "line", "message"),
    [
        ("float[2,3] x, float s", "y = QuantizeLinear(x, s)", ""),
        ("float[2,3] x, float[1] s", "y = QuantizeLinear(x, s)", ""),
        ("float[2,3] x, float s, uint8[1] z", "y = QuantizeLinear(x, s, z)", ""),
        ("float[2,3] x, float[3] s, uint8[3] z", "y = QuantizeLinear(x, s, z)", ""),
        ("float[2,3] x, float[2] s", "y = QuantizeLinear<axis = -2>(x, s)", ""),
        ("float[2,K] x, float[4] s", "y = QuantizeLinear(x, s)", ""),
        ("float[2,3] x, float[2,2] s", "y = QuantizeLinear<block_size = 2>(x, s)", ""),
        ("float[2,3] x, float[2] s", "y = QuantizeLinear(x, s)", "the scale is [2], axis 1 of [2, 3] has 3 places"),
        (
            "float[2,3] x, float[3] s, uint8 z",
            "y = QuantizeLinear(x, s, z)",
            "the zero point is [], the scale [3]",
        ),
        (
            "float[2,3] x, float[3] s",
            "y = QuantizeLinear<axis = 2>(x, s)",
            "axis 2 is none of [2, 3], the scale is [3]",
        ),
        (
            "float[2,3] x, float[2,3] s",
            "y = QuantizeLinear(x, s)",
            "the scale is [2, 3], it may have one axis, or blocks by block_size",
        ),
        (
            "float[2,3] x, float[2,3] s",
            "y = QuantizeLinear<block_size = 2>(x, s)",
            "the scale is [2, 3], blocks of 2 along axis 1 of [2, 3] take [2, 2]",
        ),
        (
            "float[2,3] x, float[2] s",
            "y = QuantizeLinear<block_size = 2>(x, s)",
            "the scale is [2], blocks of 2 along axis 1 of [2, 3] take [2, 2]",
        ),
    ],
)
def test_scales(inputs: str, line: str, message: str) -> None:
    assert found(inputs, line) == ([("shape/scale", message)] if message else [])


@pytest.mark.parametrize(
    ("inputs", "line", "message"),
    [
        ("float[2,3] x, float[2,3] z", "y = Add(x, z)", ""),
        ("float[2,3] x, float[2,K] z", "y = Add(x, z)", ""),
        ("float[2,3] x, float z", "y = Add<broadcast = 1>(x, z)", ""),
        ("float[2,3] x, float[2] z", "y = Add<axis = 0, broadcast = 1>(x, z)", ""),
        ("float[2,3,4] x, float[3,1] z", "y = Add<broadcast = 1>(x, z)", ""),
        ("float[2,3] x, float z", "y = Add(x, z)", "[2, 3] and [] differ, and broadcast is 0"),
        ("float[2,3] x, float[1,3] z", "y = Mul(x, z)", "[2, 3] and [1, 3] differ, and broadcast is 0"),
        (
            "float[2,3] x, float[2] z",
            "y = Sub<broadcast = 1>(x, z)",
            "[2, 3] and [2]: the second does not fit into the first at its end",
        ),
        (
            "float[2,3] x, float[2] z",
            "y = Div<broadcast = 1, axis = 1>(x, z)",
            "[2, 3] and [2]: the second does not fit into the first at axis 1",
        ),
        (
            "float[3] x, float[2,3] z",
            "y = Add<broadcast = 1>(x, z)",
            "[3] and [2, 3]: the second does not fit into the first at its end",
        ),
        ("float[2,3] x, float[3,4] w, float[4] c", "y = Gemm<broadcast = 1>(x, w, c)", ""),
        (
            "float[2,3] x, float[3,4] w, float[4] c",
            "y = Gemm(x, w, c)",
            "[2, 4] and [4] differ, and broadcast is 0",
        ),
    ],
)
def test_broadcasting_before_opset_7(inputs: str, line: str, message: str) -> None:
    assert found(inputs, line, 6) == ([("shape/old-broadcast", message)] if message else [])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = Cast<to = 1>(x)", ""),
        ("y = Cast<to = 0>(x)", "0 is no element type that Cast-28 takes here"),
        ("y = EyeLike<dtype = 99>(x)", "99 is no element type that EyeLike-22 takes here"),
        ("y = LayerNormalization<stash_type = 11>(x, s)", ""),
        ("y = LayerNormalization<stash_type = 7>(x, s)", "7 is no element type that LayerNormalization-17 takes here"),
        ("y = QuantizeLinear<output_dtype = 0>(x, s)", ""),
        ("y = QuantizeLinear<output_dtype = -1>(x, s)", "-1 is no element type that QuantizeLinear-28 takes here"),
    ],
)
def test_element_types_by_number(line: str, message: str) -> None:
    assert found("float[3,3] x, float[3] s", line, 28) == ([("value/element-type", message)] if message else [])


def test_a_split_says_once_how_many_parts_it_makes() -> None:
    two = "float[2] z, float[2]"
    assert found("float[4] x, int64[2] s", "z, y = Split(x, s)", output=two) == []
    assert found("float[4] x", "z, y = Split<num_outputs = 2>(x)", output=two) == []
    assert found("float[4] x", "z, y = Split(x)", 13, output=two) == []
    for line, message in {
        "z, y = Split(x)": "neither the input split nor the attribute num_outputs is given",
        "z, y = Split<num_outputs = 2>(x, s)": "num_outputs is 2, and the input split is given",
        "z, y = Split<num_outputs = 3>(x)": "num_outputs is 3, the node has 2 outputs",
    }.items():
        assert found("float[4] x, int64[2] s", line, output=two) == [("value/parts", message)]


def test_output_padding_is_below_the_steps() -> None:
    inputs, line = "float[1,1,3,3] x, float[1,1,2,2] w", "y = ConvTranspose<output_padding = [0, 2], {}>(x, w)"
    for good in ("strides = [1, 3]", "dilations = [1, 3]"):
        assert found(inputs, line.format(good)) == []
    message = "output_padding is [0, 2], along axis 3 the stride is 2, the dilation 1"
    assert found(inputs, line.format("strides = [1, 2]")) == [("value/output-padding", message)]
