"""Random trees and the walk down them, which the tests of all tree ensembles share."""

import math
import operator
from types import SimpleNamespace

import numpy as np
import pytest

RNG = np.random.default_rng(10)
COMPARE = {
    "BRANCH_LEQ": operator.le,
    "BRANCH_LT": operator.lt,
    "BRANCH_GTE": operator.ge,
    "BRANCH_GT": operator.gt,
    "BRANCH_EQ": operator.eq,
    "BRANCH_NEQ": operator.ne,
    "BRANCH_MEMBER": lambda value, members: value in members,
}
TRANSFORMS = {"NONE": lambda v: v, "LOGISTIC": lambda v: 1 / (1 + np.exp(-v))}


@pytest.fixture(autouse=True)
def _as_while_a_model_runs():
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def woods():
    return SimpleNamespace(
        Leaf=Leaf, Node=Node, grown=grown, walked=walked, combined=combined, rows=rows, transforms=TRANSFORMS, rng=RNG
    )


class Leaf:
    def __init__(self, targets):
        self.votes = {
            int(t): float(np.float32(RNG.normal())) for t in RNG.choice(targets, RNG.integers(1, targets + 1), False)
        }


class Node:
    def __init__(self, depth, targets, features, modes):
        self.mode = str(RNG.choice(modes))
        self.feature = int(RNG.integers(features))
        self.against = float(RNG.integers(-2, 3))
        if self.mode == "BRANCH_MEMBER":
            self.against = [float(v) for v in RNG.choice(np.arange(-3, 4), RNG.integers(1, 4), False)]
        self.missing = int(RNG.integers(2))
        self.false, self.true = (grown(depth - 1, targets, features, modes) for _ in range(2))


def grown(depth, targets, features, modes):
    stops = depth == 0 or RNG.random() < 0.2
    return Leaf(targets) if stops else Node(depth, targets, features, modes)


def walked(tree, row):
    """The votes where a row ends, as the text tells."""
    while isinstance(tree, Node):
        value = float(row[tree.feature])
        taken = tree.missing if math.isnan(value) else COMPARE[tree.mode](value, tree.against)
        tree = tree.true if taken else tree.false
    return tree.votes


def combined(trees, row, targets, how):
    result = []
    for target in range(targets):
        votes = [v[target] for v in (walked(tree, row) for tree in trees) if target in v]
        if how in ("MIN", "MAX"):
            result.append({"MIN": min, "MAX": max}[how](votes, default=0.0))
        else:
            result.append(sum(votes) / (len(trees) if how == "AVERAGE" else 1))
    return np.array(result)


def rows(dtype=np.float32, features=3):
    x = RNG.integers(-3, 4, (25, features)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[RNG.random(x.shape) < 0.15] = np.nan
    return x
