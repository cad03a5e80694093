"""Copies of the package in folders of their own, for scripts that build it in some other way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_IGNORED = shutil.ignore_patterns("*.so", "__pycache__", ".hypothesis")


def copy_package(folder: str) -> None:
    """The package without compiled kernels, and their tests."""
    for part in ("onnxeval", "cli", "tests/fast"):
        shutil.copytree(ROOT / part, Path(folder, part), ignore=_IGNORED)
    for part in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "tests/conftest.py"):
        shutil.copy(ROOT / part, Path(folder, part))


def build_kernels(folder: str, **environment: str) -> None:
    """Compile the kernels of a copy. Ends the script where that fails."""
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(build, cwd=folder, env={**os.environ, **environment}, check=True)
    if not list(Path(folder, "onnxeval/fast").glob("_native.*.so")):
        sys.exit("the extension was not built")


def run_tests(folder: str, python: list[str], arguments: list[str], **environment: str) -> int:
    """Run the tests of a copy with some Python, all or those that the arguments name: its exit code."""
    tests = [*python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": folder, **environment}
    return subprocess.run(tests, cwd=folder, env=environment, check=False).returncode
