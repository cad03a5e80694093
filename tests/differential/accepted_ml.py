"""Accepted differences of ai.onnx.ml, and of control flow."""

from __future__ import annotations

import numpy as np
from differential.accepted import accept
from differential.accepted_elements import has_nan
from differential.cases import Node
from onnx import numpy_helper

_PREDICTORS = (
    "LinearRegressor",
    "LinearClassifier",
    "SVMClassifier",
    "TreeEnsemble",
    "TreeEnsembleClassifier",
    "TreeEnsembleRegressor",
)
_TREES = ("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor")


def transform_of(node: Node) -> str:
    """The name of the post transform, which TreeEnsemble gives by number."""
    value = node.attribute("post_transform")
    return str(value if isinstance(value, str) else ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[value])


def labels_of(node: Node) -> int:
    names = ("classlabels_strings", "classlabels_ints", "classlabels_int64s")
    return next((len(node.attributes[name]) for name in names if name in node.attributes), 0)


def outputs_of(node: Node) -> int:
    return labels_of(node) or node.attribute("n_targets") or node.attribute("targets") or 1


def given(node: Node, name: str) -> bool:
    """Whether the attribute or its form as a tensor is there."""
    return name in node.attributes or f"{name}_as_tensor" in node.attributes


@accept("post_transform PROBIT", *_PREDICTORS)
def approximates_probit(node: Node) -> bool:
    return transform_of(node) == "PROBIT"


@accept("post_transform of a single score", "LinearRegressor", "TreeEnsemble", "TreeEnsembleRegressor")
def transforms_one_score(node: Node) -> bool:
    return transform_of(node) != "NONE" and outputs_of(node) == 1


@accept("post_transform of two scores", "LinearClassifier", "SVMClassifier", "TreeEnsemble", "TreeEnsembleClassifier")
def transforms_two_scores(node: Node) -> bool:
    return transform_of(node) != "NONE" and outputs_of(node) == 2


@accept("LinearClassifier without intercepts", "LinearClassifier")
def has_no_intercepts(node: Node) -> bool:
    return "intercepts" not in node.attributes


@accept("Base values of trees", "TreeEnsembleRegressor")
def adds_to_targets_without_votes(node: Node) -> bool:
    return given(node, "base_values") and node.attribute("n_targets") > 1


@accept("Votes of trees for two classes", "TreeEnsembleClassifier")
def votes_for_two(node: Node) -> bool:
    return labels_of(node) == 2 and (given(node, "base_values") or 1 in node.attributes["class_ids"])


@accept("Classes of trees without votes", "TreeEnsembleClassifier")
def votes_against(node: Node) -> bool:
    weights = node.attributes.get("class_weights")
    if weights is None:
        weights = numpy_helper.to_array(node.attributes["class_weights_as_tensor"])
    return labels_of(node) > 2 and bool(np.min(weights) <= 0)


@accept("NaN in trees", *_TREES)
def branches_at_nan(node: Node) -> bool:
    modes = node.attributes["nodes_modes"]
    unequal = "BRANCH_NEQ" in modes if isinstance(modes, list) else 5 in numpy_helper.to_array(modes)
    return has_nan(node, 0) and unequal


@accept("Members of sets in trees", "TreeEnsemble")
def has_fractions_for_members(node: Node) -> bool:
    members = node.attributes.get("membership_values")
    return members is not None and bool(np.any(numpy_helper.to_array(members) % 1 > 0))


@accept("Maps become rows", "CastMap", "DictVectorizer")
def makes_a_row(node: Node) -> bool:
    return True


@accept("Binarizer of NaN", "Binarizer")
def binarizes_nan(node: Node) -> bool:
    return has_nan(node)


@accept("Loop without a condition", "Loop")
def counts_only(node: Node) -> bool:
    return node.input(1) is None
