from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _as_while_a_model_runs():
    with np.errstate(all="ignore"):
        yield
