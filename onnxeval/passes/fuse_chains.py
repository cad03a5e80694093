"""Element-wise steps that follow each other, or a product, run as one step: bias, residual and activation.

A chain is what a kernel that does all of it in one pass over the memory replaces. Without one its parts run one after
the other, each into the memory of the one before where that is nobody else's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast.parts import ABSENT, SO_FAR, normalises_channels
from onnxeval.fitting import check_types, type_key
from onnxeval.passes._rewrite import Known, count_readers, op_type, rebuilt
from onnxeval.passes.reuse_buffers import FRESH, in_place
from onnxeval.plan import PartFailed, Plan, Step
from onnxeval.registry import Kernel
from onnxeval.schema import Schema
from onnxeval.values import describe

#: Operators that a chain begins with, beside the element-wise ones.
PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})

#: Operators whose every element depends on one element of each input.
ELEMENTWISE = frozenset(
    {
        "Abs",
        "Add",
        "Ceil",
        "Celu",
        "Clip",
        "Div",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Log",
        "Max",
        "Min",
        "Mish",
        "Mul",
        "Neg",
        "PRelu",
        "Pow",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Sigmoid",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Sub",
        "Sum",
        "Swish",
        "Tanh",
        "ThresholdedRelu",
    }
)

#: Steps in a chain: its label names them all.
_LONGEST = 24


class Part(NamedTuple):
    """One operator of a chain, and where each of its inputs comes from."""

    label: str
    kernel: Kernel
    names: tuple[str, ...]  # of the inputs, for errors
    sources: tuple[int, ...]
    attributes: Mapping[str, Any]
    schema: Schema
    quick: Kernel  # the kernel, or one that writes into the result so far


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A kernel: its parts one after the other, on the chain's inputs and the result so far."""

    parts: tuple[Part, ...]

    def __call__(self, *inputs: Tensor | None, **supplied: Any) -> Any:
        """The last part's result. ``supplied`` is what the executor supplies to the first part."""
        return self.go_on(0, None, inputs, supplied)

    def go_on(
        self,
        start: int,
        result: Any,
        inputs: Sequence[Tensor | None],
        supplied: Mapping[str, Any],
        stop: int | None = None,
    ) -> Any:
        """The result of the last part before ``stop``, from that of the parts before ``start``."""
        for part in self.parts[start:stop]:
            values = [inputs[s] if s >= 0 else result if s == SO_FAR else None for s in part.sources]
            try:
                key = tuple([type_key(value) for value in values])
                if key not in part.schema.accepted:
                    check_types(part.schema, key)
                results = part.quick(*values, **part.attributes, **supplied)
                result = np.asarray(results[0] if type(results) is tuple else results)  # scalars have other rules
                supplied = {}
            except Exception as error:
                described = [f"{n} {describe(v)}" for n, v in zip(part.names, values, strict=True) if n]
                raise PartFailed(part.label, described, error) from error
        return result


def fuse_chains(plan: Plan, _: Known) -> Plan:
    """The plan whose chains are one step each, where nothing else reads what they make between."""
    readers = count_readers(plan)
    ends: dict[str, list[Step]] = {}  # the chain that makes a value, the value made last at the end
    for step in plan.steps:
        operator = op_type(step)
        is_elementwise = operator in ELEMENTWISE or (
            operator == "BatchNormalization" and _is_fixed(step, plan.constants)
        )
        if not (is_elementwise or operator in PRODUCTS) or step.subgraphs or len(step.outputs) != 1:
            continue
        chain = _chain_before(step, ends, readers) if is_elementwise else None
        if chain is not None:
            del ends[chain[-1].outputs[0]]
            chain.append(step)
        ends[step.outputs[0]] = chain or [step]
    chains = {id(chain[-1]): chain for chain in ends.values() if len(chain) > 1}
    if not chains:
        return plan
    inside = {id(step) for chain in chains.values() for step in chain[:-1]}
    steps = [
        _as_step(chains[id(step)]) if id(step) in chains else step for step in plan.steps if id(step) not in inside
    ]
    return rebuilt(plan, steps, plan.constants)


def _is_fixed(step: Step, constants: Mapping[str, Tensor]) -> bool:
    """Whether a normalisation does to each element of a channel what constants say."""
    return normalises_channels(step.attributes) and all(name in constants for name in step.inputs[1:5])


def _chain_before(step: Step, ends: Mapping[str, list[Step]], readers: Mapping[str, int]) -> list[Step] | None:
    """The chain that a step goes on: one that begins with a product if there is a choice."""
    if step.injected:  # only the first part is supplied
        return None
    chains = [
        ends[name]
        for name in step.inputs
        if name in ends and readers[name] == step.inputs.count(name) and len(ends[name]) < _LONGEST
    ]
    return next((chain for chain in chains if op_type(chain[0]) in PRODUCTS), chains[0]) if chains else None


def _as_step(chain: Sequence[Step]) -> Step:
    names: dict[str, int] = {}
    parts: list[Part] = []
    fresh = False  # whether the result so far is memory of the chain's own
    before = None
    for step in chain:
        assert step.schema is not None
        sources = tuple(
            [SO_FAR if n == before else names.setdefault(n, len(names)) if n else ABSENT for n in step.inputs]
        )
        quick = in_place(step, sources.index(SO_FAR)) if fresh and SO_FAR in sources else step.kernel
        parts.append(Part(step.label, step.kernel, step.inputs, sources, step.attributes, step.schema, quick))
        fresh = step.schema.operator in FRESH or (fresh and quick is not step.kernel)
        before = step.outputs[0]
    return Step(
        label=" + ".join(step.label for step in chain),
        kernel=Chain(tuple(parts)),
        inputs=tuple(names),
        outputs=chain[-1].outputs,
        attributes={},
        subgraphs={},
        injected=chain[0].injected,
        schema=None,
        fused=tuple(op_type(step) for step in chain),
    )
