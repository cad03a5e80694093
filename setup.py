"""Packages: onnxeval and all below it, and the folder cli/ as onnxeval_cli. Everything else is in pyproject.toml."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["onnxeval", "onnxeval.*"]), "onnxeval_cli"])
