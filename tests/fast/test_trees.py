"""Compiled trees: to the bit what the readable kernels give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxeval.fast import replacement
from onnxeval.ops.traditionalml.tree_ensemble import POST_TRANSFORMS, tree_ensemble
from onnxeval.ops.traditionalml.tree_votes import tree_ensemble_classifier, tree_ensemble_regressor
from tests.fast.guarded import guarded

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
#: Numbers that thresholds are and features meet, among them some that only float64 has.
NUMBERS = [0.0, -0.0, 1.0, -2.5, 0.1, 1 + 2**-40, 1e300, -1e300, 5e-324, np.inf, -np.inf]
FEATURES = 5


def numbers_from(rng, size, *, with_nan):
    values = rng.choice([*NUMBERS, *[np.nan] * with_nan], size)
    return np.where(rng.random(size) < 0.3, rng.normal(size=size), values)


def random_shape(rng, most):
    """Children of the nodes of a tree, a leaf where there are none: node -> (false, true)."""
    children = {0: None}
    for _ in range(int(rng.integers(0, most))):
        leaf = int(rng.choice([node for node, below in children.items() if below is None]))
        children[leaf] = len(children), len(children) + 1
        children.update(dict.fromkeys(children[leaf]))
    return children


def lists(rng, votes, targets):
    """Attributes of the older ensembles."""
    names = ("treeids", "nodeids", "featureids", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    nodes, given = {f"nodes_{name}": [] for name in names}, {"treeids": [], "nodeids": [], "ids": []}
    for tree in range(int(rng.integers(1, 20))):
        for node, children in random_shape(rng, 12).items():
            mode = str(rng.choice(MODES[:-1])) if children else "LEAF"
            false, true = children or (0, 0)
            row = (tree, node, int(rng.integers(FEATURES)), mode, true, false, int(rng.integers(2)))
            for column, value in zip(nodes.values(), row, strict=True):
                column.append(value)
            for _ in range(0 if children else int(rng.integers(0, 3))):
                for column, value in zip(given.values(), (tree, node, int(rng.integers(targets))), strict=True):
                    column.append(value)
    count, many = len(nodes["nodes_modes"]), len(given["ids"])
    return {
        **{name: tuple(values) for name, values in nodes.items()},
        **{f"{votes}_{name}": tuple(values) for name, values in given.items()},
        "nodes_values": None,
        "nodes_hitrates": None,
        f"{votes}_weights": None,
        "nodes_values_as_tensor": numbers_from(rng, count, with_nan=True),
        f"{votes}_weights_as_tensor": numbers_from(rng, many, with_nan=rng.random() < 0.2),
        "nodes_hitrates_as_tensor": None,
    }


def arrays(rng, targets):
    """Attributes of TreeEnsemble: nodes lead to any that come later, so that several lead to one."""
    nodes, leaves = int(rng.integers(1, 40)), int(rng.integers(1, 20))
    sides = {}
    for side in ("true", "false"):
        to_leaf = (rng.random(nodes) < 0.4) | (np.arange(nodes) == nodes - 1)
        later = np.minimum(np.arange(nodes) + 1 + rng.integers(0, 4, nodes), nodes - 1)
        sides[f"nodes_{side}leafs"] = tuple(to_leaf.astype(int).tolist())
        sides[f"nodes_{side}nodeids"] = tuple(np.where(to_leaf, rng.integers(0, leaves, nodes), later).tolist())
    modes = rng.integers(0, len(MODES), nodes).astype(np.uint8)
    sets = [np.append(rng.choice(NUMBERS, rng.integers(0, 6)), np.nan) for _ in range((modes == 6).sum())]
    return {
        **sides,
        "nodes_featureids": tuple(rng.integers(0, FEATURES, nodes).tolist()),
        "nodes_modes": modes,
        "nodes_splits": numbers_from(rng, nodes, with_nan=True),
        "nodes_missing_value_tracks_true": tuple(rng.integers(0, 2, nodes).tolist()),
        "nodes_hitrates": None,
        "membership_values": np.concatenate(sets) if sets else None,
        "leaf_targetids": tuple(rng.integers(0, targets, leaves).tolist()),
        "leaf_weights": numbers_from(rng, leaves, with_nan=rng.random() < 0.2),
        "tree_roots": tuple(rng.integers(0, nodes, rng.integers(1, 20)).tolist()),
    }


def table(data, rng, dtypes):
    dtype = data.draw(st.sampled_from(dtypes))
    shape = (data.draw(st.sampled_from([0, 1, 3, 8, 13, 70])), FEATURES + data.draw(st.integers(0, 2)))
    values = numbers_from(rng, shape, with_nan=True)
    if np.issubdtype(dtype, np.integer):
        values = rng.integers(-3, 4, shape)
    with np.errstate(all="ignore"):
        x = guarded(values.astype(dtype))
    return x[0] if data.draw(st.booleans()) and len(x) == 1 else x


def compare(kernel, attributes, x, *, exact):
    """The compiled kernel gives what the readable one gives. Which of two zeros is the greater is nobody's business."""
    has_signs = attributes.get("aggregate_function", "SUM") in ("SUM", "AVERAGE", 0, 1)
    quick = replacement(kernel, [None], attributes)
    assert quick is not None
    with np.errstate(all="ignore"):
        results = [each(x, **attributes, allocate=np.empty) for each in (quick, kernel)]
    for got, wanted in zip(*(each if isinstance(each, tuple) else (each,) for each in results), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        if exact or got.dtype.kind != "f":
            np.testing.assert_array_equal(got, wanted)
            if got.dtype.kind == "f" and has_signs:
                np.testing.assert_array_equal(np.signbit(got) | np.isnan(got), np.signbit(wanted) | np.isnan(wanted))
        else:
            np.testing.assert_allclose(got, wanted, rtol=2e-7)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_regressors_are_the_readable_ones(threads, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    targets = data.draw(st.integers(1, 4))
    transform = data.draw(st.sampled_from(["NONE", "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]))
    attributes = {
        **lists(rng, "target", targets),
        "aggregate_function": data.draw(st.sampled_from(["SUM", "AVERAGE", "MIN", "MAX"])),
        "base_values": tuple(rng.normal(size=targets).tolist()) if data.draw(st.booleans()) else None,
        "base_values_as_tensor": None,
        "n_targets": targets,
        "post_transform": transform,
    }
    x = table(data, rng, [np.float32, np.float64, np.int32, np.int64])
    compare(tree_ensemble_regressor, attributes, x, exact=transform == "NONE")


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_classifiers_are_the_readable_ones(threads, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    classes, voted = data.draw(st.sampled_from([(1, 1), (2, 1), (2, 2), (4, 4)]))
    transform = data.draw(st.sampled_from(["NONE", "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]))
    labels = tuple(rng.integers(-9, 9, classes).tolist())
    is_named = data.draw(st.booleans())
    attributes = {
        **lists(rng, "class", voted),
        "base_values": None,
        "base_values_as_tensor": rng.normal(size=voted) if data.draw(st.booleans()) and voted in (1, classes) else None,
        "classlabels_int64s": None if is_named else labels,
        "classlabels_strings": tuple(map(str, labels)) if is_named else None,
        "post_transform": transform,
    }
    if not attributes["class_ids"] and attributes["base_values_as_tensor"] is not None and voted != classes:
        attributes["base_values_as_tensor"] = None  # without votes there is one for each class
    x = table(data, rng, [np.float32, np.float64, np.int32, np.int64])
    compare(tree_ensemble_classifier, attributes, x, exact=transform == "NONE")


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_tree_ensembles_are_the_readable_ones(threads, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    targets = data.draw(st.integers(1, 4))
    transform = data.draw(st.sampled_from([0, 0, 1, 2, 3]))
    attributes = {
        **arrays(rng, targets),
        "aggregate_function": data.draw(st.integers(0, 3)),
        "n_targets": targets,
        "post_transform": transform,
    }
    compare(tree_ensemble, attributes, table(data, rng, [np.float32, np.float64]), exact=transform == 0)


def stump(**changes):
    """One node and two leaves."""
    return {
        "aggregate_function": 1,
        "leaf_targetids": (0, 0),
        "leaf_weights": np.array([1.0, 2.0], np.float32),
        "membership_values": None,
        "n_targets": 1,
        "nodes_falseleafs": (1,),
        "nodes_falsenodeids": (0,),
        "nodes_featureids": (0,),
        "nodes_hitrates": None,
        "nodes_missing_value_tracks_true": None,
        "nodes_modes": np.array([0], np.uint8),
        "nodes_splits": np.array([0.5], np.float32),
        "nodes_trueleafs": (1,),
        "nodes_truenodeids": (1,),
        "post_transform": 0,
        "tree_roots": (0,),
        **changes,
    }


def test_large_tables_are_cut_into_blocks(threads, rng):
    attributes = {**arrays(rng, 3), "aggregate_function": 1, "n_targets": 3, "post_transform": 0}
    attributes["tree_roots"] *= 30
    compare(tree_ensemble, attributes, guarded(rng.normal(size=(1000, FEATURES)).astype(np.float32)), exact=True)
    many = stump(n_targets=20_000, leaf_targetids=(0, 19_999))
    compare(tree_ensemble, many, guarded(rng.normal(size=(9, 2)).astype(np.float32)), exact=True)


def test_what_is_wrong_is_left_to_the_readable_kernel(kernels):
    probit = list(POST_TRANSFORMS).index("PROBIT")
    for change in (
        {"n_targets": 0},
        {"n_targets": None},
        {"aggregate_function": 4},
        {"post_transform": -1},
        {"post_transform": probit},
        {"leaf_targetids": (0, 1)},
        {"nodes_featureids": (-1,)},
        {"nodes_trueleafs": (0,), "nodes_truenodeids": (0,)},
        {"tree_roots": (1,)},
        {"nodes_modes": np.array([6], np.uint8), "membership_values": np.arange(20_000.0)},
    ):
        assert replacement(tree_ensemble, [None], stump(**change)) is None
    quick = replacement(tree_ensemble, [None], stump(nodes_featureids=(2,)))
    with pytest.raises(ValueError, match="a node compares feature 2, the input has 2"):
        quick(np.zeros((1, 2), np.float32), **stump(nodes_featureids=(2,)), allocate=np.empty)
    half = quick(np.zeros((1, 3), np.float16), **stump(nodes_featureids=(2,)), allocate=np.empty)
    assert (half.dtype, half.tolist()) == (np.float16, [[2.0]])


def integers(*values):
    return np.array(values, np.int32)


def test_forests_hold_together(kernels):
    right = [np.zeros(3), integers(0, 0, 0), integers(1, 2, 1, 1, 2, 2), integers(0), integers(0, 0, 1, 2)]
    right += [integers(0, 1), np.ones(2)]
    forest = kernels.Forest(*right)
    wrong = [(0, np.zeros(2)), (0, np.zeros(3, np.float16)), (1, integers(0, 0, -1)), (1, integers(0))]
    wrong += [(2, integers(1, 2, 1, 1, 2, 3)), (2, integers(1)), (3, integers(3)), (3, integers(-1))]
    wrong += [(4, integers(0, 0, 2, 1)), (4, integers(0, 0, 1, 3)), (4, integers(1, 1, 1, 2)), (4, integers(0, 2))]
    wrong += [(5, integers(0, -1)), (5, integers(0)), (6, np.ones(3)), (6, np.ones(2, np.float32))]
    for place, value in wrong:
        arguments = right.copy()
        arguments[place] = value
        with pytest.raises((TypeError, ValueError)):
            kernels.Forest(*arguments)
    x, out, chosen = np.zeros((4, 1)), np.zeros((4, 2), np.float32), np.zeros(4, np.int64)
    given = [x, forest, 0, np.zeros(2), 0, 1, 0, np.zeros(2, np.int64), chosen, out]
    kernels.run_trees(*given)
    wrong = [(0, x[0]), (0, x[:3]), (0, x[:, :0]), (0, out.astype(np.float16)), (1, None), (2, 4), (2, -1), (3, x)]
    wrong += [(4, 1), (4, 3), (5, 2), (5, 3), (6, 5), (7, x), (8, None), (8, chosen[:3]), (9, out[:, :1]), (9, chosen)]
    for place, value in wrong:
        arguments = given.copy()
        arguments[place] = value
        with pytest.raises((TypeError, ValueError)):
            kernels.run_trees(*arguments)


def test_paths_without_an_end_end(kernels):
    none = integers(), np.ones(0)
    forest = kernels.Forest(np.zeros(1), integers(0), integers(0, 0), integers(0), integers(0, 0), *none)
    cycle = kernels.Forest(np.zeros(2), integers(0, 0), integers(1, 1, 0, 0), integers(0), integers(0, 0, 0), *none)
    for each in (forest, cycle):
        out = np.ones((9, 1))
        kernels.run_trees(np.zeros((9, 1)), each, 0, None, 0, 0, 0, None, None, out)
        assert not out.any()
