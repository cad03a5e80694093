"""TreeEnsemble: regression by trees whose nodes and leaves are numbered apart."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor, is_integer, name_of
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.traditionalml._lookup import ML, as_rows, numbers
from onnxeval.ops.traditionalml._scores import TRANSFORMS, transformed
from onnxeval.ops.traditionalml._trees import BRANCHES, Ensemble, Members, aggregated, forest, same_length, votes_of
from onnxeval.registry import op, prepared_by

AGGREGATE_FUNCTIONS = ("AVERAGE", "SUM", "MIN", "MAX")
POST_TRANSFORMS = tuple(TRANSFORMS)
MEMBER = list(BRANCHES).index("BRANCH_MEMBER")


def _ensemble(
    leaf_targetids: tuple[int, ...],
    leaf_weights: Tensor,
    membership_values: Tensor | None,
    nodes_falseleafs: tuple[int, ...],
    nodes_falsenodeids: tuple[int, ...],
    nodes_featureids: tuple[int, ...],
    nodes_hitrates: Tensor | None,
    nodes_missing_value_tracks_true: tuple[int, ...] | None,
    nodes_modes: Tensor,
    nodes_splits: Tensor,
    nodes_trueleafs: tuple[int, ...],
    nodes_truenodeids: tuple[int, ...],
    tree_roots: tuple[int, ...],
) -> Ensemble:
    tensors = {"nodes_modes": nodes_modes, "nodes_splits": nodes_splits, "leaf_weights": leaf_weights}
    for name, tensor in {**tensors, "nodes_hitrates": nodes_hitrates, "membership_values": membership_values}.items():
        if tensor is not None:
            numbers(tensor, name=name)
    nodes = same_length(
        nodes_featureids=nodes_featureids,
        nodes_modes=nodes_modes,
        nodes_splits=nodes_splits,
        nodes_truenodeids=nodes_truenodeids,
        nodes_trueleafs=nodes_trueleafs,
        nodes_falsenodeids=nodes_falsenodeids,
        nodes_falseleafs=nodes_falseleafs,
        nodes_missing_value_tracks_true=nodes_missing_value_tracks_true,
        nodes_hitrates=nodes_hitrates,
    )
    leaves = same_length(leaf_targetids=leaf_targetids, leaf_weights=leaf_weights)
    if not is_integer(nodes_modes.dtype):
        raise TypeError(f"nodes_modes are {name_of(nodes_modes.dtype)}, expected integers")
    roots, modes = np.array(tree_roots, np.int64), nodes_modes.astype(np.int64)
    _within("tree_roots", roots, nodes)
    _within("nodes_modes", modes, len(BRANCHES))
    trees = forest(
        roots=roots,
        is_leaf=np.arange(nodes + leaves) >= nodes,
        feature=_padded(nodes_featureids, leaves, np.int64),
        threshold=_padded(nodes_splits, leaves, np.float64),
        branch=np.concatenate([np.array(list(BRANCHES.values()))[modes], np.zeros((leaves, 3), np.bool_)]),
        missing=_padded(nodes_missing_value_tracks_true or (0,) * nodes, leaves, np.bool_),
        false=_padded(_branch("false", nodes_falsenodeids, nodes_falseleafs, nodes, leaves), leaves, np.int64),
        true=_padded(_branch("true", nodes_truenodeids, nodes_trueleafs, nodes, leaves), leaves, np.int64),
        members=_members(modes == MEMBER, membership_values, leaves),
    )
    targets, weights = np.array(leaf_targetids, np.int64), leaf_weights.astype(np.float64)
    return Ensemble(trees, votes_of(nodes + np.arange(leaves), targets, weights, nodes + leaves))


@op("TreeEnsemble", domain=ML, versions=(5,))
@prepared_by(_ensemble)
def tree_ensemble(
    x: Tensor,
    *,
    aggregate_function: int,
    leaf_targetids: tuple[int, ...],
    leaf_weights: Tensor,
    membership_values: Tensor | None,
    n_targets: int | None,
    nodes_falseleafs: tuple[int, ...],
    nodes_falsenodeids: tuple[int, ...],
    nodes_featureids: tuple[int, ...],
    nodes_hitrates: Tensor | None,
    nodes_missing_value_tracks_true: tuple[int, ...] | None,
    nodes_modes: Tensor,
    nodes_splits: Tensor,
    nodes_trueleafs: tuple[int, ...],
    nodes_truenodeids: tuple[int, ...],
    post_transform: int,
    tree_roots: tuple[int, ...],
    allocate: Allocate,
    prepared: Ensemble | None = None,
) -> Tensor:
    """(N, F) -> (N, n_targets) of the same type. Features and thresholds are compared exactly.

    A NaN goes the way that ``nodes_missing_value_tracks_true`` tells, whatever the comparison. ValueError where
    lengths differ, an index or an enumeration is outside, or a path in a tree never ends. Source: TreeEnsemble-5.
    """
    ensemble = prepared or _ensemble(
        leaf_targetids,
        leaf_weights,
        membership_values,
        nodes_falseleafs,
        nodes_falsenodeids,
        nodes_featureids,
        nodes_hitrates,
        nodes_missing_value_tracks_true,
        nodes_modes,
        nodes_splits,
        nodes_trueleafs,
        nodes_truenodeids,
        tree_roots,
    )
    if n_targets is None or n_targets < 1:
        raise ValueError(f"n_targets is {'absent' if n_targets is None else n_targets}, expected 1 at least")
    aggregate = _chosen("aggregate_function", aggregate_function, AGGREGATE_FUNCTIONS)
    transform = _chosen("post_transform", post_transform, POST_TRANSFORMS)
    scores = aggregated(ensemble, as_rows(x).astype(np.float64), n_targets, aggregate, allocate)
    return transformed(scores, transform).astype(x.dtype)


def _chosen(name: str, number: int, names: tuple[str, ...]) -> str:
    if not 0 <= number < len(names):
        raise ValueError(f"{name} {number} is outside [0, {len(names) - 1}]")
    return names[number]


def _within(name: str, numbers: Tensor, count: int) -> None:
    if (outside := numbers[(numbers < 0) | (numbers >= count)]).size:
        raise ValueError(f"{name} holds {outside[0]}, outside [0, {count - 1}]")


def _branch(which: str, ids: tuple[int, ...], to_leaf: tuple[int, ...], nodes: int, leaves: int) -> Tensor:
    """The children on one side; leaves are numbered after the nodes."""
    children, leaf = np.array(ids, np.int64), np.array(to_leaf, np.bool_)
    _within(f"nodes_{which}nodeids (of nodes)", children[~leaf], nodes)
    _within(f"nodes_{which}nodeids (of leaves)", children[leaf], leaves)
    return children + leaf * nodes


def _padded(values: tuple[int, ...] | Tensor, leaves: int, dtype: type) -> Tensor:
    return np.concatenate([np.asarray(values, dtype), np.zeros(leaves, dtype)])


def _members(is_member: Tensor, membership_values: Tensor | None, leaves: int) -> Members | None:
    """Each BRANCH_MEMBER node's set; a NaN ends a set, but for the last it may be absent."""
    values = np.zeros(0) if membership_values is None else membership_values.astype(np.float64)
    ends = np.isnan(values)
    sets = int(ends.sum()) + bool(values.size and not ends[-1])
    if sets != is_member.sum():
        raise ValueError(f"membership_values holds {sets} sets for {is_member.sum()} nodes of mode BRANCH_MEMBER")
    if ends.all():
        return None
    set_of = np.concatenate([np.where(is_member, np.cumsum(is_member) - 1, -1), np.full(leaves, -1)])
    distinct, place = np.unique(values[~ends], return_inverse=True)
    owner = (np.cumsum(ends) - ends)[~ends]
    return Members(set_of, distinct, np.unique(owner * distinct.size + place))
