"""The activations of recurrent layers write where they are told to."""

import numpy as np
import pytest

from onnxeval.ops.rnn._activations import _FUNCTIONS, activations_of

PARAMETERS = {name: {key: value or 0.5 for key, value in each.defaults.items()} for name, each in _FUNCTIONS.items()}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PARAMETERS)
def test_activations_overwrite_columns_of_any_table(name, dtype):
    alpha, beta = ([each[key]] if key in (each := PARAMETERS[name]) else None for key in ("alpha", "beta"))
    [squash] = activations_of([name], alpha, beta, None, directions=1)
    for rows in (2, 3, 9):
        for columns in range(1, 20):
            table = np.random.default_rng(columns).normal(size=(1, rows, columns)).astype(dtype)
            column = table[..., :1]
            alone = np.ascontiguousarray(column)
            wanted = squash(alone, np.empty_like(alone))
            np.testing.assert_allclose(squash(column, column), wanted, rtol=1e-6)
