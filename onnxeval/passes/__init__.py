"""Plan -> Plan rewrites that keep every result: one a file, applied in the order of `PASSES`.

A pass may reorder nothing that a user can see: the plan's outputs keep their names, errors keep the labels of the
nodes they came from. All of them are off under ``Model.run(..., reference=True)``.
"""

from __future__ import annotations

from dataclasses import replace

from onnxeval.passes._rewrite import Known, Pass
from onnxeval.passes.drop_identities import drop_identities
from onnxeval.passes.fold_affine import fold_affine
from onnxeval.passes.fold_constants import fold_constants
from onnxeval.passes.inline_branches import inline_branches
from onnxeval.passes.merge_movements import merge_movements
from onnxeval.passes.prepare import prepare
from onnxeval.passes.recognise import recognise
from onnxeval.passes.reuse_buffers import reuse_buffers
from onnxeval.passes.share_results import share_results
from onnxeval.passes.use_native import use_native
from onnxeval.plan import Plan, Step

__all__ = ["PASSES", "Known", "optimise"]

#: What makes other steps of steps, sub-graph by sub-graph.
PASSES: tuple[Pass, ...] = (
    fold_constants,
    inline_branches,
    drop_identities,
    share_results,
    merge_movements,
    fold_affine,
    recognise,
    reuse_buffers,
)


def optimise(plan: Plan, known: Known) -> Plan:
    """The plan after every pass, with the sub-graphs and functions in it."""
    return use_native(prepare(_rewritten(plan, known), known), known)


def _rewritten(plan: Plan, known: Known) -> Plan:
    for rewrite in PASSES:
        plan = rewrite(plan, known)
    if not any(step.subgraphs for step in plan.steps):
        return plan
    inner = Known(known.evaluate)  # names mean something else inside
    return replace(plan, steps=tuple([_with_rewritten_bodies(step, inner) for step in plan.steps]))


def _with_rewritten_bodies(step: Step, known: Known) -> Step:
    """A plan that is followed step by step stays as it is, and one that is built at run time."""
    bodies = {
        name: _rewritten(body, known) if isinstance(body, Plan) and name != "surroundings" else body
        for name, body in step.subgraphs.items()
    }
    return replace(step, subgraphs=bodies) if bodies else step
