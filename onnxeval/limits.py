"""What one run may take, and what it draws random numbers from."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import DType, Tensor, name_of
from onnxeval.errors import ResourceLimitError
from onnxeval.observe import Observer, unobserved
from onnxeval.values import check_countable, shape_text

if TYPE_CHECKING:
    from onnxeval.plan import Plan


@cache
def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return 2**34


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a run: ``memory`` in bytes for one tensor whose size the data decides, ``steps`` nodes, ``seconds``.

    None is no bound. The defaults stop what no machine could finish: more than the physical memory, and loops
    of more than twenty million nodes.
    """

    memory: int | None = None
    steps: int | None = 20_000_000
    seconds: float | None = None


class Run:
    """The state that one run shares with all its sub-plans; ``observe`` wraps what runs their steps."""

    def __init__(self, limits: Limits | None = None, seed: int | None = None, observer: Observer = unobserved) -> None:
        self.limits = limits if limits is not None else Limits()
        self.observe = observer
        self._memory = self.limits.memory if self.limits.memory is not None else _physical_memory()
        self._seed = seed
        self._steps = 0
        self._deadline = None if self.limits.seconds is None else monotonic() + self.limits.seconds

    @cached_property
    def rng(self) -> np.random.Generator:
        """The generator of this run: the same seed gives the same numbers."""
        return np.random.default_rng(self._seed)

    def allocate(self, shape: Iterable[int], dtype: DType) -> Tensor:
        """An uninitialised array, refused with ResourceLimitError before memory is taken."""
        sizes = tuple(int(size) for size in shape)
        if any(size < 0 for size in sizes):
            raise ValueError(f"a tensor of shape {shape_text(sizes)} cannot be: a size is negative")
        dtype = np.dtype(dtype)
        needed = math.prod(sizes) * dtype.itemsize
        if needed > self._memory:
            raise ResourceLimitError(
                f"a tensor {name_of(dtype)}{shape_text(sizes)} takes {needed:,} bytes, allowed are {self._memory:,}"
            )
        check_countable(sizes, dtype)
        return empty(sizes, dtype)

    def count(self, plan: Plan) -> None:
        """Account for one pass over a plan. Raises ResourceLimitError where a bound is passed."""
        self._steps += len(plan.steps) or 1
        if self.limits.steps is not None and self._steps > self.limits.steps:
            raise ResourceLimitError(
                f"the model runs more than {self.limits.steps:,} nodes: does a loop never end?",
                hint="a time bounds it instead: --timeout S in the shell, Limits(steps=None, seconds=S) in Python",
            )
        if self._deadline is not None and monotonic() > self._deadline:
            raise ResourceLimitError(f"the run takes more than {self.limits.seconds} seconds")
