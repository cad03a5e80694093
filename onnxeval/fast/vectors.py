"""Support vector machines, whose attributes are read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import FLOAT32
from onnxeval.fast._scores import SIDE, TRANSFORMS, Choice, Complement, Ending, table_of
from onnxeval.fast.engine import native
from onnxeval.ops.traditionalml._lookup import only_one
from onnxeval.ops.traditionalml.svm import pair_weights, svm_classifier, svm_regressor
from onnxeval.registry import Kernel

#: kernel_type -> its number in ml.h
_SIMILARITIES = {"LINEAR": 0, "POLY": 1, "RBF": 2, "SIGMOID": 3}

#: Multiplications that NumPy is quicker at, where they are products of matrices.
_MANY = 1 << 16


class _Machine(NamedTuple):
    """What the attributes of a machine with support vectors make, as `run_svm` takes it."""

    similarity: tuple[int, float, float, float]
    classes: int
    support: Tensor  # (features, vectors)
    weights: Tensor  # (vectors, outcomes)
    parameters: tuple[Tensor, Tensor | None, Tensor | None]  # rho, slope and shift
    ending: Ending


@replaces(svm_regressor)
def bind_svm_regressor(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """SVMRegressor with support vectors."""

    def machine() -> _Machine:
        count = attributes["n_supports"]
        transform = SIDE if attributes["one_class"] else TRANSFORMS[attributes["post_transform"]]
        weights = np.array(attributes["coefficients"], np.float64).reshape(count, 1)
        rho = _as_many(attributes["rho"], 1)
        ending = Ending(1, None, transform)
        return _Machine(_similarity(attributes), 0, _support(attributes, count), weights, (rho, None, None), ending)

    return _bound(svm_regressor, machine)


@replaces(svm_classifier)
def bind_svm_classifier(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """SVMClassifier with support vectors."""

    def machine() -> _Machine:
        labels = only_one(**{name: attributes[name] for name in ("classlabels_ints", "classlabels_strings")})
        counts = attributes["vectors_per_class"]
        if len(counts) != labels.size or min(counts) < 0:
            raise ValueError
        pairs = list(combinations(range(labels.size), 2))
        weights = pair_weights(np.array(attributes["coefficients"], np.float64), counts, pairs)
        slope, shift = (attributes[name] for name in ("prob_a", "prob_b"))
        told = [_as_many(each, len(pairs)) for each in (slope, shift)] if slope or shift else [None, None]
        is_two = labels.size == 2 and told[0] is None
        ending = Ending(
            labels.size if told[0] is not None else len(pairs),
            None,
            TRANSFORMS[attributes["post_transform"]],
            Complement.TO_ZERO if is_two else Complement.NONE,
            Choice.MOST_WINS,
            labels,
        )
        rho = _as_many(attributes["rho"], len(pairs))
        support = _support(attributes, sum(counts))
        return _Machine(
            _similarity(attributes), labels.size, support, np.ascontiguousarray(weights.T), (rho, *told), ending
        )

    return _bound(svm_classifier, machine)


def _bound(readable: Kernel, machine_of: Callable[[], _Machine]) -> Kernel | None:
    kernels = native()
    assert kernels is not None
    try:
        machine = machine_of()
    except Exception:  # whatever is wrong with the attributes, the readable kernel says it
        return None
    features, vectors = machine.support.shape
    support: Tensor | None = machine.support
    weights = machine.weights
    if machine.similarity[0] == _SIMILARITIES["LINEAR"]:  # the vectors can be weighted before they are compared
        support, weights = None, machine.support @ machine.weights

    is_product = machine.similarity[0] in (_SIMILARITIES["POLY"], _SIMILARITIES["SIGMOID"])

    @replayable
    def compared(x: Tensor, **given: Any) -> Any:
        table = table_of(x)
        if table is None or table.shape[1] != features or (is_product and len(table) * vectors * features > _MANY):
            return readable(x, **given)

        def compute(*rest: Any) -> None:
            arrays = support, weights, *machine.parameters
            kernels.run_svm(table, *machine.similarity, machine.classes, *arrays, *rest)

        return machine.ending.run(compute, len(table), FLOAT32, np.empty)

    return compared


def _similarity(attributes: Mapping[str, Any]) -> tuple[int, float, float, float]:
    kind, parameters = attributes["kernel_type"], tuple(attributes["kernel_params"] or ())
    if kind != "LINEAR" and len(parameters) != len(("gamma", "coef0", "degree")):
        raise ValueError
    gamma, coef0, degree = parameters if kind != "LINEAR" else (0.0, 0.0, 0.0)
    return _SIMILARITIES[kind], gamma, coef0, degree


def _support(attributes: Mapping[str, Any], count: int) -> Tensor:
    """(features, vectors), one of each at least."""
    vectors = np.array(attributes["support_vectors"], np.float64)
    if count < 1 or not vectors.size or vectors.size % count:
        raise ValueError
    return np.ascontiguousarray(vectors.reshape(count, -1).T)


def _as_many(values: Sequence[float] | None, count: int) -> Tensor:
    if values is None or len(values) != count:
        raise ValueError
    return np.array(values, np.float64)
