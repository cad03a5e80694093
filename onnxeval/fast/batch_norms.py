"""BatchNormalization in inference, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32, known_float32
from onnxeval.fast.elementwise import ADD, MULTIPLY, SUBTRACT, Instruction, compiled
from onnxeval.fast.engine import native
from onnxeval.ops.nn.batch_norm import batch_normalization, batch_normalization_by_outputs
from onnxeval.registry import Kernel

#: Shapes of inputs that one step remembers how to normalise.
_MOST_PLANS = 64

_STEPS = (Instruction(SUBTRACT, 1), Instruction(MULTIPLY, 2), Instruction(ADD, 3))


def _binder(readable: Kernel) -> Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel | None]:
    def bind(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
        kernels = native()
        assert kernels is not None
        known = [each for each in constants[1:5] if each is not None and known_float32(each) and each.ndim == 1]
        if attributes.get("training_mode") or attributes.get("n_outputs", 1) != 1 or len(known) < 4:
            return None
        scale, shift, mean, variance = known
        if len({len(each) for each in known}) > 1:
            return None
        with np.errstate(all="ignore"):
            factor = scale / np.sqrt(variance + np.float32(attributes["epsilon"]))
        parameters = tuple(map(contiguous, (mean, factor, shift)))

        @lru_cache(_MOST_PLANS)
        def plan_for(shape: tuple[int, ...]) -> tuple[bytes, Tensor, int, int] | None:
            each = (1, len(mean), *(1,) * (len(shape) - 2))
            return compiled(shape, [shape, each, each, each], _STEPS)

        @replayable
        def normalised(x: Tensor, *rest: Tensor, **given: Any) -> Any:
            if not is_float32(x) or x.ndim < 2 or x.shape[1] != len(mean):
                return readable(x, *rest, **given)
            plan = plan_for(x.shape)
            if plan is None:
                return readable(x, *rest, **given)
            result = np.empty(x.shape, np.float32)
            kernels.run_chain(result, (contiguous(x), *parameters), *plan)
            return result

        return normalised

    return bind


for _kernel in (batch_normalization, batch_normalization_by_outputs):
    replaces(_kernel)(_binder(_kernel))
