"""Kernels that others bring: from a file of Python, and from installed packages.

A package offers its modules of kernels as entry points of the group ``onnxeval.ops``; importing one registers what
its `onnxeval.op` decorators name.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path

from onnxeval.errors import InputError

GROUP = "onnxeval.ops"


def load_file(path: str) -> None:
    """Run a file of kernels once; another call for the same file does nothing.

    Raises InputError where there is no such file and where running it fails.
    """
    source = Path(os.path.realpath(path))
    name = f"onnxeval_ops_{source.stem}_{abs(hash(source)):x}"
    if name in sys.modules:
        return
    if not os.path.isfile(source):
        raise InputError(f"there is no file of operators {path}")
    spec = importlib.util.spec_from_file_location(name, source)
    if spec is None or spec.loader is None:
        raise InputError(f"the file of operators {path} is not Python: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"the file of operators {path} fails: {type(error).__name__}: {error}") from error


@cache
def load_installed() -> None:
    """Import the kernels of every installed package that offers some.

    Raises InputError, with the package's name, where an import fails.
    """
    from importlib.metadata import entry_points  # 20 ms that only operators outside the standard cost

    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:
            package = entry.dist.name if entry.dist else entry.value
            raise InputError(f"the operators of the package {package} cannot be loaded: {error}") from error
