"""The tree ensembles against a walk down each tree by each row."""

import math
import operator

import numpy as np
import pytest

from onnxeval.ops.traditionalml import _trees
from onnxeval.ops.traditionalml.tree_ensemble import tree_ensemble
from onnxeval.ops.traditionalml.tree_votes import tree_ensemble_classifier, tree_ensemble_regressor

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


def as_tuples(trees):
    """Attributes of the older operators: nodes in the order in which they are met, ids from 10 on."""
    nodes = {
        name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    }
    missing, votes = [], []

    def add(tree, name):
        place = len(nodes["nodeids"])
        node_id = 10 + sum(t == name for t in nodes["treeids"])
        leaf = isinstance(tree, Leaf)
        for key, value in zip(
            nodes,
            (
                name,
                node_id,
                0 if leaf else tree.feature,
                "LEAF" if leaf else tree.mode,
                0.0 if leaf else tree.against,
                0,
                0,
            ),
            strict=True,
        ):
            nodes[key].append(value)
        missing.append(0 if leaf else tree.missing)
        if leaf:
            votes.extend((name, node_id, target, weight) for target, weight in tree.votes.items())
        else:
            nodes["truenodeids"][place] = add(tree.true, name)
            nodes["falsenodeids"][place] = add(tree.false, name)
        return node_id

    for number, tree in enumerate(trees):
        add(tree, 7 - 3 * number)
    attributes = {f"nodes_{name}": tuple(values) for name, values in nodes.items()}
    return {**attributes, "nodes_missing_value_tracks_true": tuple(missing), "nodes_hitrates": None}, votes


def voting(prefix, votes):
    columns = zip(*votes, strict=True) if votes else ((), (), (), ())
    names = ("treeids", "nodeids", "ids", "weights")
    return {f"{prefix}_{name}": tuple(column) for name, column in zip(names, columns, strict=True)}


REGRESSOR = {"aggregate_function": "SUM", "base_values": None, "n_targets": 1, "post_transform": "NONE"}
OLD_MODES = [mode for mode in COMPARE if mode != "BRANCH_MEMBER"]


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_regressor(how, targets, dtype, transform):
    trees = [grown(depth, targets, 3, OLD_MODES) for depth in (4, 0, 3, 1, 5)]
    x, base = rows(dtype), tuple(np.float32(RNG.normal(size=targets)).tolist())
    attributes, votes = as_tuples(trees)
    options = {**REGRESSOR, "aggregate_function": how, "n_targets": targets, "post_transform": transform}
    for given in (None, base):
        got = tree_ensemble_regressor(
            x, **{**options, **attributes, **voting("target", votes), "base_values": given}, allocate=np.empty
        )
        assert got.dtype == np.float32
        wanted = [TRANSFORMS[transform](combined(trees, row, targets, how) + np.array(given or 0)) for row in x]
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", OLD_MODES)
def test_every_comparison(mode):
    tree = Node(1, 1, 1, [mode])
    tree.against, tree.false, tree.true = 0.5, Leaf(1), Leaf(1)
    attributes, votes = as_tuples([tree])
    x = np.array([[0.25], [0.5], [1.0], [np.nan], [np.inf]])
    for tree.missing in (0, 1):
        attributes["nodes_missing_value_tracks_true"] = (tree.missing, 0, 0)
        got = tree_ensemble_regressor(x, **REGRESSOR, **attributes, **voting("target", votes), allocate=np.empty)
        np.testing.assert_array_equal(got, [[walked(tree, row)[0]] for row in x])


def test_blocks_of_rows(monkeypatch):
    trees = [grown(4, 2, 3, OLD_MODES) for _ in range(6)]
    attributes, votes = as_tuples(trees)
    given = {**REGRESSOR, "n_targets": 2, **attributes, **voting("target", votes), "allocate": np.empty}
    x = rows()
    for how in ("SUM", "MAX"):
        whole = tree_ensemble_regressor(x, **{**given, "aggregate_function": how})
        monkeypatch.setattr(_trees, "BLOCK", 30)
        assert tree_ensemble_regressor(x, **{**given, "aggregate_function": how}).tolist() == whole.tolist()
        monkeypatch.undo()


def test_doubles_are_compared_exactly():
    above = 1 + 2.0**-40
    nodes = {
        "nodes_treeids": (0, 0, 0),
        "nodes_nodeids": (0, 1, 2),
        "nodes_featureids": (0, 0, 0),
        "nodes_modes": ("BRANCH_LT", "LEAF", "LEAF"),
        "nodes_truenodeids": (1, 0, 0),
        "nodes_falsenodeids": (2, 0, 0),
        "nodes_missing_value_tracks_true": None,
        "nodes_hitrates": None,
        "nodes_values": None,
        "nodes_values_as_tensor": np.array([above, 0, 0]),
        "target_treeids": (0, 0),
        "target_nodeids": (1, 2),
        "target_ids": (0, 0),
        "target_weights": None,
        "target_weights_as_tensor": np.array([2.0, 3.0]),
    }
    x = np.array([[1.0], [above]])
    assert tree_ensemble_regressor(x, **REGRESSOR, **nodes, allocate=np.empty).tolist() == [[2], [3]]
    based = {**REGRESSOR, "base_values_as_tensor": np.array([0.5])}
    assert tree_ensemble_regressor(x, **based, **nodes, allocate=np.empty).tolist() == [[2.5], [3.5]]
    with pytest.raises(ValueError, match="nodes_values and nodes_values_as_tensor given"):
        tree_ensemble_regressor(x, **REGRESSOR, **{**nodes, "nodes_values": (1.0, 0.0, 0.0)}, allocate=np.empty)


CLASSIFIER = {"base_values": None, "classlabels_int64s": None, "classlabels_strings": None, "post_transform": "NONE"}


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_classifier(classes, transform):
    trees = [grown(3, classes, 3, OLD_MODES) for _ in range(4)]
    trees[0] = Leaf(1)
    trees[0].votes = {classes - 1: 0.25}
    x, base = rows(), tuple(np.float32(RNG.normal(size=classes)).tolist())
    attributes, votes = as_tuples(trees)
    for given in (None, base):
        options = {**CLASSIFIER, "classlabels_strings": tuple("pqrs"[:classes]), "post_transform": transform}
        labels, scores = tree_ensemble_classifier(
            x, **{**options, **attributes, **voting("class", votes), "base_values": given}, allocate=np.empty
        )
        raw = [combined(trees, row, classes, "SUM") + np.array(given or 0) for row in x]
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores, [TRANSFORMS[transform](row) for row in raw], rtol=1e-5, atol=1e-6)
        assert labels.tolist() == ["pqrs"[int(np.argmax(row))] for row in raw]


def stump(low, high, target=0, **options):
    """The classifier of one tree: ``low`` where x <= 0, else ``high``, for rows of -1 and 1."""
    return tree_ensemble_classifier(
        np.array([[-1.0], [1.0]], np.float32),
        **{
            **CLASSIFIER,
            "classlabels_int64s": (5, 7),
            "nodes_treeids": (0, 0, 0),
            "nodes_nodeids": (0, 1, 2),
            "nodes_featureids": (0, 0, 0),
            "nodes_modes": ("BRANCH_LEQ", "LEAF", "LEAF"),
            "nodes_values": (0.0, 0.0, 0.0),
            "nodes_truenodeids": (1, 0, 0),
            "nodes_falsenodeids": (2, 0, 0),
            "nodes_missing_value_tracks_true": None,
            "nodes_hitrates": (1.0, 1.0, 1.0),
            "class_treeids": (0, 0),
            "class_nodeids": (1, 2),
            "class_ids": (target, target),
            "class_weights": (low, high),
            **options,
        },
        allocate=np.empty,
    )


def test_two_classes_and_the_votes_of_one():
    labels, scores = stump(0.25, 0.75)  # probabilities
    assert (labels.tolist(), scores.tolist()) == ([5, 7], [[0.75, 0.25], [0.25, 0.75]])
    labels, scores = stump(-0.25, 0.75)  # distances
    assert (labels.tolist(), scores.tolist()) == ([5, 7], [[0.25, -0.25], [-0.75, 0.75]])
    for low, high in ((-0.25, 0.75), (0.25, 0.75)):
        labels, scores = stump(low, high, post_transform="LOGISTIC")
        wanted = [[TRANSFORMS["LOGISTIC"](v) for v in (-score, score)] for score in (low, high)]
        np.testing.assert_allclose(scores, wanted, rtol=1e-6)
        assert labels.tolist() == [5 if low < 0 else 7, 7]
    labels, scores = stump(0.25, 0.75, base_values=(0.125,))
    assert scores.tolist() == [[0.625, 0.375], [0.125, 0.875]]
    assert stump(0.5, 0.5)[0].tolist() == [5, 5]
    labels, scores = stump(0.25, 0.75, target=1)  # the second class has votes of its own
    assert (labels.tolist(), scores.tolist()) == ([7, 7], [[0, 0.25], [0, 0.75]])
    labels, scores = stump(0.25, 0.75, base_values=(0.0, 0.5))
    assert (labels.tolist(), scores.tolist()) == ([7, 5], [[0.25, 0.5], [0.75, 0.5]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nodes_truenodeids": (0, 0, 0)}, "tree 0 has 2 nodes|cycle"),
        ({"nodes_truenodeids": (1, 0, 0), "nodes_modes": ("BRANCH_LEQ", "BRANCH_LEQ", "LEAF")}, "tree 0 has 0 nodes"),
        ({"nodes_truenodeids": (9, 0, 0)}, "nodes_truenodeids names node 9 of tree 0"),
        ({"nodes_treeids": (0, 0, 1)}, "nodes_falsenodeids names node 2 of tree 0"),
        ({"nodes_nodeids": (0, 1, 1)}, "tree 0 has two nodes 1"),
        ({"nodes_values": (0.0, 0.0)}, "lengths differ.*nodes_values 2"),
        ({"nodes_hitrates": (0.0,)}, "lengths differ.*nodes_hitrates 1"),
        ({"nodes_missing_value_tracks_true": (0,)}, "lengths differ"),
        ({"class_weights": (1.0,)}, "lengths differ.*weights 1"),
        ({"class_nodeids": (1, 5)}, "a vote names node 5 of tree 0"),
        ({"class_treeids": (0, 3)}, "a vote names node 2 of tree 3"),
        ({"class_ids": (0, 2)}, "votes for target 2 of 2"),
        ({"class_ids": (0, -1)}, "votes for target -1 of 2"),
        ({"nodes_featureids": (1, 0, 0)}, "compares feature 1, the input has 1"),
        ({"nodes_modes": ("BRANCH_MEMBER", "LEAF", "LEAF")}, "'BRANCH_MEMBER'"),
        ({"base_values": (1.0, 2.0, 3.0)}, "3 base values for 2 classes"),
        ({"classlabels_int64s": None}, "expected one of"),
    ],
)
def test_malformed_tuples(given, message):
    with pytest.raises(ValueError, match=message):
        stump(0.25, 0.75, **given)


def test_cycles_below_the_root():
    attributes = {
        "nodes_treeids": (0,) * 4,
        "nodes_nodeids": (0, 1, 2, 3),
        "nodes_featureids": (0,) * 4,
        "nodes_modes": ("BRANCH_LEQ", "BRANCH_LEQ", "BRANCH_LEQ", "LEAF"),
        "nodes_values": (0.0,) * 4,
        "nodes_truenodeids": (1, 2, 1, 0),
        "nodes_falsenodeids": (3, 3, 3, 0),
        "class_treeids": (0,),
        "class_nodeids": (3,),
        "class_ids": (0,),
        "class_weights": (1.0,),
        "nodes_hitrates": None,
    }
    with pytest.raises(ValueError, match="cycle: 3 nodes"):
        stump(0, 0, **attributes)


def test_no_trees():
    empty = {f"nodes_{name}": None for name in ("treeids", "nodeids", "featureids", "modes", "values")}
    empty |= {f"nodes_{name}": None for name in ("truenodeids", "falsenodeids", "hitrates")}
    none = {f"target_{name}": None for name in ("treeids", "nodeids", "ids", "weights")}
    given = {**REGRESSOR, **empty, **none, "nodes_missing_value_tracks_true": None, "base_values": (1.5,)}
    for how in ("SUM", "AVERAGE", "MAX"):
        got = tree_ensemble_regressor(np.zeros((2, 1)), **{**given, "aggregate_function": how}, allocate=np.empty)
        assert got.tolist() == [[1.5], [1.5]]
    for n_targets in (None, 0):
        with pytest.raises(ValueError, match="n_targets is"):
            tree_ensemble_regressor(np.zeros((2, 1)), **{**given, "n_targets": n_targets}, allocate=np.empty)


# TreeEnsemble

TRANSFORM_NUMBERS = {"NONE": 0, "LOGISTIC": 2}


def as_arrays(trees, dtype):
    """Attributes of TreeEnsemble; a lone leaf becomes a node that leads to it either way."""
    nodes = {
        name: [] for name in ("featureids", "modes", "splits", "truenodeids", "trueleafs", "falsenodeids", "falseleafs")
    }
    missing, members, leaves = [], [], []

    def leaf(tree):
        [(target, weight)] = tree.votes.items()
        leaves.append((target, weight))
        return len(leaves) - 1

    def add(tree):
        place = len(nodes["modes"])
        for values in nodes.values():
            values.append(0)
        missing.append(0)
        if isinstance(tree, Leaf):
            nodes["truenodeids"][place] = nodes["falsenodeids"][place] = leaf(tree)
            nodes["trueleafs"][place] = nodes["falseleafs"][place] = 1
            return place
        nodes["modes"][place], nodes["featureids"][place] = list(COMPARE).index(tree.mode), tree.feature
        missing[place] = tree.missing
        if tree.mode == "BRANCH_MEMBER":
            members.extend([*tree.against, math.nan])
        else:
            nodes["splits"][place] = tree.against
        for side in ("true", "false"):
            child = getattr(tree, side)
            nodes[f"{side}leafs"][place] = int(isinstance(child, Leaf))
            nodes[f"{side}nodeids"][place] = leaf(child) if isinstance(child, Leaf) else add(child)
        return place

    roots = [add(tree) for tree in trees]
    attributes = {f"nodes_{name}": tuple(values) for name, values in nodes.items()}
    return {
        **attributes,
        "nodes_modes": np.array(nodes["modes"], np.uint8),
        "nodes_splits": np.array(nodes["splits"], dtype),
        "nodes_missing_value_tracks_true": tuple(missing),
        "nodes_hitrates": None,
        "membership_values": np.array(members, dtype) if members else None,
        "leaf_targetids": tuple(target for target, _ in leaves),
        "leaf_weights": np.array([weight for _, weight in leaves], dtype),
        "tree_roots": tuple(roots),
    }


@pytest.mark.parametrize("how", ["AVERAGE", "SUM", "MIN", "MAX"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("transform", TRANSFORM_NUMBERS)
def test_ensemble(how, dtype, transform):
    trees = [grown(depth, 1, 3, list(COMPARE)) for depth in (5, 0, 3, 4, 1)]
    pending = list(trees)
    while pending:  # one vote a leaf, here for any of two targets
        tree = pending.pop()
        if isinstance(tree, Leaf):
            tree.votes = {int(RNG.integers(2)): float(dtype(RNG.normal()))}
        else:
            pending += [tree.false, tree.true]
    x = rows(dtype)
    got = tree_ensemble(
        x,
        **as_arrays(trees, dtype),
        aggregate_function=["AVERAGE", "SUM", "MIN", "MAX"].index(how),
        post_transform=TRANSFORM_NUMBERS[transform],
        n_targets=2,
        allocate=np.empty,
    )
    assert got.dtype == dtype
    wanted = np.array([TRANSFORMS[transform](combined(trees, row, 2, how)) for row in x])
    np.testing.assert_allclose(got, wanted.astype(dtype), rtol=np.finfo(dtype).eps, atol=np.finfo(dtype).eps)


SMALL = {
    "aggregate_function": 1,
    "leaf_targetids": (0, 0, 0),
    "leaf_weights": np.array([1.0, 2.0, 3.0]),
    "membership_values": None,
    "n_targets": 1,
    "nodes_falseleafs": (0, 1),
    "nodes_falsenodeids": (1, 1),
    "nodes_featureids": (0, 0),
    "nodes_hitrates": None,
    "nodes_missing_value_tracks_true": None,
    "nodes_modes": np.array([0, 0], np.uint8),
    "nodes_splits": np.array([0.0, 1.0]),
    "nodes_trueleafs": (1, 1),
    "nodes_truenodeids": (0, 2),
    "post_transform": 0,
    "tree_roots": (0,),
    "allocate": np.empty,
}


def test_small_ensemble():
    x = np.array([[-1.0], [0.5], [2.0], [np.nan]])
    assert tree_ensemble(x, **SMALL).tolist() == [[1], [3], [2], [2]]
    assert tree_ensemble(x, **{**SMALL, "tree_roots": (0, 1)}).tolist() == [[4], [6], [4], [4]]
    assert tree_ensemble(x[:0], **SMALL).shape == (0, 1)
    member = {"nodes_modes": np.array([6, 6], np.uint8), "membership_values": np.array([-1, np.nan, 0.5, 2])}
    assert tree_ensemble(x, **{**SMALL, **member}).tolist() == [[1], [3], [3], [2]]
    nobody = {"nodes_modes": np.array([6, 6], np.uint8), "membership_values": np.array([np.nan, np.nan])}
    assert tree_ensemble(x, **{**SMALL, **nobody}).tolist() == [[2]] * 4
    never = {"nodes_splits": np.array([np.nan, np.nan]), "nodes_modes": np.array([5, 1], np.uint8)}
    assert tree_ensemble(x, **{**SMALL, **never}).tolist() == [[2]] * 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nodes_splits": np.zeros(3)}, "lengths differ.*nodes_splits 3"),
        ({"nodes_missing_value_tracks_true": (1,)}, "lengths differ"),
        ({"leaf_weights": np.zeros(2)}, "lengths differ.*leaf_weights 2"),
        ({"tree_roots": (2,)}, r"tree_roots holds 2, outside \[0, 1\]"),
        ({"nodes_modes": np.array([0, 7], np.uint8)}, r"nodes_modes holds 7, outside \[0, 6\]"),
        ({"nodes_falsenodeids": (2, 1)}, r"nodes_falsenodeids \(of nodes\) holds 2"),
        ({"nodes_truenodeids": (0, 3)}, r"nodes_truenodeids \(of leaves\) holds 3"),
        ({"nodes_truenodeids": (-1, 2)}, "holds -1"),
        ({"nodes_falsenodeids": (0, 1)}, "cycle"),
        ({"nodes_trueleafs": (1, 0), "nodes_truenodeids": (0, 0)}, "cycle"),
        ({"nodes_featureids": (0, 1)}, "compares feature 1"),
        ({"leaf_targetids": (0, 0, 1)}, "votes for target 1 of 1"),
        ({"n_targets": None}, "n_targets is absent"),
        ({"aggregate_function": 4}, r"aggregate_function 4 is outside \[0, 3\]"),
        ({"post_transform": -1}, r"post_transform -1 is outside \[0, 4\]"),
        ({"membership_values": np.ones(1)}, "1 sets for 0 nodes"),
        ({"nodes_modes": np.array([6, 0], np.uint8)}, "0 sets for 1 nodes"),
    ],
)
def test_malformed_ensemble(given, message):
    with pytest.raises(ValueError, match=message):
        tree_ensemble(np.zeros((1, 1)), **{**SMALL, **given})
