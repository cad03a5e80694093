"""Every rule's page: its example breaks exactly this rule, and the example mended breaks none."""

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, TensorProto

import onnxeval
from onnxeval.checks import RULES
from onnxeval.checks.pages import split_example

#: Its example tells in words what no model can show.
IN_WORDS = {"file/unreadable"}


def model_of(example: str) -> ModelProto:
    text, python = split_example(example)
    names = {"model": onnx.parser.parse_model(text), "ModelProto": ModelProto, "TensorProto": TensorProto}
    exec(python, names)
    return names["model"]


def rules_found(example: str, folder: Path) -> list[str]:
    (folder / "weights.bin").write_bytes(bytes(8))
    path = folder / "model.onnx"
    path.write_bytes(model_of(example).SerializeToString())
    return [finding.rule for finding in onnxeval.check(path)]


@pytest.mark.parametrize("rule", RULES)
def test_a_page_is_whole(rule: str) -> None:
    page = RULES[rule].page
    for part in (page.what, page.why, page.mend):
        assert part.endswith((".", ")"))
    assert page.example


@pytest.mark.parametrize("rule", sorted(RULES.keys() - IN_WORDS))
def test_the_example_breaks_the_rule_alone(rule: str, tmp_path: Path) -> None:
    assert rules_found(RULES[rule].page.example, tmp_path) == [rule]


@pytest.mark.parametrize("rule", sorted(RULES.keys() - IN_WORDS))
def test_a_near_miss_breaks_none(rule: str, tmp_path: Path) -> None:
    """The example mended; where the page shows none, the model that its Python lines change."""
    page = RULES[rule].page
    assert rules_found(page.instead or split_example(page.example)[0], tmp_path) == []
