"""Oddities of models as they are found, through `onnxeval run` and `check`: they run, and what is wrong is told."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

X = "[[1, -2], [3, 4]]"
ARRAY = np.array([[1, -2], [3, 4]], np.float32)
WEIGHTS = np.array([[10, 20], [30, 40]], np.float32)


def parsed(text: str, imports: str = '"": 21', ir_version: int = 10) -> ModelProto:
    return onnx.parser.parse_model(f"<ir_version: {ir_version}, opset_import: [{imports}]> {text}")


NEG = "g (float[2, 2] x) => (float[2, 2] y) { y = Neg(x) }"


@dataclass
class Found:
    """A model, what it gives for X (or for ``feeds``), and the rules of check that find something."""

    model: ModelProto
    y: list
    rules: set[str] = field(default_factory=set)
    warning: str = ""
    feeds: list[str] = field(default_factory=lambda: [X])


def changed(model: ModelProto, change: Callable[[ModelProto], object]) -> ModelProto:
    change(model)
    return model


def with_weights(listed: bool, ir_version: int) -> ModelProto:
    model = parsed("g (float[2, 2] x) => (float[2, 2] y) { y = Sub(x, w) }", '"": 8', ir_version)
    model.graph.initializer.append(numpy_helper.from_array(WEIGHTS, "w"))
    if listed:
        model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 2]))
    return model


def overloaded() -> ModelProto:
    model = parsed(
        "g (float[2, 2] x) => (float[2, 2] y) { t = loc.f (x)  y = loc.f (t) }"
        '<domain: "loc", opset_import: ["": 21]> f (a) => (b) { b = Neg(a) }'
        '<domain: "loc", opset_import: ["": 21]> f (a) => (b) { b = Abs(a) }',
        '"": 21, "loc": 1',
    )
    for place, overload in enumerate(("one", "two")):
        model.functions[place].overload = model.graph.node[place].overload = overload
    return model


def declared(*shape: int, name: str = "y", kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


NEGATIVE = (-ARRAY).tolist()
ABSOLUTE = np.abs(ARRAY).tolist()

FOUND = {
    "ai.onnx is not imported": Found(
        parsed(NEG, '"ai.onnx.ml": 2'), NEGATIVE, {"proto/domain-not-imported"}, "does not import it"
    ),
    "the domain is spelled ai.onnx": Found(parsed(NEG, '"ai.onnx": 21'), NEGATIVE),
    "nodes spell ai.onnx": Found(
        changed(parsed(NEG), lambda m: setattr(m.graph.node[0], "domain", "ai.onnx")),
        NEGATIVE,
        {"proto/domain-spelling"},
    ),
    "both spellings are imported": Found(parsed(NEG, '"": 21, "ai.onnx": 21'), NEGATIVE, {"proto/doubled-opset"}),
    "an import is unknown and unused": Found(parsed(NEG, '"": 21, "com.acme": 99'), NEGATIVE),
    "an initializer is an input of IR version 3": Found(with_weights(True, 3), (ARRAY - WEIGHTS).tolist()),
    "an initializer is no input of IR version 3": Found(
        with_weights(False, 3), (ARRAY - WEIGHTS).tolist(), {"graph/initializer-not-input"}
    ),
    "the nodes are not sorted": Found(
        parsed("g (float[2, 2] x) => (float[2, 2] y) { y = Abs(t)  t = Neg(x) }"), ABSOLUTE, {"graph/order"}
    ),
    "names hold any characters": Found(
        parsed('g (float[2, 2] "/a b=c:0*") => (float[2, 2] "∂ y") { "∂ y" = Neg("/a b=c:0*") }'), NEGATIVE
    ),
    "nodes share a name": Found(
        changed(
            parsed("g (float[2, 2] x) => (float[2, 2] y) { t = Neg(x)  y = Abs(t) }"),
            lambda m: [setattr(node, "name", "n") for node in m.graph.node],
        ),
        ABSOLUTE,
        {"graph/doubled-node-name"},
    ),
    "an initializer has no name": Found(
        changed(parsed(NEG), lambda m: m.graph.initializer.append(numpy_helper.from_array(WEIGHTS))),
        NEGATIVE,
        {"graph/unnamed-value"},
    ),
    "value_info contradicts the truth": Found(
        changed(
            parsed("g (float[2, 2] x) => (float[2, 2] y) { t = Neg(x)  y = Abs(t) }"),
            lambda m: m.graph.value_info.append(declared(9, name="t", kind=TensorProto.INT8)),
        ),
        ABSOLUTE,
        {"type/declared-value"},
    ),
    "an output is declared with another shape": Found(
        parsed("g (float[2, 2] x) => (float[4] y) { y = Neg(x) }"),
        NEGATIVE,
        {"type/declared-output"},
        "the model declares float32[4]",
    ),
    "an output has no type": Found(
        changed(parsed(NEG), lambda m: m.graph.output[0].ClearField("type")), NEGATIVE, {"graph/no-type"}
    ),
    "functions call functions with attributes": Found(
        parsed(
            "g (float[2, 2] x) => (float[2, 2] y) { y = loc.outer <slope = 0.5> (x) }"
            '<domain: "loc", opset_import: ["": 21, "loc": 1]> outer <slope> (a) => (b) '
            "{ b = loc.inner <alpha: float = @slope> (a) }"
            '<domain: "loc", opset_import: ["": 21]> inner <alpha> (a) => (b) '
            "{ b = LeakyRelu <alpha: float = @alpha> (a) }",
            '"": 21, "loc": 1',
        ),
        [[1, -1], [3, 4]],
    ),
    "functions are overloaded": Found(overloaded(), ABSOLUTE),
    "strings": Found(
        parsed('g (string[N] x) => (string[N] y) { y = StringNormalizer <case_change_action = "UPPER"> (x) }'),
        ["A", "ÜB"],
        feeds=['["a", "üb"]'],
    ),
    "an operator of onnxruntime under ai.onnx": Found(
        parsed("g (float[2, 2] x) => (float[2, 2] y) <float[2] s = {1, 1}> { y = SimplifiedLayerNormalization(x, s) }"),
        (ARRAY / np.sqrt((ARRAY**2).mean(1, keepdims=True) + 1e-5)).tolist(),
        {"node/foreign-operator"},
    ),
    "an operator of onnxruntime": Found(
        parsed(
            "g (float[2, 2] x) => (float[2, 2] y) { y = com.microsoft.FusedMatMul <transB = 1> (x, x) }",
            '"": 21, "com.microsoft": 1',
        ),
        (ARRAY @ ARRAY.T).tolist(),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_it_runs(shell, tmp_path: Path, name: str) -> None:
    found = FOUND[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(found.model.SerializeToString())
    result = shell("run", path, *(part for feed in found.feeds for part in ("-i", feed)), "--format", "json")
    assert result.exit_code == 0, result.stderr
    (output,) = json.loads(result.stdout)["outputs"]
    if found.y and isinstance(found.y[0], str):
        assert output["data"] == found.y
    else:
        np.testing.assert_allclose(output["data"], found.y, rtol=1e-6)
    assert found.warning in result.stderr
    assert bool(result.stderr) == bool(found.warning)


@pytest.mark.parametrize("name", FOUND)
def test_check_tells_what_is_wrong(shell, tmp_path: Path, name: str) -> None:
    found = FOUND[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(found.model.SerializeToString())
    result = shell("check", path, "--format", "json")
    assert result.exit_code in (0, 1), result.stderr
    (report,) = json.loads(result.stdout)["models"]
    assert {finding["rule"] for finding in report["findings"]} == found.rules


SEQUENCE = "g (float[2, 2] x) => (seq(float[N, 2]) y) { y = SplitToSequence <axis = 0> (x) }"
MAPS = (
    'g (float[2, 2] x) => (seq(map(string, float)) y) { y = ai.onnx.ml.ZipMap <classlabels_strings = ["a", "b"]> (x) }'
)


@pytest.mark.parametrize(("text", "kind"), [(SEQUENCE, "sequence"), (MAPS, "sequence")])
def test_sequences_and_maps_come_out(shell, tmp_path: Path, text: str, kind: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(parsed(text, '"": 21, "ai.onnx.ml": 3').SerializeToString())
    assert shell("check", path).exit_code == 0
    result = shell("run", path, "-i", X, "--format", "json")
    assert result.exit_code == 0, result.stderr
    (output,) = json.loads(result.stdout)["outputs"]
    assert output["type"] == kind
    assert "1" in shell("run", path, "-i", X).stdout


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (parsed(NEG, '"": 99'), "opset 99"),
        (changed(parsed(NEG), lambda m: setattr(m, "ir_version", 99)), "IR version 99"),
    ],
)
def test_what_is_newer_than_known(shell, tmp_path: Path, model: ModelProto, told: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    result = shell("run", path, "-i", X)
    assert result.exit_code == 3
    assert told in result.stderr
    assert "upgrade" in result.stderr
    checked = shell("check", path)
    assert checked.exit_code == 1
    assert told.split()[-1] in checked.stdout


@pytest.mark.parametrize("files", ["one", "many", "offsets"])
def test_external_data(shell, tmp_path: Path, files: str) -> None:
    model = parsed("g (float[2, 2] x) => (float[2, 2] y) { t = Add(x, w)  y = Mul(t, v) }")
    for name in "wv":
        model.graph.initializer.append(numpy_helper.from_array(WEIGHTS, name))
    path = tmp_path / "model.onnx"
    if files == "offsets":
        data = bytes(4096) + WEIGHTS.tobytes() + bytes(7) + WEIGHTS.tobytes() + b"end"
        (tmp_path / "weights").write_bytes(data)
        for tensor, offset in zip(model.graph.initializer, (4096, 4096 + 16 + 7), strict=True):
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in {"location": "weights", "offset": offset, "length": 16}.items():
                tensor.external_data.add(key=key, value=str(value))
        path.write_bytes(model.SerializeToString())
    else:
        one = files == "one"
        onnx.save_model(
            model, path, save_as_external_data=True, all_tensors_to_one_file=one, location="w" if one else None,
            size_threshold=0,
        )  # fmt: skip
    result = shell("run", path, "-i", X, "--format", "json")
    assert json.loads(result.stdout)["outputs"][0]["data"] == ((ARRAY + WEIGHTS) * WEIGHTS).tolist()
    assert shell("check", path).exit_code == 0
