"""Operators of one's own: from a file with --ops, from an installed package by its entry points."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import onnxeval
from onnxeval import plugins
from onnxeval_cli.main import main

KERNEL = """
import onnxeval

@onnxeval.op("{name}", domain="{domain}", versions=(1,))
def scale(x, *, factor: float):
    return (x * factor).astype(x.dtype)
"""


def model(name: str, domain: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21, "{domain}" : 1]>'
        f"g (float[2] x) => (float[2] y) {{ y = {domain}.{name} <factor = 3.0> (x) }}"
    )


def test_a_file_of_operators_serves_every_command(tmp_path: Path) -> None:
    kernels, path = tmp_path / "mine.py", tmp_path / "model.onnx"
    kernels.write_text(KERNEL.format(name="Stretch", domain="test.file"))
    onnx.save(model("Stretch", "test.file"), path)
    run = CliRunner().invoke
    arguments = ["run", str(path), "--input", "[1, 2]"]
    refused = run(main, arguments)
    assert refused.exit_code == 4
    assert "test.file.Stretch" in refused.stderr
    for _ in range(2):
        served = run(main, [*arguments, "--ops", str(kernels)])
        assert served.exit_code == 0, served.stderr
        assert "3  6" in served.stdout
    assert run(main, ["ops", "--ops", str(kernels), "--domain", "test.file"]).exit_code == 0
    assert "no findings" in run(main, ["check", str(path), "--ops", str(kernels)]).stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "there is no file"), ("import nowhere_to_be_found", "ModuleNotFoundError"), ("1 +", "SyntaxError")],
)
def test_a_file_that_cannot_be_used_is_told(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "broken.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(onnxeval.InputError, match=message):
        plugins.load_file(str(path))


def offer(folder: Path, module: str, content: str) -> None:
    """A package as pip would leave it: a module and the metadata that names it."""
    (folder / f"{module}.py").write_text(content)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{plugins.GROUP}]\n{module} = {module}\n")


def test_an_installed_package_brings_its_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(tmp_path, "stretching", KERNEL.format(name="Stretch", domain="test.package"))
    monkeypatch.syspath_prepend(tmp_path)
    plugins.load_installed.cache_clear()
    x = np.array([1, 2], np.float32)
    assert onnxeval.load(model("Stretch", "test.package")).run({"x": x})["y"].tolist() == [3, 6]
    sys.modules.pop("stretching")


def test_a_package_whose_operators_fail_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(tmp_path, "failing", "raise RuntimeError('no luck')")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.load_installed.cache_clear()
    with pytest.raises(onnxeval.InputError, match="operators of the package failing cannot be loaded: no luck"):
        onnxeval.load(model("Stretch", "test.nowhere")).run({"x": np.zeros(2, np.float32)})
    plugins.load_installed.cache_clear()
