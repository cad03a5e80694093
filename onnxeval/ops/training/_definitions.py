"""Operators that are defined by others, whose derivatives these have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from onnxeval.dtypes import BFLOAT16, DType
from onnxeval.ops.training._algebra import cast
from onnxeval.ops.training._tape import Gradients, Node, Rule, Variable, rule

F = TypeVar("F", bound=Callable[..., Any])

_HALF: tuple[DType, ...] = (np.dtype(np.float16), BFLOAT16)


def definition(op_type: str, *versions: int) -> Callable[[F], F]:
    """Register an operator that is defined by others: a function of variables and attributes, like its kernel.

    It sees 16-bit floats as float32, for its sums may leave their range.
    """

    def register(function: F) -> F:
        rule(op_type, *versions)(_through(function))
        return function

    return register


def _through(function: Callable[..., Any]) -> Rule:
    """The rule of what a function of variables computes: go back through what it does."""

    def wayback(node: Node, *gradients: Variable | None) -> Gradients:
        tape = node.tape
        with tape.record_if(True):
            leaves = [given if given is None or given.maker is None else tape.leaf(given) for given in node.inputs]
            results = function(*map(_widened, leaves), **node.attributes)
        outputs = results if isinstance(results, tuple) else (results,)
        seeds = [
            (outputs[place], cast(gradient, outputs[place].dtype))
            for place, gradient in enumerate(gradients)
            if gradient is not None
        ]
        tracked = [None if leaf is None or leaf.maker is None else leaf for leaf in leaves]
        return [None if found is None else partial(_itself, found) for found in tape.pull(seeds, tracked)]

    return wayback


def _widened(given: Variable | None) -> Variable | None:
    if given is None or getattr(given.value, "dtype", None) not in _HALF:
        return given
    return cast(given, np.dtype(np.float32))


def _itself(variable: Variable) -> Variable:
    return variable
