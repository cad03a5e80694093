"""TreeEnsemble against a walk down each tree by each row."""

import math

import numpy as np
import pytest

from onnxeval.ops.traditionalml.tree_ensemble import tree_ensemble

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER"]

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
        if hasattr(tree, "votes"):
            nodes["truenodeids"][place] = nodes["falsenodeids"][place] = leaf(tree)
            nodes["trueleafs"][place] = nodes["falseleafs"][place] = 1
            return place
        nodes["modes"][place], nodes["featureids"][place] = MODES.index(tree.mode), tree.feature
        missing[place] = tree.missing
        if tree.mode == "BRANCH_MEMBER":
            members.extend([*tree.against, math.nan])
        else:
            nodes["splits"][place] = tree.against
        for side in ("true", "false"):
            child = getattr(tree, side)
            nodes[f"{side}leafs"][place] = int(hasattr(child, "votes"))
            nodes[f"{side}nodeids"][place] = leaf(child) if hasattr(child, "votes") else add(child)
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
def test_ensemble(woods, how, dtype, transform):
    trees = [woods.grown(depth, 1, 3, MODES) for depth in (5, 0, 3, 4, 1)]
    pending = list(trees)
    while pending:  # one vote a leaf, here for any of two targets
        tree = pending.pop()
        if hasattr(tree, "votes"):
            tree.votes = {int(woods.rng.integers(2)): float(dtype(woods.rng.normal()))}
        else:
            pending += [tree.false, tree.true]
    x = woods.rows(dtype)
    got = tree_ensemble(
        x,
        **as_arrays(trees, dtype),
        aggregate_function=["AVERAGE", "SUM", "MIN", "MAX"].index(how),
        post_transform=TRANSFORM_NUMBERS[transform],
        n_targets=2,
        allocate=np.empty,
    )
    assert got.dtype == dtype
    wanted = np.array([woods.transforms[transform](woods.combined(trees, row, 2, how)) for row in x])
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
