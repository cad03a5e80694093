"""Plan -> Plan rewrites that keep every result: one a file, applied in the order of `PASSES`.

A pass may reorder nothing that a user can see: the plan's outputs keep their names, errors keep the labels of the
nodes they came from. All of them are off under ``Model.run(..., reference=True)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnxeval.passes._rewrite import Known, Pass, once, with_bodies
from onnxeval.passes._shapes import decided_by_shapes, decided_by_types
from onnxeval.passes.bind_movements import bound_movement, is_movement
from onnxeval.passes.drop_identities import drop_identities
from onnxeval.passes.fold_affine import fold_affine
from onnxeval.passes.fold_constants import fold_constants
from onnxeval.passes.fold_shapes import fold_shapes
from onnxeval.passes.fuse_chains import fuse_chains
from onnxeval.passes.inline_branches import inline_branches
from onnxeval.passes.lift_invariants import lift_invariants
from onnxeval.passes.merge_movements import merge_movements
from onnxeval.passes.prepare import prepare
from onnxeval.passes.recognise import recognise
from onnxeval.passes.recognise_quantized import recognise_quantized
from onnxeval.passes.reuse_buffers import reuse_buffers
from onnxeval.passes.share_results import share_results
from onnxeval.passes.specialise import specialise
from onnxeval.passes.use_native import use_native
from onnxeval.plan import Plan

__all__ = [
    "PASSES",
    "Known",
    "bound_movement",
    "decided_by_shapes",
    "decided_by_types",
    "is_movement",
    "optimise",
    "specialise",
]

#: What makes other steps of steps, in a plan; after those that look inside sub-graphs themselves.
REWRITES: tuple[Pass, ...] = (
    inline_branches,
    drop_identities,
    share_results,
    merge_movements,
    fold_affine,
    recognise,
)

#: All of them, in order. The later ones decide how steps run.
PASSES: tuple[Pass, ...] = (
    recognise_quantized,
    lift_invariants,
    fold_constants,
    fold_shapes,
    *REWRITES,
    fuse_chains,
    use_native,
    prepare,
    reuse_buffers,
)


def optimise(plan: Plan, known: Known) -> Plan:
    """The plan after every pass, with the sub-graphs and functions in it."""
    plan = lift_invariants(_throughout(plan, known, (recognise_quantized,)), known)
    plan = fold_shapes(fold_constants(plan, known), known)
    plan = _throughout(plan, known, REWRITES)
    plan = use_native(_throughout(plan, known, (fuse_chains,)), known)
    plan = prepare(plan, known)
    return _throughout(plan, known, (reuse_buffers,))


def _throughout(plan: Plan, known: Known, passes: Sequence[Pass]) -> Plan:
    """The plan after these passes, the plans inside it too."""
    inner = Known(known.evaluate, fast_math=known.fast_math)  # names mean something else inside

    def rewritten(plan: Plan, known: Known) -> Plan:
        for rewrite in passes:
            plan = rewrite(plan, known)
        if not any(step.subgraphs for step in plan.steps):
            return plan
        return plan._replace(steps=tuple([with_bodies(step, inside) for step in plan.steps]))

    inside = once(lambda body: rewritten(body, inner))
    return rewritten(plan, known)
