"""TreeEnsembleClassifier and TreeEnsembleRegressor: trees as lists of tuples, whose leaves vote.

Version 3 brought the attributes that hold doubles. 5 deprecates both in favour of TreeEnsemble; they mean the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.traditionalml._lookup import ML, as_rows, numbers, only_one, positions
from onnxeval.ops.traditionalml._scores import transformed, with_complement
from onnxeval.ops.traditionalml._trees import (
    BRANCHES,
    Ensemble,
    Forest,
    Votes,
    aggregated,
    forest,
    same_length,
    votes_of,
)
from onnxeval.registry import op, prepared_by


def _read(
    votes: str,
    votes_ids: tuple[int, ...] | None,
    votes_nodeids: tuple[int, ...] | None,
    votes_treeids: tuple[int, ...] | None,
    votes_weights: tuple[float, ...] | None,
    nodes_falsenodeids: tuple[int, ...] | None,
    nodes_featureids: tuple[int, ...] | None,
    nodes_hitrates: tuple[float, ...] | None,
    nodes_missing_value_tracks_true: tuple[int, ...] | None,
    nodes_modes: tuple[str, ...] | None,
    nodes_nodeids: tuple[int, ...] | None,
    nodes_treeids: tuple[int, ...] | None,
    nodes_truenodeids: tuple[int, ...] | None,
    nodes_values: tuple[float, ...] | None,
    nodes_hitrates_as_tensor: Tensor | None = None,
    nodes_values_as_tensor: Tensor | None = None,
    votes_weights_as_tensor: Tensor | None = None,
) -> Ensemble:
    ids = NodeIds(nodes_treeids or (), nodes_nodeids or ())
    trees = ids.forest(
        nodes_featureids=nodes_featureids,
        nodes_modes=nodes_modes,
        nodes_values=doubles("nodes_values", nodes_values, nodes_values_as_tensor),
        nodes_truenodeids=nodes_truenodeids,
        nodes_falsenodeids=nodes_falsenodeids,
        nodes_missing_value_tracks_true=nodes_missing_value_tracks_true,
        nodes_hitrates=doubles("nodes_hitrates", nodes_hitrates, nodes_hitrates_as_tensor),
    )
    weights = doubles(f"{votes}_weights", votes_weights, votes_weights_as_tensor)
    return Ensemble(trees, ids.votes(votes_treeids, votes_nodeids, votes_ids, weights))


def _reader(votes: str) -> Callable[..., Ensemble]:
    """What reads the attributes of an ensemble, where those of its votes begin with ``votes``."""
    signature = inspect.signature(_read)
    _, *parameters = signature.parameters.values()
    inner = {each.name.replace("votes_", f"{votes}_"): each.name for each in parameters}

    def read(**attributes: Any) -> Ensemble:
        return _read(votes, **{inner[name]: value for name, value in attributes.items()})

    shown = [each.replace(name=name) for name, each in zip(inner, parameters, strict=True)]
    read.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]  # what inspect reads
    return read


_classifier, _regressor = _reader("class"), _reader("target")


@op("TreeEnsembleClassifier", domain=ML, versions=(1, 3, 5))
@prepared_by(_classifier)
def tree_ensemble_classifier(
    x: Tensor,
    *,
    base_values: tuple[float, ...] | None,
    class_ids: tuple[int, ...] | None,
    class_nodeids: tuple[int, ...] | None,
    class_treeids: tuple[int, ...] | None,
    class_weights: tuple[float, ...] | None,
    classlabels_int64s: tuple[int, ...] | None,
    classlabels_strings: tuple[str, ...] | None,
    nodes_falsenodeids: tuple[int, ...] | None,
    nodes_featureids: tuple[int, ...] | None,
    nodes_hitrates: tuple[float, ...] | None,
    nodes_missing_value_tracks_true: tuple[int, ...] | None,
    nodes_modes: tuple[str, ...] | None,
    nodes_nodeids: tuple[int, ...] | None,
    nodes_treeids: tuple[int, ...] | None,
    nodes_truenodeids: tuple[int, ...] | None,
    nodes_values: tuple[float, ...] | None,
    post_transform: str,
    base_values_as_tensor: Tensor | None = None,
    class_weights_as_tensor: Tensor | None = None,
    nodes_hitrates_as_tensor: Tensor | None = None,
    nodes_values_as_tensor: Tensor | None = None,
    allocate: Allocate,
    prepared: Ensemble | None = None,
) -> tuple[Tensor, Tensor]:
    """(N, F) -> the class of the greatest score (N), the first of several, and the float32 scores (N, E).

    Where there are two classes and all votes are for the first, they are taken as the second's, as converters mean
    them; the first then has what is missing to 1, or the negative if a weight is negative or LOGISTIC follows.
    ValueError where lengths differ, an id is unknown, or a path in a tree never ends. Source: TreeEnsembleClassifier-5.
    """
    labels = only_one(classlabels_int64s=classlabels_int64s, classlabels_strings=classlabels_strings)
    ensemble = prepared or _classifier(
        class_ids=class_ids,
        class_nodeids=class_nodeids,
        class_treeids=class_treeids,
        class_weights=class_weights,
        nodes_falsenodeids=nodes_falsenodeids,
        nodes_featureids=nodes_featureids,
        nodes_hitrates=nodes_hitrates,
        nodes_missing_value_tracks_true=nodes_missing_value_tracks_true,
        nodes_modes=nodes_modes,
        nodes_nodeids=nodes_nodeids,
        nodes_treeids=nodes_treeids,
        nodes_truenodeids=nodes_truenodeids,
        nodes_values=nodes_values,
        nodes_hitrates_as_tensor=nodes_hitrates_as_tensor,
        nodes_values_as_tensor=nodes_values_as_tensor,
        class_weights_as_tensor=class_weights_as_tensor,
    )
    votes = ensemble.votes
    base = doubles("base_values", base_values, base_values_as_tensor)
    scores = aggregated(ensemble, as_rows(x).astype(np.float64), labels.size, "SUM", allocate)
    alone = labels.size == 2 and votes.target.size > 0 and not votes.target.any() and base.size < 2
    if base.size not in (0, 1 if alone else labels.size):
        raise ValueError(f"{base.size} base values for {labels.size} classes")
    if alone:
        scores = with_complement(scores[:, :1] + base.sum(), post_transform, around_zero=bool((votes.weight < 0).any()))
    elif base.size:
        scores += base
    return labels[scores.argmax(1)], transformed(scores, post_transform).astype(np.float32)


@op("TreeEnsembleRegressor", domain=ML, versions=(1, 3, 5))
@prepared_by(_regressor)
def tree_ensemble_regressor(
    x: Tensor,
    *,
    aggregate_function: str,
    base_values: tuple[float, ...] | None,
    n_targets: int | None,
    nodes_falsenodeids: tuple[int, ...] | None,
    nodes_featureids: tuple[int, ...] | None,
    nodes_hitrates: tuple[float, ...] | None,
    nodes_missing_value_tracks_true: tuple[int, ...] | None,
    nodes_modes: tuple[str, ...] | None,
    nodes_nodeids: tuple[int, ...] | None,
    nodes_treeids: tuple[int, ...] | None,
    nodes_truenodeids: tuple[int, ...] | None,
    nodes_values: tuple[float, ...] | None,
    post_transform: str,
    target_ids: tuple[int, ...] | None,
    target_nodeids: tuple[int, ...] | None,
    target_treeids: tuple[int, ...] | None,
    target_weights: tuple[float, ...] | None,
    base_values_as_tensor: Tensor | None = None,
    nodes_hitrates_as_tensor: Tensor | None = None,
    nodes_values_as_tensor: Tensor | None = None,
    target_weights_as_tensor: Tensor | None = None,
    allocate: Allocate,
    prepared: Ensemble | None = None,
) -> Tensor:
    """(N, F) -> float32 (N, n_targets): the votes aggregated, plus the base values, transformed.

    ValueError where lengths differ, an id is unknown, or a path in a tree never ends. Source: TreeEnsembleRegressor-5.
    """
    ensemble = prepared or _regressor(
        target_ids=target_ids,
        target_nodeids=target_nodeids,
        target_treeids=target_treeids,
        target_weights=target_weights,
        nodes_falsenodeids=nodes_falsenodeids,
        nodes_featureids=nodes_featureids,
        nodes_hitrates=nodes_hitrates,
        nodes_missing_value_tracks_true=nodes_missing_value_tracks_true,
        nodes_modes=nodes_modes,
        nodes_nodeids=nodes_nodeids,
        nodes_treeids=nodes_treeids,
        nodes_truenodeids=nodes_truenodeids,
        nodes_values=nodes_values,
        nodes_hitrates_as_tensor=nodes_hitrates_as_tensor,
        nodes_values_as_tensor=nodes_values_as_tensor,
        target_weights_as_tensor=target_weights_as_tensor,
    )
    if n_targets is None or n_targets < 1:
        raise ValueError(f"n_targets is {'absent' if n_targets is None else n_targets}, expected 1 at least")
    scores = aggregated(ensemble, as_rows(x).astype(np.float64), n_targets, aggregate_function, allocate)
    base = doubles("base_values", base_values, base_values_as_tensor)
    if base.size not in (0, n_targets):
        raise ValueError(f"{base.size} base values for {n_targets} targets")
    if base.size:
        scores += base
    return transformed(scores, post_transform).astype(np.float32)


class NodeIds:
    """Nodes by their (tree id, node id). ValueError where two have the same."""

    def __init__(self, treeids: tuple[int, ...], nodeids: tuple[int, ...]) -> None:
        self.count = same_length(nodes_treeids=treeids, nodes_nodeids=nodeids)
        self.trees, self.tree_of = np.unique(np.array(treeids, np.int64), return_inverse=True)
        self.names, name_of = np.unique(np.array(nodeids, np.int64), return_inverse=True)
        self.keys = self.tree_of * self.names.size + name_of
        keys, times = np.unique(self.keys, return_counts=True)
        if (twice := keys[times > 1]).size:
            tree, name = divmod(int(twice[0]), self.names.size)
            raise ValueError(f"tree {self.trees[tree]} has two nodes {self.names[name]}")

    def find(self, what: str, treeids: Tensor, nodeids: Tensor) -> Tensor:
        """Where these nodes are. ValueError where there is none."""
        tree, name = positions(treeids, self.trees), positions(nodeids, self.names)
        at = np.where((tree < 0) | (name < 0), -1, positions(tree * self.names.size + name, self.keys))
        if (at < 0).any():
            lost = int(np.argmax(at < 0))
            raise ValueError(f"{what} names node {nodeids[lost]} of tree {treeids[lost]}, which is not there")
        return at

    def forest(
        self,
        *,
        nodes_featureids: tuple[int, ...] | None,
        nodes_modes: tuple[str, ...] | None,
        nodes_values: Tensor,
        nodes_truenodeids: tuple[int, ...] | None,
        nodes_falsenodeids: tuple[int, ...] | None,
        nodes_missing_value_tracks_true: tuple[int, ...] | None,
        nodes_hitrates: Tensor,
    ) -> Forest:
        """The trees of these nodes, each from the one node that is no other's child."""
        same_length(
            nodes_nodeids=np.arange(self.count),
            nodes_featureids=nodes_featureids or (),
            nodes_modes=nodes_modes or (),
            nodes_values=nodes_values,
            nodes_truenodeids=nodes_truenodeids or (),
            nodes_falsenodeids=nodes_falsenodeids or (),
            nodes_missing_value_tracks_true=nodes_missing_value_tracks_true or None,
            nodes_hitrates=nodes_hitrates if nodes_hitrates.size else None,
        )
        kinds = {**BRANCHES, "LEAF": (False, False, False)}
        del kinds["BRANCH_MEMBER"]  # it came with TreeEnsemble
        modes = nodes_modes or ()
        if strangers := set(modes) - set(kinds):
            raise ValueError(f"nodes_modes holds {min(strangers)!r}, expected one of {', '.join(map(repr, kinds))}")
        is_leaf = np.array([mode == "LEAF" for mode in modes], np.bool_)
        treeids = self.trees[self.tree_of][~is_leaf]
        false, true = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        false[~is_leaf] = self.find(
            "nodes_falsenodeids", treeids, np.array(nodes_falsenodeids or (), np.int64)[~is_leaf]
        )
        true[~is_leaf] = self.find("nodes_truenodeids", treeids, np.array(nodes_truenodeids or (), np.int64)[~is_leaf])
        return forest(
            roots=self._roots(np.concatenate([false[~is_leaf], true[~is_leaf]])),
            is_leaf=is_leaf,
            feature=np.array(nodes_featureids or (), np.int64),
            threshold=nodes_values,
            branch=np.array([kinds[mode] for mode in modes], np.bool_).reshape(-1, 3),
            missing=np.array(nodes_missing_value_tracks_true or (0,) * self.count, np.bool_),
            false=false,
            true=true,
        )

    def _roots(self, children: Tensor) -> Tensor:
        is_child = np.zeros(self.count, np.bool_)
        is_child[children] = True
        roots = np.flatnonzero(~is_child)
        in_tree = np.bincount(self.tree_of[roots], minlength=self.trees.size)
        if (in_tree != 1).any():
            tree = int(np.argmax(in_tree != 1))
            raise ValueError(f"tree {self.trees[tree]} has {in_tree[tree]} nodes that are no other's child, expected 1")
        return roots

    def votes(
        self,
        treeids: tuple[int, ...] | None,
        nodeids: tuple[int, ...] | None,
        targets: tuple[int, ...] | None,
        weights: Tensor,
    ) -> Votes:
        """The votes of these nodes; those of nodes that are no leaves never count."""
        same_length(treeids=treeids or (), nodeids=nodeids or (), ids=targets or (), weights=weights)
        trees, names, ids = (np.array(given or (), np.int64) for given in (treeids, nodeids, targets))
        return votes_of(self.find("a vote", trees, names), ids, weights, self.count)


def doubles(name: str, floats: tuple[float, ...] | None, tensor: Tensor | None) -> Tensor:
    """An attribute that is given as floats or as a tensor. ValueError where it is both."""
    if floats and tensor is not None:
        raise ValueError(f"{name} and {name}_as_tensor given, expected one")
    if tensor is None:
        return np.array(floats or (), np.float64)
    return numbers(tensor, name=f"{name}_as_tensor").astype(np.float64)
