"""What is installed: with and without a compiler, from wheels and from the source distribution."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from fast.copies import copy_package

from onnxeval.fast.engine import native

ROOT = Path(__file__).parent.parent
DIGITS = ROOT / "sample_models" / "digits"

pytestmark = pytest.mark.slow


def run(command, **environment):
    environment = {**os.environ, **environment}
    result = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True, timeout=1200)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def install(source, folder, **environment):
    """What pip says of it."""
    pip = [sys.executable, "-m", "pip", "install", "-v", "--no-deps", "--target", folder, source]
    said = run(pip, **environment)
    assert not [*folder.rglob("*.[ch]")], "sources of the kernels are installed"
    return said


def kernels_of(folder, **environment):
    """What is in use, of a package in that folder that runs a model as it must."""
    environment = {"PYTHONPATH": str(folder), **environment}
    onnxeval = [sys.executable, "-P", "-m", "onnxeval"]
    picture = DIGITS / "digit_7.npy"
    run([*onnxeval, "run", DIGITS / "model.onnx", "-i", picture, "--expect", "class=[7]"], **environment)
    (line,) = [
        each for each in run([*onnxeval, "--version"], **environment).splitlines() if each.startswith("compiled")
    ]
    return line.removeprefix("compiled kernels: ")


@pytest.fixture
def tree(tmp_path):
    copy_package(tmp_path / "tree")
    return tmp_path / "tree"


@pytest.fixture
def compiler():
    found = shutil.which("gcc") or shutil.which("cc")
    if not found:
        pytest.skip("there is no C compiler here")
    return found


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_no_compiler(tree, tmp_path):
    said = install(tree, tmp_path / "site", PATH=str(tmp_path / "nothing"))
    assert "onnxeval is installed without its compiled kernels" in said
    assert kernels_of(tmp_path / "site") == "not built, for want of a C compiler that builds them"


def test_a_compiler_that_fails(tree, tmp_path):
    said = install(tree, tmp_path / "site", CC=script(tmp_path / "broken", "exit 1"))
    assert "onnxeval is installed without its compiled kernels" in said
    assert kernels_of(tmp_path / "site") == "not built, for want of a C compiler that builds them"


def test_a_compiler_that_does_not_know_all_instructions(tree, tmp_path, compiler):
    kernels = native()
    if kernels is None or "v3" not in kernels.tiers():
        pytest.skip("this processor, or this build, has no v3")
    old = f'case "$*" in *avx512*) exit 1;; esac\nexec {compiler} "$@"'
    said = install(tree, tmp_path / "site", CC=script(tmp_path / "old", old), LDSHARED=f"{compiler} -pthread -shared")
    assert "the compiled kernels are built without v4: " in said
    assert kernels_of(tmp_path / "site") == "v3 of v2, v3"
    assert kernels_of(tmp_path / "site", ONNXEVAL_NATIVE="v2") == "v2 of v2, v3"


def test_wheels_and_the_source_distribution(tmp_path, compiler):
    for tool in ("auditwheel", "build", "ziglang"):
        pytest.importorskip(tool, reason="the extra `wheels` is not installed")
    said = run([sys.executable, ROOT / "tools" / "wheels.py", tmp_path])
    assert "compiled kernels: " in said
    (source,) = tmp_path.glob("*.tar.gz")
    for architecture in ("x86_64", "aarch64"):
        (wheel,) = tmp_path.glob(f"*manylinux_2_17_{architecture}*.whl")
        assert "-cp311-abi3-" in wheel.name
    with tarfile.open(source) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    wanted = [path for folder in ("onnxeval", "cli", "tests", "sample_models") for path in (ROOT / folder).rglob("*")]
    wanted = [path for path in wanted if path.suffix in (".c", ".h", ".py", ".pyi", ".onnx", ".onnxtxt")]
    assert {str(path.relative_to(ROOT)) for path in wanted} <= held
    install(source, tmp_path / "site")
    assert " of " in kernels_of(tmp_path / "site")
