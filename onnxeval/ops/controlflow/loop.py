"""Loop: a sub-graph, again and again, over values it carries.

All versions mean the same: 11 told the body's inputs from its outputs in the text, 13 let sequences be carried, not
scanned, and 16 optionals.
"""

from __future__ import annotations

import itertools

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._body import Body
from onnxeval.ops.controlflow._results import require_carried, row_types, stacked
from onnxeval.registry import op
from onnxeval.values import Value, describe


@op("Loop", versions=(1, 11, 13, 16, 19, 21, 23, 24, 25))
def loop(
    trip_count: Tensor | None, condition: Tensor | None, *carried: Value, body: Body, n_outputs: int
) -> tuple[Value, ...]:
    """The carried values after the last iteration, then each scan output: the rows of all iterations, stacked.

    ``body(iteration, condition, *carried)`` gives (condition, *carried, *rows). The loop ends after ``trip_count``
    iterations, and where the condition is false, before the first one too. With a trip count and no condition the
    body's condition is ignored; with neither it alone ends the loop. Carried values keep their type, not their
    shape. Raises ValueError where they do not, where rows differ, or where the numbers of values do not fit.
    Source: Loop-25.
    """
    n_rows = len(body.output_types) - 1 - len(carried)
    if body.n_inputs != 2 + len(carried) or n_rows < 0:
        raise ValueError(
            f"the body has {body.n_inputs} inputs and {len(body.output_types)} outputs, "
            f"{len(carried)} carried values need {2 + len(carried)} and at least {1 + len(carried)}"
        )
    if n_outputs > len(carried) + n_rows:
        raise ValueError(f"the node lists {n_outputs} outputs, its body gives {len(carried) + n_rows}")
    iterations = itertools.count() if trip_count is None else range(_single(trip_count, "the trip count"))
    heeded = condition is not None or trip_count is None
    going_on = np.array(True) if condition is None else condition
    rows: list[list[Value]] = [[] for _ in range(n_rows)]
    for iteration in iterations:
        if heeded and not _single(going_on, "the condition"):
            break
        going_on, *results = body(np.array(iteration, np.int64), going_on, *carried)
        if not isinstance(going_on, np.ndarray) or going_on.dtype != np.bool_:
            raise TypeError(f"the body's condition is {describe(going_on)}, expected a bool")
        for place, (before, after) in enumerate(zip(carried, results, strict=False)):
            require_carried(before, after, place)
        carried, latest = tuple(results[: len(carried)]), results[len(carried) :]
        for column, row in zip(rows, latest, strict=True):
            column.append(row)
    if not any(rows):
        first = (np.zeros((), np.int64), going_on, *carried)
        types = row_types(body, first, 1 + len(carried))
    else:
        types = body.output_types[1 + len(carried) :]
    scans = (stacked(column, rows_of, place) for place, (column, rows_of) in enumerate(zip(rows, types, strict=True)))
    return *carried, *scans


def _single(value: Tensor, name: str) -> int:
    if value.size != 1:
        raise ValueError(f"{name} has shape {list(value.shape)}, expected a single element")
    return int(value.item())
