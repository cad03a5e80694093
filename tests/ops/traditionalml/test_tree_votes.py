"""TreeEnsembleClassifier and TreeEnsembleRegressor against a walk down each tree by each row."""

import numpy as np
import pytest

from onnxeval.ops.traditionalml import _trees
from onnxeval.ops.traditionalml.tree_votes import tree_ensemble_classifier, tree_ensemble_regressor


def as_tuples(trees):
    """Attributes of the older operators: nodes in the order in which they are met, ids from 10 on."""
    nodes = {
        name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    }
    missing, votes = [], []

    def add(tree, name):
        place = len(nodes["nodeids"])
        node_id = 10 + sum(t == name for t in nodes["treeids"])
        leaf = hasattr(tree, "votes")
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
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_regressor(woods, how, targets, dtype, transform):
    trees = [woods.grown(depth, targets, 3, MODES) for depth in (4, 0, 3, 1, 5)]
    x, base = woods.rows(dtype), tuple(np.float32(woods.rng.normal(size=targets)).tolist())
    attributes, votes = as_tuples(trees)
    options = {**REGRESSOR, "aggregate_function": how, "n_targets": targets, "post_transform": transform}
    for given in (None, base):
        got = tree_ensemble_regressor(
            x, **{**options, **attributes, **voting("target", votes), "base_values": given}, allocate=np.empty
        )
        assert got.dtype == np.float32
        wanted = [
            woods.transforms[transform](woods.combined(trees, row, targets, how) + np.array(given or 0)) for row in x
        ]
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_every_comparison(woods, mode):
    tree = woods.Node(1, 1, 1, [mode])
    tree.against, tree.false, tree.true = 0.5, woods.Leaf(1), woods.Leaf(1)
    attributes, votes = as_tuples([tree])
    x = np.array([[0.25], [0.5], [1.0], [np.nan], [np.inf]])
    for tree.missing in (0, 1):
        attributes["nodes_missing_value_tracks_true"] = (tree.missing, 0, 0)
        got = tree_ensemble_regressor(x, **REGRESSOR, **attributes, **voting("target", votes), allocate=np.empty)
        np.testing.assert_array_equal(got, [[woods.walked(tree, row)[0]] for row in x])


def test_blocks_of_rows(woods, monkeypatch):
    trees = [woods.grown(4, 2, 3, MODES) for _ in range(6)]
    attributes, votes = as_tuples(trees)
    given = {**REGRESSOR, "n_targets": 2, **attributes, **voting("target", votes), "allocate": np.empty}
    x = woods.rows()
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
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_classifier(woods, classes, transform):
    trees = [woods.grown(3, classes, 3, MODES) for _ in range(4)]
    trees[0] = woods.Leaf(1)
    trees[0].votes = {classes - 1: 0.25}
    x, base = woods.rows(), tuple(np.float32(woods.rng.normal(size=classes)).tolist())
    attributes, votes = as_tuples(trees)
    for given in (None, base):
        options = {**CLASSIFIER, "classlabels_strings": tuple("pqrs"[:classes]), "post_transform": transform}
        labels, scores = tree_ensemble_classifier(
            x, **{**options, **attributes, **voting("class", votes), "base_values": given}, allocate=np.empty
        )
        raw = [woods.combined(trees, row, classes, "SUM") + np.array(given or 0) for row in x]
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores, [woods.transforms[transform](row) for row in raw], rtol=1e-5, atol=1e-6)
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


def test_two_classes_and_the_votes_of_one(woods):
    labels, scores = stump(0.25, 0.75)  # probabilities
    assert (labels.tolist(), scores.tolist()) == ([5, 7], [[0.75, 0.25], [0.25, 0.75]])
    labels, scores = stump(-0.25, 0.75)  # distances
    assert (labels.tolist(), scores.tolist()) == ([5, 7], [[0.25, -0.25], [-0.75, 0.75]])
    for low, high in ((-0.25, 0.75), (0.25, 0.75)):
        labels, scores = stump(low, high, post_transform="LOGISTIC")
        wanted = [[woods.transforms["LOGISTIC"](v) for v in (-score, score)] for score in (low, high)]
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
