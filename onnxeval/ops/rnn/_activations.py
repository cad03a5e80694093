"""The activation functions that the text of RNN, GRU and LSTM lists, with their alpha and beta."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from onnxeval.dtypes import Tensor

#: What a cell calls: (a gate's input, where the result goes, which may be that input itself) -> the result.
Activation: TypeAlias = Callable[[Tensor, Tensor], Tensor]


class _Function(NamedTuple):
    """``apply(x, out, *parameters)``: the parameters by name, with the defaults of the operator of that name."""

    apply: Callable[..., Tensor]
    defaults: dict[str, float | None]  # None where there is no default


def _sigmoid(x: Tensor, out: Tensor) -> Tensor:
    np.multiply(x, -1, out=out)  # np.negative of NumPy 2.4 writes wrong numbers into arrays of some strides
    np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


def _stored(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def apply(x: Tensor, out: Tensor, *parameters: float) -> Tensor:
        out[...] = function(x, *parameters)
        return out

    return apply


_FUNCTIONS: dict[str, _Function] = {
    "relu": _Function(lambda x, out: np.maximum(x, 0, out=out), {}),
    "tanh": _Function(lambda x, out: np.tanh(x, out=out), {}),
    "sigmoid": _Function(_sigmoid, {}),
    "affine": _Function(_stored(lambda x, alpha, beta: alpha * x + beta), {"alpha": 1.0, "beta": 0.0}),
    "leakyrelu": _Function(_stored(lambda x, alpha: np.where(x >= 0, x, alpha * x)), {"alpha": 0.01}),
    "thresholdedrelu": _Function(_stored(lambda x, alpha: np.where(x >= alpha, x, 0)), {"alpha": 1.0}),
    "scaledtanh": _Function(_stored(lambda x, alpha, beta: alpha * np.tanh(beta * x)), {"alpha": None, "beta": None}),
    "hardsigmoid": _Function(
        _stored(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1)), {"alpha": 0.2, "beta": 0.5}
    ),
    "elu": _Function(_stored(lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0)))), {"alpha": 1.0}),
    "softsign": _Function(_stored(lambda x: x / (1 + np.abs(x))), {}),
    "softplus": _Function(lambda x, out: np.logaddexp(x, 0, out=out), {}),
}


def activations_of(
    names: Sequence[str],
    alpha: Sequence[float] | None,
    beta: Sequence[float] | None,
    clip: float | None,
    *,
    directions: int,
    instead: Mapping[str, Activation] = MappingProxyType({}),
) -> tuple[Activation, ...]:
    """The functions of a cell that computes all directions at once, for [directions, batch, columns].

    ``names`` holds the functions of one direction after those of the other, with values by the rules of
    `parameters_of`. ``clip`` bounds what each function is given. ``instead`` has other functions for some names, in
    lower case, that take no parameters.
    """
    if clip is not None and not clip >= 0:
        raise ValueError(f"clip {clip} is negative")
    functions = parameters_of(names, alpha, beta)
    count = len(functions) // directions
    by_role = (functions[k::count] for k in range(count))
    return tuple(_for_all([_bound(*f, clip, instead) for f in alike], alike) for alike in by_role)


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


def _for_all(functions: Sequence[Activation], described: Sequence[tuple[str, list[float]]]) -> Activation:
    """One function for all directions, from that of each."""
    if all(other == described[0] for other in described):
        return functions[0]

    def apply(x: Tensor, out: Tensor) -> Tensor:
        for d, function in enumerate(functions):
            function(x[d], out[d])
        return out

    return apply


def _bound(name: str, parameters: Sequence[float], clip: float | None, instead: Mapping[str, Activation]) -> Activation:
    function: Callable[..., Tensor] = instead[name] if name in instead else _FUNCTIONS[name].apply
    if clip is None:
        return (lambda x, out: function(x, out, *parameters)) if parameters else function
    return lambda x, out: function(np.clip(x, -clip, clip, out=out), out, *parameters)
