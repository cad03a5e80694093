"""GroupQueryAttention over plain caches of float32, in one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast._checks import contiguous, is_float32, is_plain
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)

#: Of what makes results from the inputs.
Cached: TypeAlias = Callable[..., "tuple[Tensor, Tensor, Tensor] | None"]


def cached(attributes: Mapping[str, Any]) -> Cached | None:
    """What runs such an attention; None where no inputs are for the compiled kernel.

    It takes the inputs and what allocates, and gives None where these are for others. Raises IndexError where lengths
    or positions are outside.
    """
    kernels = native()
    assert kernels is not None
    heads, groups = attributes["num_heads"], attributes["kv_num_heads"]
    window, causal = attributes.get("local_window_size", -1), bool(attributes.get("causal", 1))
    is_plain_cache = all(attributes.get(f"{name}_quant_type", "NONE") == "NONE" for name in "kv")
    if not is_plain_cache or attributes.get("sliding_window_cache", 0) or groups < 1 or heads < 1 or heads % groups:
        return None
    if window != -1 and (window < 1 or not causal):
        return None
    turns, interleaved = bool(attributes.get("do_rotary", 0)), bool(attributes.get("rotary_interleaved", 0))
    factor, softcap = attributes.get("scale", 0.0), max(attributes.get("softcap", 0.0), 0.0)

    def run(
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        past_key: Tensor | None,
        past_value: Tensor | None,
        last: Tensor,
        total: Tensor,
        cosines: Tensor | None,
        sines: Tensor | None,
        positions: Tensor | None,
        bias: Tensor | None,
        *others: Tensor | None,
        allocate: Allocate,
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        floats = [query, *(x for x in (key, value, past_key, past_value, bias) if x is not None)]
        angles: tuple[Tensor | None, ...] = (cosines, sines) if turns else ()
        if any(x is not None for x in others) or not all(map(is_float32, (*floats, *angles))) or query.ndim != 3:
            return None
        batch, time, hidden = query.shape
        count = heads + 2 * groups if key is None else heads
        size = hidden // count
        fits = query.size and hidden == count * size and (key is None) == (value is None)
        if key is not None and value is not None:
            fits = fits and key.shape == value.shape == (batch, time, groups * size)
        rows = 0
        if past_key is not None and past_value is not None:
            rows = past_key.shape[2] if past_key.ndim == 4 else -1
            fits = fits and past_key.shape == past_value.shape == (batch, groups, rows, size)
        elif past_key is not past_value:
            return None
        fits = fits and is_plain(last, _INT32) and last.size == batch and is_plain(total, _INT32) and total.size == 1
        if not fits or (positions is not None and not _is_positions(positions, batch, time)):
            return None
        tokens = int(total.item())
        if not (tokens == rows + time or time <= tokens <= rows):
            return None
        if past_key is not None and tokens != time > 1 and batch > 1:
            return None
        if turns:
            assert cosines is not None
            assert sines is not None
            if cosines.ndim != 2 or cosines.shape != sines.shape or 2 * cosines.shape[1] > size:
                return None
            angles = contiguous(cosines), contiguous(sines)
        else:
            angles, positions = (None, None), None
        if bias is not None and not _broadcasts(bias, (batch, heads, time, tokens)):
            return None
        result = empty((batch, time, heads * size), np.float32)
        present = [allocate((batch, groups, max(tokens, rows), size), result.dtype) for _ in range(2)]
        kernels.attend_cached(
            *[None if x is None else contiguous(x) for x in (query, key, value, past_key, past_value)],
            contiguous(last).reshape(-1),
            *angles,
            None if positions is None else contiguous(positions),
            bias,
            result,
            *present,
            factor or 1 / math.sqrt(size),
            softcap,
            tokens,
            window,
            causal,
            interleaved,
        )
        return result, present[0], present[1]

    return run


def _is_positions(x: Tensor, batch: int, time: int) -> bool:
    return is_plain(x, _INT64) and x.shape == (batch, time)


def _broadcasts(bias: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether the bias is one for all of the batch or each, for all heads or each."""
    is_whole = bias.ndim == 4 and bias.shape[2:] == shape[2:]
    return is_whole and all(size in (1, wanted) for size, wanted in zip(bias.shape, shape, strict=True))
