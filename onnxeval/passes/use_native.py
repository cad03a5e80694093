"""Steps run the compiled kernels where there are any for what they do, with their constant weights packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import is_replayable, replacement
from onnxeval.fast.engine import native
from onnxeval.fast.halves import or_else
from onnxeval.passes._kernels import OverLastAxis
from onnxeval.passes._rewrite import Known, once, with_bodies
from onnxeval.passes.fuse_chains import Chain
from onnxeval.plan import NOTHING, Plan, Step
from onnxeval.registry import Kernel

if TYPE_CHECKING:
    from onnxeval.fast.chains import FusedHead
    from onnxeval.fast.elementwise import ElementChain
    from onnxeval.fast.half_chains import HalfChain


def use_native(plan: Plan, known: Known) -> Plan:
    """The plan with faster kernels; as it is where they are not built or turned off."""
    if native() is None:
        return plan
    fast_math = known.fast_math

    def swapped(plan: Plan, around: Mapping[str, Tensor]) -> Plan:
        known = {**{name: around[name] for name in plan.captures if name in around}, **plan.constants}

        def inside(body: Plan) -> Plan:
            return swapped(body, known) if body.captures else in_function(body)

        steps = [with_bodies(_with_kernel(step, known, fast_math), inside) for step in plan.steps]
        return plan._replace(steps=tuple(steps))

    in_function = once(lambda body: swapped(body, NOTHING))
    return swapped(plan, NOTHING)


def _with_kernel(step: Step, known: Mapping[str, Tensor], fast_math: bool) -> Step:
    if step.subgraphs:
        return step
    constants = [known.get(name) for name in step.inputs]
    if isinstance(step.kernel, Chain):
        return step.running(_with_quick_parts(step.kernel, constants, fast_math))
    guarded = step.kernel if isinstance(step.kernel, OverLastAxis) else None
    readable = step.kernel if guarded is None else guarded.kernel
    kernel = replacement(readable, constants, step.attributes, fast_math=fast_math)
    if kernel is None:
        return step
    return step.running(kernel if guarded is None else replace(guarded, kernel=kernel))


@dataclass(frozen=True, slots=True, eq=False)
class QuickChain:
    """A chain whose parts run at once as far as they can: a product with what follows it, then what is element-wise.

    Its parts that are not replayable interrupt what is recorded.
    """

    chain: Chain
    head: FusedHead | None
    tail: ElementChain | None
    halves: HalfChain | None
    is_replayable: ClassVar[bool] = True

    def __call__(self, *inputs: Tensor | None, **supplied: Any) -> Any:
        if self.halves is not None and (found := self.halves(inputs, supplied)) is not None:
            return self.chain.go_on(*found, inputs, NOTHING)
        done, result = 0, None
        if self.head is not None:
            with suppress(Exception):  # the parts say which of them fails, and of what
                result = self.head(*inputs, **supplied)
            done = self.head.length
            if result is None:
                result = self.chain.go_on(0, None, inputs, supplied, done)
        if self.tail is not None:
            further = self.tail(inputs, result)
            if further is not None:
                done, result = self.tail.stop, further
        return self.chain.go_on(done, result, inputs, NOTHING if done else supplied)


def _with_quick_parts(chain: Chain, constants: Sequence[Tensor | None], fast_math: bool) -> Kernel:
    # imported here, as they import kernels that most models do without
    from onnxeval.fast.chains import fused_head
    from onnxeval.fast.elementwise import element_chain
    from onnxeval.fast.half_chains import half_chain

    head = fused_head(chain.parts, constants, fast_math=fast_math)
    done = 0 if head is None else head.length
    tail = element_chain(chain.parts, constants, done)
    halves = half_chain(chain.parts, constants, fast_math=fast_math)
    parts = list(chain.parts)
    for place, part in enumerate(parts):
        known = [constants[source] if source >= 0 else None for source in part.sources]
        plain = head.alone if head is not None and place == 0 else part.quick
        usual = _interrupting(plain) if plain is part.quick else plain
        is_own = plain is part.kernel and (tail is None or not done <= place < tail.stop)
        if is_own or not any(x is not None and x.dtype == np.float32 for x in known):
            kernel = halves.first() if halves is not None and place == 0 else None
            kernel = kernel or replacement(part.kernel, known, part.attributes, fast_math=fast_math)
            if kernel is not None:
                quick = kernel if is_replayable(kernel) else _interrupting(kernel)
                usual = quick if is_own else or_else(quick, usual)
        parts[place] = part._replace(quick=usual)
    return QuickChain(Chain(tuple(parts)), head, tail, halves)


def _interrupting(kernel: Kernel) -> Kernel:
    """The kernel, which does more with the numbers of its inputs than hand their memory to compiled kernels."""
    kernels = native()
    assert kernels is not None
    interrupt = kernels.interrupt

    def interrupting(*inputs: Any, **given: Any) -> Any:
        interrupt()
        return kernel(*inputs, **given)

    return interrupting
