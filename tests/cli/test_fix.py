"""`onnxeval check --fix`: what is written where, and what is said of it."""

import json
import os

import pytest

import onnxeval

BROKEN = """<ir_version: 10, opset_import: ["": 21]>
g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { [n] y = Neg(h)  [n] h = Abs(x) }"""


@pytest.fixture
def broken(tmp_path):
    path = tmp_path / "m.onnxtxt"
    path.write_text(BROKEN)
    return path


def test_what_was_done_is_told_and_what_is_left(shell, broken, tmp_path):
    result = shell("check", "m.onnxtxt", "--fix", "n.onnx")
    assert result.exit_code == 0
    assert result.stdout == (
        "m.onnxtxt: mended, saved to n.onnx\n"
        "  graph: sorted the nodes, each after those whose values it reads\n"
        '  graph/node[1] (Neg): renamed "n" to "n_1"\n'
        '  graph/initializer "w": removed, nobody reads it\n'
        "\n"
        "n.onnx: no findings\n"
    )
    assert broken.read_text() == BROKEN
    assert onnxeval.check(tmp_path / "n.onnx") == []
    assert sorted(os.listdir(tmp_path)) == ["m.onnxtxt", "n.onnx"]


def test_errors_that_are_left(shell, tmp_path):
    (tmp_path / "m.onnxtxt").write_text(BROKEN.replace("Abs", "Abss"))
    result = shell("check", "m.onnxtxt", "--fix", "n.onnx")
    assert result.exit_code == 1
    assert "[node/unknown-operator]" in result.stdout
    assert "[graph/unused-initializer]" in result.stdout


def test_for_programs(shell, broken):
    result = shell("check", "m.onnxtxt", "--fix", "n.onnx", "--format", "json")
    (model,) = json.loads(result.stdout)["models"]
    assert (model["model"], model["findings"]) == ("n.onnx", [])
    assert 'mended: graph/initializer "w": removed, nobody reads it\n' in result.stderr


def test_onto_the_model_itself(shell, broken):
    assert shell("check", "m.onnxtxt", "--fix", "m.onnxtxt").exit_code == 0
    assert onnxeval.check(broken) == []
    before = broken.read_bytes()
    result = shell("check", "m.onnxtxt", "--fix", "m.onnxtxt")
    assert "m.onnxtxt: nothing to mend, left as it is" in result.stdout
    assert broken.read_bytes() == before


def test_never_onto_the_model_by_another_path(shell, broken):
    (broken.parent / "link.onnxtxt").symlink_to(broken)
    for target in ("./m.onnxtxt", broken, "link.onnxtxt"):
        result = shell("check", "m.onnxtxt", "--fix", target)
        assert result.exit_code == 8
        assert "is the model itself" in result.stderr
    assert broken.read_text() == BROKEN


def test_nothing_to_mend_is_written_all_the_same(shell, model, tmp_path):
    result = shell("check", model("relu"), "--fix", "n.onnx")
    assert result.exit_code == 0
    assert "nothing to mend, saved to n.onnx" in result.stdout
    assert onnxeval.check(tmp_path / "n.onnx") == []


def test_a_file_that_is_no_model(shell, tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"garbage")
    result = shell("check", "m.onnx", "--fix", "n.onnx")
    assert result.exit_code == 3
    assert not (tmp_path / "n.onnx").exists()


def test_places_that_cannot_be_written(shell, broken, tmp_path):
    (tmp_path / "folder").mkdir()
    for target in ("folder", "missing/n.onnx"):
        result = shell("check", "m.onnxtxt", "--fix", target)
        assert result.exit_code == 8, result.output
        assert "Traceback" not in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["folder", "m.onnxtxt"]


def test_external_data_stays_in_reach(shell, tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(8))
    (tmp_path / "m.onnxtxt").write_text(BROKEN.replace("Abs(x)", "Add(x, w)").replace("<float[2] w = {1, 2}>", ""))
    assert shell("check", "m.onnxtxt", "--fix", "m.onnx").exit_code == 1
    import onnx

    proto = onnx.load(tmp_path / "m.onnx")
    tensor = proto.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=1)
    tensor.external_data.add(key="location", value="w.bin")
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    (tmp_path / "elsewhere").mkdir()
    result = shell("check", "m.onnx", "--fix", "elsewhere/n.onnx")
    assert result.exit_code == 8
    assert "external data" in result.stderr
    assert shell("check", "m.onnx", "--fix", "n.onnx").exit_code == 0
    assert onnxeval.check(tmp_path / "n.onnx") == []
