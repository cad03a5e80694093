"""Plan -> Plan rewrites that keep every result: one a file, applied in the order of `PASSES`.

A pass may reorder nothing that a user can see: the plan's outputs keep their names, errors keep the labels of the
nodes they came from. All of them are off under ``Model.run(..., reference=True)``.
"""

from __future__ import annotations

from onnxeval.passes._rewrite import Evaluate, Pass
from onnxeval.passes.drop_identities import drop_identities
from onnxeval.passes.fold_batch_norm import fold_batch_norm
from onnxeval.passes.fold_constants import fold_constants
from onnxeval.passes.prepare import prepare
from onnxeval.passes.recognise import recognise
from onnxeval.passes.reuse_buffers import reuse_buffers
from onnxeval.plan import Plan

PASSES: tuple[Pass, ...] = (fold_constants, drop_identities, fold_batch_norm, recognise, reuse_buffers, prepare)


def optimise(plan: Plan, evaluate: Evaluate) -> Plan:
    """The plan after every pass. ``evaluate`` runs one step at compile time, None where it cannot."""
    for rewrite in PASSES:
        plan = rewrite(plan, evaluate)
    return plan
