"""onnxeval/kernels.txt says which kernel file registers which operators."""

import subprocess
import sys
from pathlib import Path

from onnxeval.registry import KEPT


def test_the_file_is_up_to_date() -> None:
    """In a process of its own, where no kernel file is imported yet."""
    folder = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {folder!r}); import kernel_files; print(end=kernel_files.text())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == KEPT.read_text("ascii"), "run python tests/ops/kernel_files.py"
