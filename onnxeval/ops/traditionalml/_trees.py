"""Forests as arrays over their nodes, walked by all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate

#: mode -> whether the true branch is taken where the feature is below, at and above the threshold
BRANCHES: dict[str, tuple[bool, bool, bool]] = {
    "BRANCH_LEQ": (True, True, False),
    "BRANCH_LT": (True, False, False),
    "BRANCH_GTE": (False, True, True),
    "BRANCH_GT": (False, False, True),
    "BRANCH_EQ": (False, True, False),
    "BRANCH_NEQ": (True, False, True),
    "BRANCH_MEMBER": (False, False, False),
}

#: How many votes are counted at once.
BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Members:
    """The sets that BRANCH_MEMBER nodes test: ``set_of`` each node (-1 for none), and (set, value) pairs in order."""

    set_of: Tensor
    values: Tensor  # float64, distinct and ascending
    pairs: Tensor  # set * len(values) + place of the value, ascending

    def hold(self, nodes: Tensor, x: Tensor) -> Tensor:
        """Whether ``x`` is in the set of its node."""
        at = np.minimum(np.searchsorted(self.values, x), self.values.size - 1)
        asked = self.set_of[nodes] * self.values.size + at
        found = np.minimum(np.searchsorted(self.pairs, asked), self.pairs.size - 1)
        return np.asarray((self.set_of[nodes] >= 0) & (self.values[at] == x) & (self.pairs[found] == asked))


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees over one array of nodes; what a leaf compares does not matter.

    ``children`` (nodes, 2) are the nodes of the false and the true branch; ``follows`` (nodes, 4) is which of them
    comes next where the feature is below, at and above ``threshold``, and where it is NaN.
    """

    roots: Tensor
    is_leaf: Tensor
    feature: Tensor
    threshold: Tensor
    children: Tensor
    follows: Tensor
    members: Members | None

    def check(self, features: int) -> None:
        """ValueError where a node asks for a feature there is not."""
        asked = self.feature[~self.is_leaf]
        if (outside := asked[(asked < 0) | (asked >= features)]).size:
            raise ValueError(f"a node compares feature {outside[0]}, the input has {features}")

    def check_paths(self) -> None:
        """ValueError where a path never ends."""
        parents = np.bincount(self.children[~self.is_leaf].reshape(-1), minlength=self.is_leaf.size)
        settled, free = 0, np.flatnonzero(parents == 0)
        while free.size:
            settled += free.size
            freed = self.children[free[~self.is_leaf[free]]].reshape(-1)
            np.subtract.at(parents, freed, 1)
            free = np.unique(freed[parents[freed] == 0])
        if settled < self.is_leaf.size:
            raise ValueError(f"the trees have a cycle: {self.is_leaf.size - settled} nodes are in it or behind it")

    def leaves(self, x: Tensor) -> Tensor:
        """(N, F) float64 -> (N, trees), the leaf where each row ends in each tree."""
        at = np.repeat(self.roots[np.newaxis], x.shape[0], 0)
        row, tree = np.nonzero(~self.is_leaf[at])
        while row.size:
            node = at[row, tree]
            value, threshold = x[row, self.feature[node]], self.threshold[node]
            outcome = (value >= threshold).astype(np.intp) + (value > threshold)
            outcome[np.isnan(value)] = 3
            following = self.follows[node, outcome]
            if self.members is not None:
                following = np.where(self.members.hold(node, value), self.children[node, 1], following)
            at[row, tree] = following
            inner = ~self.is_leaf[following]
            row, tree = row[inner], tree[inner]
        return at


def forest(
    *,
    roots: Tensor,
    is_leaf: Tensor,
    feature: Tensor,
    threshold: Tensor,
    branch: Tensor,
    missing: Tensor,
    false: Tensor,
    true: Tensor,
    members: Members | None = None,
) -> Forest:
    """``branch`` (nodes, 3) and ``missing`` tell where a node goes on to ``true`` and not to ``false``.

    No feature compares with a NaN for a threshold: only ``missing`` and sets count there. ValueError where a path never
    ends.
    """
    taken = np.column_stack([branch & ~np.isnan(threshold)[:, np.newaxis], missing])
    follows = np.where(taken, true[:, np.newaxis], false[:, np.newaxis])
    trees = Forest(roots, is_leaf, feature, threshold, np.column_stack([false, true]), follows, members)
    trees.check_paths()
    return trees


class Cast(NamedTuple):
    """The votes that count: for which row of the input, for which target, and how much."""

    row: Tensor
    target: Tensor
    weight: Tensor


@dataclass(frozen=True, slots=True)
class Votes:
    """What the leaves give: weights to targets. A leaf may give several, or none.

    Those of one node follow one another: from ``first`` on there are ``count``.
    """

    target: Tensor
    weight: Tensor
    first: Tensor
    count: Tensor

    def given_by(self, leaves: Tensor) -> Cast:
        """(N, trees) leaves -> every vote that counts, row by row."""
        reached = leaves.reshape(-1)
        many = self.count[reached]
        within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        vote = np.repeat(self.first[reached], many) + within
        row = np.repeat(np.arange(leaves.shape[0]), many.reshape(leaves.shape).sum(1))
        return Cast(row, self.target[vote], self.weight[vote])


def votes_of(node: Tensor, target: Tensor, weight: Tensor, nodes: int) -> Votes:
    """The votes of these nodes, of so many there are."""
    order = np.argsort(node, kind="stable")
    count = np.bincount(node, minlength=nodes)
    return Votes(target[order], weight[order], np.cumsum(count) - count, count)


class Ensemble(NamedTuple):
    """What the attributes of a node make: the trees and what their leaves give."""

    trees: Forest
    votes: Votes


def _add(scores: Tensor, votes: Cast, trees: int) -> None:  # noqa: ARG001  # one signature for all
    places = votes.row * scores.shape[1] + votes.target
    scores += np.bincount(places, votes.weight, scores.size).reshape(scores.shape)


def _average(scores: Tensor, votes: Cast, trees: int) -> None:
    _add(scores, votes, trees)
    scores /= max(trees, 1)


def _extreme(ufunc: np.ufunc, start: float) -> Callable[[Tensor, Cast, int], None]:
    def combine(scores: Tensor, votes: Cast, trees: int) -> None:  # noqa: ARG001  # one signature for all
        scores[votes.row, votes.target] = start
        ufunc.at(scores, (votes.row, votes.target), votes.weight)

    return combine


#: aggregate_function -> what it makes of float64 zeros (N, targets), the votes of each row and the number of trees
AGGREGATES: dict[str, Callable[[Tensor, Cast, int], None]] = {
    "AVERAGE": _average,
    "SUM": _add,
    "MIN": _extreme(np.minimum, np.inf),
    "MAX": _extreme(np.maximum, -np.inf),
}


def aggregated(ensemble: Ensemble, x: Tensor, targets: int, aggregate_function: str, allocate: Allocate) -> Tensor:
    """float64 (N, targets): the votes of all trees for each target, added, averaged over the trees, or their extreme.

    A target without a vote gets 0. ValueError where a target, a feature or ``aggregate_function`` is unknown.
    """
    forest, votes = ensemble
    if aggregate_function not in AGGREGATES:
        raise ValueError(f"aggregate_function {aggregate_function!r} is none of {', '.join(map(repr, AGGREGATES))}")
    if (outside := votes.target[(votes.target < 0) | (votes.target >= targets)]).size:
        raise ValueError(f"a leaf votes for target {outside[0]} of {targets}")
    forest.check(x.shape[1])
    scores = allocate((x.shape[0], targets), np.dtype(np.float64))
    scores[...] = 0
    per_row = forest.roots.size * max(int(votes.count.max(initial=1)), 1)
    rows = max(BLOCK // max(per_row, 1), 1)
    for first in range(0, x.shape[0], rows):
        leaves = forest.leaves(x[first : first + rows])
        counted = votes.given_by(leaves)
        AGGREGATES[aggregate_function](scores[first : first + rows], counted, forest.roots.size)
    return scores


def same_length(**attributes: Sized | None) -> int:
    """The length that all attributes have that are given. ValueError where two differ."""
    lengths = {name: len(value) for name, value in attributes.items() if value is not None}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"lengths differ: {', '.join(f'{name} {length}' for name, length in lengths.items())}")
    return next(iter(lengths.values()))
