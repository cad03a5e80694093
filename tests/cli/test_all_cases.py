"""Every handed case through the shell: an answer or an exit code with a message, never a traceback."""

import json
from pathlib import Path

import numpy as np
import pytest

CASES = sorted(path.parent for path in (Path(__file__).parent.parent / "cases").glob("*/meta.json"))
EXPECTED_CODES = {0, 3, 4, 5, 6, 7}


def arguments_of(folder: Path) -> list[str]:
    words = []
    for name, file in json.loads((folder / "meta.json").read_text())["inputs"].items():
        if isinstance(file, list):
            value = json.dumps([np.load(folder / part, allow_pickle=False).tolist() for part in file])
        else:
            value = str(folder / file)
        words += ["--input", f"{name}={value}"]
    return words


@pytest.mark.parametrize("folder", CASES, ids=lambda path: path.name)
def test_run_and_check(shell, folder):
    model = folder / "model.onnx"
    run = shell("run", model, *arguments_of(folder), "--format", "json")
    assert run.exit_code in EXPECTED_CODES, run.stderr
    if run.exit_code:
        assert run.stdout == ""
        assert "error: " in run.stderr
    else:
        assert json.loads(run.stdout)["outputs"]
        assert shell("run", model, *arguments_of(folder)).exit_code == 0
    check = shell("check", model)
    assert check.exit_code in {0, 1, 3}, check.stderr
    assert check.stderr == ""
