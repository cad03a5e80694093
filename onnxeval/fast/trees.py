"""Ensembles of trees, walked by a compiled kernel: every node asks whether a feature is at most a threshold.

What else nodes ask for is put into such questions: whether a feature is below a threshold, whether it is at most the
number before it; whether it is in a set, one after the other, by halves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import FLOAT32
from onnxeval.fast._scores import TRANSFORMS, Choice, Complement, Ending, doubles_or_none, table_of
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.traditionalml._lookup import only_one
from onnxeval.ops.traditionalml._trees import Ensemble, Forest
from onnxeval.ops.traditionalml.tree_ensemble import AGGREGATE_FUNCTIONS, POST_TRANSFORMS, tree_ensemble
from onnxeval.ops.traditionalml.tree_votes import doubles, tree_ensemble_classifier, tree_ensemble_regressor
from onnxeval.registry import Kernel, preparation_of, signature_of

#: aggregate_function -> its number in ml.h
_AGGREGATES = {"SUM": 0, "AVERAGE": 1, "MIN": 2, "MAX": 3}

#: Features, nodes and votes that a forest may have.
_MOST = 1 << 30

#: Values in the sets of all nodes: more of them would take longer to put into questions than most models run.
_MOST_MEMBERS = 1 << 14


@replaces(tree_ensemble_regressor)
def bind_regressor(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """TreeEnsembleRegressor."""

    def ending(_: Ensemble) -> Ending:
        base = doubles("base_values", attributes["base_values"], attributes.get("base_values_as_tensor"))
        count = attributes["n_targets"]
        if base.size not in (0, count):
            raise ValueError
        return Ending(count, doubles_or_none(base), TRANSFORMS[attributes["post_transform"]])

    return _bound(tree_ensemble_regressor, attributes, attributes["aggregate_function"], ending)


@replaces(tree_ensemble_classifier)
def bind_classifier(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """TreeEnsembleClassifier."""

    def ending(ensemble: Ensemble) -> Ending:
        names = ("classlabels_int64s", "classlabels_strings")
        labels, votes = only_one(**{name: attributes[name] for name in names}), ensemble.votes
        transform = attributes["post_transform"]
        base = doubles("base_values", attributes["base_values"], attributes.get("base_values_as_tensor"))
        alone = labels.size == 2 and votes.target.size > 0 and not votes.target.any() and base.size < 2
        if base.size not in (0, 1 if alone else labels.size):
            raise ValueError
        if not alone:
            return Ending(
                labels.size, doubles_or_none(base), TRANSFORMS[transform], choice=Choice.GREATEST, labels=labels
            )
        around_zero = transform == "LOGISTIC" or (votes.weight < 0).any()
        complement = Complement.TO_ZERO if around_zero else Complement.TO_ONE
        return Ending(1, doubles_or_none(base), TRANSFORMS[transform], complement, Choice.GREATEST, labels)

    return _bound(tree_ensemble_classifier, attributes, "SUM", ending)


@replaces(tree_ensemble)
def bind_tree_ensemble(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """TreeEnsemble."""
    aggregate, transform = attributes["aggregate_function"], attributes["post_transform"]
    if aggregate not in range(len(AGGREGATE_FUNCTIONS)) or transform not in range(len(POST_TRANSFORMS)):
        return None

    def ending(_: Ensemble) -> Ending:
        return Ending(attributes["n_targets"], None, TRANSFORMS[POST_TRANSFORMS[transform]])

    return _bound(tree_ensemble, attributes, AGGREGATE_FUNCTIONS[aggregate], ending, is_typed=True)


def _bound(
    readable: Kernel,
    attributes: Mapping[str, Any],
    aggregate: str,
    ending_of: Callable[[Ensemble], Ending],
    *,
    is_typed: bool = False,
) -> Kernel | None:
    """What replaces a kernel; ``is_typed`` ones give what they are given, float32 or float64, others float32."""
    kernels = native()
    prepare = preparation_of(readable)
    assert kernels is not None
    assert prepare is not None
    names = [name for name in signature_of(prepare).positional if name in attributes]
    try:
        with np.errstate(all="ignore"):
            ensemble = prepare(**{name: attributes[name] for name in names})
            ending, how = ending_of(ensemble), _AGGREGATES[aggregate]
            nodes = _Nodes.of(ensemble)
            fits = nodes is not None and ending.width >= 1 and _are_targets(ensemble.votes.target, ending.width)
    except Exception:  # whatever is wrong with the attributes, the readable kernel says it
        return None
    if nodes is None or not fits:
        return None

    @cache
    def forest(is_float: bool) -> Any:
        thresholds = _at_most_in_float32(nodes.thresholds) if is_float else nodes.thresholds
        return kernels.Forest(thresholds, nodes.features, nodes.following, *nodes.rest)

    @replayable
    def walked(x: Tensor, *, allocate: Allocate, **given: Any) -> Any:
        table = table_of(x)
        refused = table is None or table.shape[1] < nodes.width or (is_typed and table.dtype.kind != "f")
        if table is None or refused:
            return readable(x, allocate=allocate, **given, prepared=ensemble)

        def compute(*rest: Any) -> None:
            kernels.run_trees(table, forest(table.dtype == FLOAT32), how, *rest)

        return ending.run(compute, len(table), table.dtype if is_typed else FLOAT32, allocate)

    return walked


def _are_targets(targets: Tensor, count: int) -> bool:
    return not targets.size or bool(targets.min() >= 0 and targets.max() < min(count, _MOST))


class _Nodes(NamedTuple):
    """The questions of a forest, as its compiled form takes them."""

    thresholds: Tensor  # float64
    features: Tensor
    following: Tensor
    rest: tuple[Tensor, ...]  # roots, and where the votes of each node begin, their targets and weights
    width: int  # the features that there must be

    @classmethod
    def of(cls, ensemble: Ensemble) -> _Nodes | None:
        """None where there are features that there cannot be, or more of anything than places."""
        trees, votes = ensemble
        if trees.members is not None and trees.members.pairs.size > _MOST_MEMBERS:
            return None
        feature = np.where(trees.is_leaf, 0, trees.feature)
        most = max(trees.is_leaf.size, votes.target.size, feature.max(initial=0))
        if feature.min(initial=0) < 0 or most >= _MOST or not feature.size:
            return None
        questions = _questions(trees, feature)
        added = len(questions.threshold) - trees.is_leaf.size
        first = np.concatenate([votes.first, np.full(added + 1, votes.target.size)])
        counted = (trees.roots, first, votes.target)
        return cls(
            questions.threshold,
            (questions.feature * 2 + questions.nan_is_low).astype(np.int32),
            np.column_stack([questions.high, questions.low]).astype(np.int32),
            (*(each.astype(np.int32) for each in counted), np.ascontiguousarray(votes.weight, np.float64)),
            int(feature.max()) + 1,
        )


class _Questions(NamedTuple):
    """Whether each node's feature is at most its threshold: it goes on to ``low`` where it is, else to ``high``."""

    threshold: Tensor
    feature: Tensor
    low: Tensor
    high: Tensor
    nan_is_low: Tensor

    def with_more(self, more: Sequence[tuple[float, int, int, int, bool]]) -> _Questions:
        """These, and others behind them."""
        if not more:
            return self
        columns = zip(self, zip(*more, strict=True), strict=True)
        return _Questions(*(np.concatenate([old, np.array(new, old.dtype)]) for old, new in columns))


def _questions(trees: Forest, feature: Tensor) -> _Questions:
    """The nodes' questions, those of one node that takes several with the further ones at the end."""
    below, at, above, missing = trees.follows.T
    own = np.arange(feature.size)
    never = trees.is_leaf | ((below == at) & (at == above))  # what is asked does not matter, but for NaN
    only_at = ~never & (below == above)
    before = _number_before(trees.threshold)
    asked = _Questions(
        np.where(never, np.nan, np.where((below == at) | only_at, trees.threshold, before)),
        feature,
        np.where(trees.is_leaf, own, np.where(never, missing, below)),
        np.where(trees.is_leaf, own, above),
        ~trees.is_leaf & (missing == np.where(never, missing, np.where(only_at, at, below))),
    )
    second = np.flatnonzero(only_at)
    asked.low[second] = feature.size + np.arange(second.size)
    more = _Questions(before[second], feature[second], below[second], at[second], np.zeros(second.size, np.bool_))
    asked = _Questions(*(np.concatenate(pair) for pair in zip(asked, more, strict=True)))
    return asked if trees.members is None else _with_sets(asked, trees)


def _with_sets(asked: _Questions, trees: Forest) -> _Questions:
    """The same, where nodes with a set ask for each of its values by halves."""
    members = trees.members
    assert members is not None
    of_set, place = np.divmod(members.pairs, members.values.size)
    more: list[tuple[float, int, int, int, bool]] = []
    for node in np.flatnonzero(members.set_of >= 0):
        start, end = np.searchsorted(of_set, [members.set_of[node], members.set_of[node] + 1])
        values = members.values[place[start:end]]
        if not values.size:
            continue
        # Between these, outside and inside of the set take turns
        ends = np.column_stack([_number_before(values), values]).reshape(-1)
        sides = [int(side) for side in trees.children[node]]
        halves = _Halves(ends, sides, int(asked.feature[node]), bool(trees.follows[node, 3] == sides[1]))
        question = halves.grown(0, ends.size, more, len(asked.threshold))
        for column, answer in zip(asked, question, strict=True):
            column[node] = answer
    return asked.with_more(more)


class _Halves(NamedTuple):
    """Questions that find between which two of ``ends`` a feature is; ``sides`` are what follows outside and inside."""

    ends: Tensor
    sides: Sequence[int]
    feature: int
    nan_is_inside: bool

    def grown(
        self, low: int, high: int, more: list[tuple[float, int, int, int, bool]], base: int
    ) -> tuple[float, int, int, int, bool]:
        """The first question among the ends from ``low`` to ``high``; those that follow go to ``more``."""

        def half(low: int, high: int) -> int:
            if low == high:
                return self.sides[low % 2]
            question = self.grown(low, high, more, base)
            more.append(question)
            return base + len(more) - 1

        middle = (low + high) // 2
        below, above = half(low, middle), half(middle + 1, high)
        # NaN is at most nothing, and so comes to the last question; what is at most its end is inside
        is_last = middle == self.ends.size - 1
        return float(self.ends[middle]), self.feature, below, above, is_last and self.nan_is_inside


def _number_before(values: Tensor) -> Tensor:
    """The greatest number below each; NaN, which nothing is at most, where there is none."""
    return np.where(values == -np.inf, np.nan, np.nextafter(values, -np.inf))


def _at_most_in_float32(values: Tensor) -> Tensor:
    """The greatest float32 that is not above each: a float32 is at most one where it is at most the other."""
    with np.errstate(all="ignore"):
        nearest = values.astype(np.float32)
        return np.where(nearest > values, np.nextafter(nearest, np.float32(-np.inf)), nearest)
