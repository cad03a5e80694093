"""The activation functions that the text of RNN, GRU and LSTM lists, with their alpha and beta."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from onnxeval.dtypes import Tensor

#: What a cell calls: a function of the gate's input.
Activation: TypeAlias = Callable[[Tensor], Tensor]


class _Function(NamedTuple):
    """``apply(x, *parameters)``: the names it takes after x, with the defaults of the operator of that name."""

    apply: Callable[..., Tensor]
    defaults: dict[str, float | None]  # None where there is no default


_FUNCTIONS: dict[str, _Function] = {
    "relu": _Function(lambda x: np.maximum(x, 0), {}),
    "tanh": _Function(np.tanh, {}),
    "sigmoid": _Function(lambda x: 1 / (1 + np.exp(-x)), {}),
    "affine": _Function(lambda x, alpha, beta: alpha * x + beta, {"alpha": 1.0, "beta": 0.0}),
    "leakyrelu": _Function(lambda x, alpha: np.where(x >= 0, x, alpha * x), {"alpha": 0.01}),
    "thresholdedrelu": _Function(lambda x, alpha: np.where(x >= alpha, x, 0), {"alpha": 1.0}),
    "scaledtanh": _Function(lambda x, alpha, beta: alpha * np.tanh(beta * x), {"alpha": None, "beta": None}),
    "hardsigmoid": _Function(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), {"alpha": 0.2, "beta": 0.5}),
    "elu": _Function(lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))), {"alpha": 1.0}),
    "softsign": _Function(lambda x: x / (1 + np.abs(x)), {}),
    "softplus": _Function(lambda x: np.logaddexp(x, 0), {}),
}


def activations_of(
    names: Sequence[str], alpha: Sequence[float] | None, beta: Sequence[float] | None, clip: float | None
) -> tuple[Activation, ...]:
    """A function for each name, by the rules of `parameters_of`. ``clip`` bounds what each function is given."""
    if clip is not None and not clip >= 0:
        raise ValueError(f"clip {clip} is negative")
    return tuple(_bound(_FUNCTIONS[name], values, clip) for name, values in parameters_of(names, alpha, beta))


def parameters_of(
    names: Sequence[str], alpha: Sequence[float] | None, beta: Sequence[float] | None
) -> list[tuple[str, list[float]]]:
    """Each name in lower case, for case does not matter, and the alpha and beta that its function takes.

    Both are consumed in the order of the functions that take them; defaults stand in when they run out. Raises
    ValueError for unknown names, for values that no function takes, and for a function without the value it needs.
    """
    given = {"alpha": iter(alpha or ()), "beta": iter(beta or ())}
    functions = [(name.lower(), _parameters(name, given)) for name in names]
    for which, left in given.items():
        if extra := list(left):
            raise ValueError(f"activation_{which} ends in {extra}, which none of {list(names)} takes")
    return functions


def _parameters(name: str, given: dict[str, Iterator[float]]) -> list[float]:
    if name.lower() not in _FUNCTIONS:
        raise ValueError(f"activation {name!r} is none of {', '.join(_FUNCTIONS)}")
    parameters = []
    for which, default in _FUNCTIONS[name.lower()].defaults.items():
        value = next(given[which], default)
        if value is None:
            raise ValueError(f"activation {name!r} needs activation_{which}")
        parameters.append(value)
    return parameters


def _bound(function: _Function, parameters: Sequence[float], clip: float | None) -> Activation:
    if clip is None:
        return lambda x: function.apply(x, *parameters)
    return lambda x: function.apply(np.clip(x, -clip, clip), *parameters)
