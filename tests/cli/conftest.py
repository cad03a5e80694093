"""Small models, and the command line to try on them."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import onnx
import onnx.parser
import pytest
from click.testing import CliRunner, Result

from onnxeval_cli.main import main

Shell: TypeAlias = Callable[..., Result]

_HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
_MODELS = {
    "relu": "g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }",
    "scalar": "g (float x) => (float y) { y = Neg(x) }",
    "two": """
        g (float[N, 3] x, float[3] b) => (float[N, 3] sum, float[N, 3] negative)
        <float[3] weights = {1, 2, 3}> {
            scaled = Mul(x, weights)
            sum = Add(scaled, b)
            negative = Neg(scaled)
        }""",
    "odd_names": """
        g (float[2] "a", float[2] "a=b", float[2] "/in:0") => (float[2] "/out/0:y", float[2] "C")
        { t = Add("a", "a=b")  "/out/0:y" = Add(t, "/in:0")  "C" = Identity("a") }""",
    "default": "g (float[2] x, float[2] bias) => (float[2] y) <float[2] bias = {10, 20}> { y = Add(x, bias) }",
    "text": "g (string[N] s) => (string[N] t) { t = Identity(s) }",
    "sequence": "g (seq(float[N]) s) => (seq(float[N]) t) { t = Identity(s) }",
    "optional": "g (optional(float[N]) o) => (optional(float[N]) p) { p = Identity(o) }",
    "bfloat16": "g (bfloat16[N] x) => (bfloat16[N] y) { y = Identity(x) }",
    "float8": "g (float8e4m3fn[N] x) => (float8e4m3fn[N] y) { y = Identity(x) }",
    "int4": "g (int4[N] x) => (int4[N] y) { y = Identity(x) }",
    "int64": "g (int64[N] x) => (int64[N] y) { y = Identity(x) }",
    "uint64": "g (uint64[N] x) => (uint64[N] y) { y = Identity(x) }",
    "bool": "g (bool[N] x) => (bool[N] y) { y = Not(x) }",
    "complex": "g (complex64[N] x) => (complex64[N] y) { y = Identity(x) }",
    "double": "g (double[A, B, C, D] x) => (double[A, B, C, D] y) { y = Identity(x) }",
    "mismatch": "g (float[2] x, float[3] w) => (float[N] y) { y = Add(x, w) }",
    "unknown": "g (float[2] x) => (float[2] y) { y = Relux(x) }",
    "cycle": "g (float[2] x) => (float[2] y) { a = Add(x, b)  b = Neg(a)  y = Neg(b) }",
    "no_inputs": "g () => (float[2] y) <float[2] c = {1, 2}> { y = Neg(c) }",
}


@pytest.fixture
def shell() -> Shell:
    """`shell("run", path, ...)`: what the command line answers."""

    def invoke(*arguments: object, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(main, [str(a) for a in arguments], input=stdin)

    return invoke


@pytest.fixture
def model(tmp_path: Path) -> Callable[[str], Path]:
    """`model("relu")`: a file with that model."""

    def write(name: str) -> Path:
        path = tmp_path / f"{name}.onnx"
        onnx.save(onnx.parser.parse_model(_HEAD + _MODELS[name]), path)
        return path

    return write


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
