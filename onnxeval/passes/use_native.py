"""Steps run the compiled kernels where there are any for what they do, with their constant weights packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnxeval.dtypes import Tensor
from onnxeval.fast import replacement
from onnxeval.fast.engine import native
from onnxeval.passes._rewrite import Known
from onnxeval.passes.fuse_chains import Chain
from onnxeval.plan import NOTHING, Plan, Step


def use_native(plan: Plan, _: Known) -> Plan:
    """The plan with faster kernels; as it is where they are not built or turned off."""
    return plan if native() is None else _swapped(plan, NOTHING)


def _swapped(plan: Plan, around: Mapping[str, Tensor]) -> Plan:
    known = {**{name: around[name] for name in plan.captures if name in around}, **plan.constants}
    return replace(plan, steps=tuple([_with_bodies(_with_kernel(step, known), known) for step in plan.steps]))


def _with_kernel(step: Step, known: Mapping[str, Tensor]) -> Step:
    if step.subgraphs:
        return step
    if isinstance(step.kernel, Chain):
        return step.running(_with_quick_parts(step.kernel, [known.get(name) for name in step.inputs]))
    kernel = replacement(step.kernel, [known.get(name) for name in step.inputs], step.attributes)
    return step if kernel is None else replace(step, kernel=kernel)


def _with_quick_parts(chain: Chain, constants: Sequence[Tensor | None]) -> Chain:
    parts = []
    for part in chain.parts:
        known = [constants[source] if source >= 0 else None for source in part.sources]
        kernel = replacement(part.kernel, known, part.attributes)
        parts.append(part if kernel is None or part.quick is not part.kernel else replace(part, quick=kernel))
    return Chain(tuple(parts))


def _with_bodies(step: Step, known: Mapping[str, Tensor]) -> Step:
    """Sub-graphs too. A plan that is followed step by step stays as it is: what follows it knows readable kernels."""
    bodies = {
        name: _swapped(body, known) if isinstance(body, Plan) and name != "surroundings" else body
        for name, body in step.subgraphs.items()
    }
    return replace(step, subgraphs=bodies) if bodies else step
