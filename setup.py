"""Packages: onnxeval and all below it, and the folder cli/ as onnxeval_cli. Everything else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py


class CleanBuild(build_py):
    """Without what an earlier build left behind: a module that has moved since would register its operators twice."""

    def run(self) -> None:
        if not self.editable_mode:
            for package in ("onnxeval", "onnxeval_cli"):
                shutil.rmtree(Path(self.build_lib, package), ignore_errors=True)
        super().run()


setup(
    packages=[*find_packages(include=["onnxeval", "onnxeval.*"]), "onnxeval_cli"],
    cmdclass={"build_py": CleanBuild},
)
