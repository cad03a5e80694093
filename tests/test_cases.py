"""The models from public bug reports in tests/cases: each gives its recorded answer or a clear error."""

from pathlib import Path

import pytest
from cases.run_cases import judge

FOLDERS = sorted(path.parent for path in (Path(__file__).parent / "cases").glob("*/meta.json"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_case(folder: Path) -> None:
    assert not judge(folder, with_check=False)


def test_no_case_was_lost() -> None:
    assert len(FOLDERS) >= 370
