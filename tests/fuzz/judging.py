"""What may come of a model and feeds, however broken: values of ONNX's types, or an error that tells something."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import onnxeval
from onnxeval.dtypes import ELEMENT_TYPES, STRING
from onnxeval.limits import Limits

#: Enough for every case of the corpus; what asks for more must be refused.
LIMITS = Limits(memory=2**28, steps=20_000, seconds=6)

#: What NumPy says well enough itself.
CLEAR = re.compile(r"operands could not be broadcast together with shapes|shape mismatch: objects cannot be broadcast")

_OWN = str(Path(onnxeval.__file__).parent)


def fault(model: Any, feeds: Mapping[str, Any]) -> str:
    """What is wrong with how a model is run and checked; "" where nothing is."""
    try:
        results = onnxeval.load(model).run(feeds, seed=0, limits=LIMITS)
    except onnxeval.NodeError as error:
        verdict = _of_cause(error)
    except onnxeval.ResourceLimitError as error:
        verdict = _of_memory(error)
    except onnxeval.OnnxEvalError as error:
        verdict = _of_text(error)
    except Exception as error:
        verdict = f"escapes: {_place(error)}"
    else:
        verdict = "; ".join(f"{name}: {wrong}" for name, value in results.items() if (wrong := odd(value)))
    if verdict:
        return verdict
    try:
        onnxeval.check(model)
    except Exception as error:
        return f"escapes from check: {_place(error)}"
    return ""


def odd(value: Any) -> str:
    """What makes this no ONNX value."""
    if value is None:
        return ""
    if isinstance(value, list):
        return next((wrong for item in value if (wrong := odd(item))), "")
    if isinstance(value, dict):
        return next((f"key {key!r}" for key in value if not isinstance(key, (str, int))), "")
    if type(value) is not np.ndarray:
        return f"{type(value).__name__} is no value"
    if value.dtype not in ELEMENT_TYPES:
        return f"an array of {value.dtype}"
    if value.dtype == STRING:
        return next((f"{type(item).__name__} among strings" for item in value.flat if type(item) is not str), "")
    return ""


def _of_cause(error: onnxeval.NodeError) -> str:
    cause = error.cause
    if type(cause) not in (ValueError, TypeError):
        return f"is not refused by the kernel: {_place(cause)}"
    if not _is_raised_by_us(cause.__traceback__) and not CLEAR.search(str(cause)):
        return f"is not refused by the kernel: {_place(cause)}"
    return _of_text(error)


def _of_memory(error: onnxeval.OnnxEvalError) -> str:
    """Refused by `allocate` is well; running out of memory is not."""
    cause = error.__cause__
    return f"allocates without asking: {_place(cause)}" if isinstance(cause, MemoryError) else ""


def _of_text(error: onnxeval.OnnxEvalError) -> str:
    text = str(error)
    return f"a message of nothing: {_place(error)}" if len(text) < 8 or len(text) > 20_000 else ""


def _is_raised_by_us(trace: TracebackType | None) -> bool:
    last = _frames(trace)[-1]
    file, line = last.tb_frame.f_code.co_filename, last.tb_lineno
    return file.startswith(_OWN) and linecache.getline(file, line).lstrip().startswith("raise")


def _place(error: BaseException) -> str:
    """The exception and the innermost line of ours that it passed."""
    ours = [t for t in _frames(error.__traceback__) if t.tb_frame.f_code.co_filename.startswith(_OWN)]
    where = f"{Path(ours[-1].tb_frame.f_code.co_filename).relative_to(_OWN)}:{ours[-1].tb_lineno}" if ours else "?"
    return f"{where}: {type(error).__name__}: {str(error)[:300]}"


def _frames(trace: TracebackType | None) -> list[TracebackType]:
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    return frames
