"""Strategies of ai.onnx.ml: linear models, support vector machines and trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, strategy
from differential.of_text import packed

ML = "ai.onnx.ml"
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def numbers(d: Drawing, count: int, least: int = -8, greatest: int = 8) -> list[float]:
    return [d.integer(least, greatest) / 4 for _ in range(count)]


def labels(d: Drawing, count: int, integers: str) -> dict[str, Any]:
    if d.flag():
        return {"classlabels_strings": ["no", "yes", "maybe", "é"][:count]}
    return {integers: [3, 1, 7, 2][:count]}


@strategy("LinearRegressor", ulps=64, scaled=True, absolute=16, palettes=("plain",), domain=ML)
def linear_regressor(d: Drawing) -> Node:
    features, targets = d.integer(1, 3), d.integer(1, 3)
    options = d.some(intercepts=numbers(d, targets))
    if d.integer(0, 3) == 0:
        options["post_transform"] = d.one_of(*_TRANSFORMS)
    x = d.tensor(0, (d.size(1), features))
    return d.node(x, coefficients=numbers(d, targets * features), targets=targets, **options)


@strategy("LinearClassifier", ulps=64, scaled=True, absolute=16, palettes=("plain",), domain=ML)
def linear_classifier(d: Drawing) -> Node:
    features, classes = d.integer(1, 3), d.integer(2, 4)
    rows = d.one_of(1, 2) if classes == 2 else classes
    options = d.some(intercepts=numbers(d, rows), post_transform=d.one_of(*_TRANSFORMS), multi_class=d.integer(0, 1))
    x = d.tensor(0, (d.size(1), features))
    named = labels(d, classes, "classlabels_ints")
    return d.node(x, coefficients=numbers(d, rows * features), wanted=(True, True), **named, **options)


def kernel(d: Drawing) -> dict[str, Any]:
    return {"kernel_type": d.one_of(*_KERNELS), "kernel_params": [0.25, 0.5, float(d.integer(1, 3))]}


@strategy("SVMRegressor", ulps=256, scaled=True, absolute=64, palettes=("plain",), domain=ML)
def svm_regressor(d: Drawing) -> Node:
    features, vectors = d.integer(1, 3), d.integer(1, 4)
    return d.node(
        d.tensor(0, (d.size(1), features)),
        coefficients=numbers(d, vectors),
        support_vectors=numbers(d, vectors * features),
        n_supports=vectors,
        rho=numbers(d, 1),
        **kernel(d),
        **d.some(one_class=d.integer(0, 1)),
    )


@strategy("SVMClassifier", ulps=256, scaled=True, absolute=64, palettes=("plain",), domain=ML)
def svm_classifier(d: Drawing) -> Node:
    features, classes = d.integer(1, 3), d.integer(2, 3)
    counts = [d.integer(1, 2) for _ in range(classes)]
    vectors, pairs = sum(counts), classes * (classes - 1) // 2
    options: dict[str, Any] = {}
    if d.flag():
        options |= {"prob_a": numbers(d, pairs, -8, -1), "prob_b": numbers(d, pairs, -2, 2)}
    return d.node(
        d.tensor(0, (d.size(1), features)),
        coefficients=numbers(d, vectors * (classes - 1)),
        support_vectors=numbers(d, vectors * features),
        vectors_per_class=counts,
        rho=numbers(d, pairs),
        wanted=(True, True),
        **labels(d, classes, "classlabels_ints"),
        **kernel(d),
        **options,
        **d.some(post_transform=d.one_of(*_TRANSFORMS)),
    )


_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def trees(d: Drawing, features: int, outputs: int) -> tuple[dict[str, list[Any]], list[tuple[int, int, int, float]]]:
    """Nodes of a few small trees, and their votes: tree, node, output, weight."""
    nodes: dict[str, list[Any]] = {
        f"nodes_{name}": []
        for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    }
    nodes["nodes_missing_value_tracks_true"] = []
    votes = []
    for tree in range(d.integer(1, 3)):
        inner = d.integer(1, 3)
        for node in range(2 * inner + 1):
            # node i branches to 2i + 1 and 2i + 2, as in a heap that is filled from the left
            branches = node < inner
            row = (
                *(tree, node, d.integer(0, features - 1)),
                d.one_of(*_MODES) if branches else "LEAF",
                d.integer(-6, 6) / 4,
                *((2 * node + 1, 2 * node + 2) if branches else (0, 0)),
                d.integer(0, 1),
            )
            for name, value in zip(nodes, row, strict=True):
                nodes[name].append(value)
            if not branches:
                votes.append((tree, node, d.integer(0, outputs - 1), d.integer(-8, 8) / 4))
    return nodes, votes


@strategy("TreeEnsembleRegressor", ulps=16, scaled=True, absolute=16, palettes=("plain", "special"), domain=ML)
def tree_regressor(d: Drawing) -> Node:
    features, targets = d.integer(1, 3), d.integer(1, 2)
    nodes, votes = trees(d, features, targets)
    ids = {f"target_{name}": [v[i] for v in votes] for i, name in enumerate(("treeids", "nodeids", "ids", "weights"))}
    x = d.tensor(0, (d.size(1), features))
    options = d.some(base_values=numbers(d, targets), aggregate_function=d.one_of("SUM", "AVERAGE", "MIN", "MAX"))
    return d.node(x, n_targets=targets, **doubled(d, x, nodes), **doubled(d, x, ids), **doubled(d, x, options))


@strategy("TreeEnsembleClassifier", ulps=64, scaled=True, absolute=64, palettes=("plain", "special"), domain=ML)
def tree_classifier(d: Drawing) -> Node:
    features, classes = d.integer(1, 3), d.integer(2, 4)
    nodes, votes = trees(d, features, classes)
    ids = {f"class_{name}": [v[i] for v in votes] for i, name in enumerate(("treeids", "nodeids", "ids", "weights"))}
    x = d.tensor(0, (d.size(1), features))
    options = d.some(base_values=numbers(d, classes), post_transform=d.one_of(*_TRANSFORMS))
    named = labels(d, classes, "classlabels_int64s")
    wanted = (True, True)
    return d.node(x, wanted=wanted, **named, **doubled(d, x, nodes), **doubled(d, x, ids), **doubled(d, x, options))


def doubled(d: Drawing, x: np.ndarray, attributes: dict[str, Any]) -> dict[str, Any]:
    """For a double input the numbers stand in tensors, where this version has such attributes."""
    if x.dtype != np.float64 or not d.has("nodes_values_as_tensor"):
        return attributes
    return {
        f"{name}_as_tensor" if d.has(f"{name}_as_tensor") else name: (
            packed(name, np.array(value, np.float64)) if d.has(f"{name}_as_tensor") else value
        )
        for name, value in attributes.items()
    }


@strategy("TreeEnsemble", ulps=64, scaled=True, absolute=64, palettes=("plain", "special"), domain=ML)
def tree_ensemble(d: Drawing) -> Node:
    dtype = d.dtype(0)
    features, targets = d.integer(1, 3), d.integer(1, 2)
    columns: dict[str, list[int]] = {
        name: [] for name in ("featureids", "modes", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    }
    splits: list[float] = []
    roots, weights, owners, members = [], [], [], list[float]()
    for _ in range(d.integer(1, 3)):
        roots.append(len(splits))
        inner = d.integer(1, 3)
        for node in range(inner):
            mode = d.integer(0, 6)
            if mode == 6:
                members += [*numbers(d, d.integer(1, 2), -6, 6), float("nan")]
            columns["featureids"].append(d.integer(0, features - 1))
            columns["modes"].append(mode)
            splits.append(d.integer(-6, 6) / 4)
            for side, child in (("true", 2 * node + 1), ("false", 2 * node + 2)):
                leaf = child >= inner
                columns[f"{side}leafs"].append(int(leaf))
                columns[f"{side}nodeids"].append(len(weights) if leaf else roots[-1] + child)
                if leaf:
                    weights.append(d.integer(-8, 8) / 4)
                    owners.append(d.integer(0, targets - 1))
    modes = packed("m", np.array(columns.pop("modes"), np.uint8))
    options: dict[str, Any] = {f"nodes_{name}": values for name, values in columns.items()}
    if members:
        options["membership_values"] = packed("v", np.array(members, dtype))
    options |= d.some(aggregate_function=d.integer(0, 3), post_transform=d.integer(0, 4))
    if d.flag():
        options["nodes_missing_value_tracks_true"] = [d.integer(0, 1) for _ in splits]
    return d.node(
        d.tensor(0, (d.size(1), features)),
        nodes_modes=modes,
        nodes_splits=packed("s", np.array(splits, dtype)),
        leaf_weights=packed("w", np.array(weights, dtype)),
        leaf_targetids=owners,
        n_targets=targets,
        tree_roots=roots,
        **options,
    )
