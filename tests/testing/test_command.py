"""`onnxeval test`."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from onnxeval_cli.main import main


def shell(*arguments):
    return CliRunner().invoke(main, ["test", *map(str, arguments)])


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_model_that_passes(with_data):
    path = with_data("model.onnx", [([[1, 2]], [[2, 4]]), ([[3]], [[6]])])
    result = shell(path)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "2 cases: 2 passed"


def test_one_that_does_not_and_the_reports(with_data):
    with_data("zoo/a/model.onnx", [([[1, 2]], [[2, 4]]), ([[3]], [[7]])])
    with_data("zoo/b<&/model.onnx", [([[1]], [[2]])])
    with_data("zoo/c/model.onnx", [])
    result = shell("zoo", "--junit", "report.xml", "--format", "json", "--jobs", "2")
    assert result.exit_code == 1
    assert result.stderr == "note: no test data set is beside zoo/c/model.onnx\n"
    content = json.loads(result.stdout)
    assert content["counts"] == {"passed": 2, "failed": 1, "error": 0, "crashed": 0, "known": 0}
    assert [o["status"] for o in content["outcomes"]] == ["passed", "failed", "passed"]
    root = ElementTree.parse("report.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "0")
    assert [suite.get("name") for suite in root] == ["zoo/a/model.onnx", "zoo/b<&/model.onnx"]
    (failure,) = root.iter("failure")
    assert "y differs in 1 of 1 elements, by 1 at most" in failure.get("message")


def test_tolerances(with_data):
    path = with_data("model.onnx", [([[1]], [[2.1]])])
    assert shell(path).exit_code == 1
    assert shell(path, "--rtol", "0.1").exit_code == 0
    assert shell(path, "--atol", "0.2").exit_code == 0
    assert shell(path, "--max-ulp", "5").exit_code == 1


def test_the_old_layout_of_the_zoo(with_data):
    path = with_data("model.onnx", [])
    np.savez("test_data_0.npz", inputs=np.ones((1, 3), np.float32), outputs=np.full((1, 3), 2, np.float32))
    assert shell(path).stdout.splitlines()[-1] == "1 case: 1 passed"


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda folder: (folder / "input_0.pb").write_bytes(b"nonsense"), "input_0.pb"),
        (lambda folder: (folder / "input_0.pb").unlink(), "put_0.pb, the "),
        (lambda folder: (folder / "output_0.pb").unlink(), "put_0.pb, the "),
        (lambda folder: (folder / "input_3.pb").write_bytes(b""), "the model has 1"),
    ],
)
def test_broken_data_is_an_error_of_that_case(with_data, spoil, word):
    path = with_data("model.onnx", [([[1]], [[2]])])
    spoil(path.parent / "test_data_set_0")
    result = shell(path, "--format", "json")
    assert result.exit_code == 1
    (outcome,) = json.loads(result.stdout)["outcomes"]
    assert outcome["status"] == "error"
    assert word in outcome["message"]


def test_a_pickle_is_not_read(with_data):
    path = with_data("model.onnx", [])
    np.savez("test_data_0.npz", inputs=np.array([[1], [1, 2]], object), outputs=np.zeros(1))
    (outcome,) = json.loads(shell(path, "--format", "json").stdout)["outcomes"]
    assert "pickle" in outcome["message"]


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        ((), 2, "Missing argument"),
        (("--suite", "x"), 2, "--suite takes no PATH"),
        (("x", "--only", "y"), 2, "--only"),
        (("nowhere",), 5, "no such file"),
        (("--suite", "--only", "no_such_case"), 5, "nothing to test"),
    ],
)
def test_wrong_use(arguments, code, word):
    result = shell(*arguments)
    assert result.exit_code == code
    assert word in result.stderr


def test_nothing_to_test(with_data):
    for number in range(8):
        with_data(f"zoo/{number}/model.onnx", [])
    result = shell("zoo")
    assert result.exit_code == 5
    first = ", ".join(f"zoo/{number}/model.onnx" for number in range(5))
    assert f"nothing to test: no test data set is beside {first} and 3 more\n" in result.stderr
    assert "hint: a test data set is a folder test_data_set_0 with input_0.pb, output_0.pb ..." in result.stderr
    assert "`onnxeval convert IN... MODEL:test_data_set_0` makes one" in result.stderr
    Path("empty").mkdir()
    result = shell("empty")
    assert result.exit_code == 5
    assert "nothing to test: no .onnx or .onnxtxt file is in empty" in result.stderr


def test_data_by_the_names_of_the_values(with_data):
    path = with_data("model.onnx", [])
    folder = Path("test_data_set_0")
    folder.mkdir()
    np.save(folder / "x.npy", np.array([1, 2], np.float32))
    np.save(folder / "y.npy", np.array([2, 4], np.float32))
    assert shell(path).stdout.splitlines()[-1] == "1 case: 1 passed"
    np.save(folder / "y.npy", np.array([2, 5], np.float32))
    assert shell(path).exit_code == 1


def test_some_of_the_suite():
    result = shell("--suite", "--only", "test_gru*", "--only", "test_roialign_mode_max")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "7 cases: 6 passed, 1 fail for wrong data"
    assert "GRU" in result.stdout


def test_another_engine():
    assert shell("--suite", "--only", "test_gru*", "--engine", "reference").exit_code == 0


def test_a_report_that_cannot_be_written(with_data):
    path = with_data("model.onnx", [([[1]], [[2]])])
    assert shell(path, "--junit", "nowhere/report.xml").exit_code == 8
    assert not Path("nowhere").exists()
