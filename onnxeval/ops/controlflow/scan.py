"""Scan: a sub-graph over the elements of tensors along an axis, with a state it carries.

Version 8 has a batch axis and lengths, which later versions dropped; the text allows negative axes since 11.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._body import Body
from onnxeval.ops.controlflow._results import row_types, stacked
from onnxeval.registry import op
from onnxeval.values import describe


@op("Scan", versions=(9, 11, 16, 19, 21, 23, 24, 25))
def scan(
    *states_and_inputs: Tensor,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None,
    scan_input_directions: Sequence[int] | None,
    scan_output_axes: Sequence[int] | None,
    scan_output_directions: Sequence[int] | None,
) -> tuple[Tensor, ...]:
    """The states after the last element, then each scan output: what all iterations gave, stacked along its axis.

    ``body(*states, *elements)`` gives (*states, *outputs). The last ``num_scan_inputs`` inputs are scanned along their
    axes (0), backwards where their direction is 1; outputs are prepended where theirs is 1. Dtypes and shapes stay the
    same in each iteration. Raises ValueError where they do not, or where lengths, axes or counts do not fit.
    Source: Scan-25.
    """
    states, inputs = _split(states_and_inputs, num_scan_inputs, body)
    n_outputs = len(body.output_types) - len(states)
    input_axes = _for_each(scan_input_axes, len(inputs), "scan_input_axes")
    backwards = _flags(scan_input_directions, len(inputs), "scan_input_directions")
    output_axes = _for_each(scan_output_axes, n_outputs, "scan_output_axes")
    prepended = _flags(scan_output_directions, n_outputs, "scan_output_directions")
    elements = [
        np.moveaxis(x, normalise_axis(axis, x.ndim, name="scan_input_axes"), 0)
        for x, axis in zip(inputs, input_axes, strict=True)
    ]
    elements = [x[::-1] if backward else x for x, backward in zip(elements, backwards, strict=True)]
    lengths = {len(x) for x in elements}
    if len(lengths) > 1:
        raise ValueError(f"the scan inputs have lengths {[len(x) for x in elements]} along their axes")

    rows: list[list[Tensor]] = [[] for _ in range(n_outputs)]
    length = lengths.pop()
    for t in range(length):
        results = body(*states, *(x[t, ...] for x in elements))
        for place, (before, after) in enumerate(zip(states, results, strict=False)):
            _require_unchanged(before, after, place)
        states, latest = results[: len(states)], results[len(states) :]
        for column, row in zip(rows, latest, strict=True):
            column.append(row)
    if length:
        types = body.output_types[len(states) :]
    else:
        types = row_types(body, (*states, *(np.zeros(x.shape[1:], x.dtype) for x in elements)), len(states))
    outputs = (
        stacked(column[::-1] if reverse else column, row_type, place, axis)
        for place, (column, reverse, axis, row_type) in enumerate(zip(rows, prepended, output_axes, types, strict=True))
    )
    return *states, *outputs


@op("Scan", versions=(8,))
def scan_batched(
    sequence_lens: Tensor | None,
    *states_and_inputs: Tensor,
    body: Body,
    num_scan_inputs: int,
    directions: Sequence[int] | None,
) -> tuple[Tensor, ...]:
    """Scan each item of a batch (axis 0) along axis 1, up to its own length.

    Outputs are padded with zeros to the common length, empty strings where they are strings; a direction of 1 starts at
    the item's own end. Source: Scan-8.
    """
    states, inputs = _split(states_and_inputs, num_scan_inputs, body)
    if any(x.ndim < 2 for x in inputs):
        raise ValueError(f"scan inputs {[describe(x) for x in inputs]} need a batch and a sequence axis")
    batch, longest = inputs[0].shape[:2]
    for x in inputs:
        if x.shape[:2] != (batch, longest):
            raise ValueError(f"scan inputs start with {[list(x.shape[:2]) for x in inputs]}, expected them equal")
    for state in states:
        if state.shape[:1] != (batch,):
            raise ValueError(f"state {describe(state)} has no batch axis of {batch} items")
    lengths = _lengths(sequence_lens, batch, longest)
    items = [
        scan(
            *(state[item, ...] for state in states),
            *(x[item, :length] for x in inputs),
            body=body,
            num_scan_inputs=num_scan_inputs,
            scan_input_axes=None,
            scan_input_directions=directions,
            scan_output_axes=None,
            scan_output_directions=None,
        )
        for item, length in enumerate(lengths)
    ]
    if not items:
        empty = (stacked([], row_type, place) for place, row_type in enumerate(body.output_types[len(states) :]))
        return *states, *(np.empty((0, longest, *rows.shape[1:]), rows.dtype) for rows in empty)
    columns = list(zip(*items, strict=True))
    finals = (np.stack(column) for column in columns[: len(states)])
    return *finals, *(_padded(column, longest) for column in columns[len(states) :])


def _split(
    states_and_inputs: tuple[Tensor, ...], num_scan_inputs: int, body: Body
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    n_states = len(states_and_inputs) - num_scan_inputs
    if num_scan_inputs < 1 or n_states < 0:
        raise ValueError(f"num_scan_inputs is {num_scan_inputs}, {len(states_and_inputs)} inputs are given")
    if body.n_inputs != len(states_and_inputs) or len(body.output_types) < n_states:
        raise ValueError(
            f"the body has {body.n_inputs} inputs and {len(body.output_types)} outputs, "
            f"{n_states} states and {num_scan_inputs} scan inputs are given"
        )
    return states_and_inputs[:n_states], states_and_inputs[n_states:]


def _for_each(values: Sequence[int] | None, count: int, name: str) -> Sequence[int]:
    if values is None:
        return (0,) * count
    if len(values) != count:
        raise ValueError(f"{name} {list(values)} has {len(values)} elements, expected {count}")
    return values


def _flags(values: Sequence[int] | None, count: int, name: str) -> Sequence[int]:
    flags = _for_each(values, count, name)
    if not set(flags) <= {0, 1}:
        raise ValueError(f"{name} {list(flags)} has elements other than 0 and 1")
    return flags


def _require_unchanged(before: Tensor, after: Tensor, place: int) -> None:
    if not isinstance(after, np.ndarray) or before.dtype != after.dtype or before.shape != after.shape:
        raise ValueError(f"state {place} changes from {describe(before)} to {describe(after)}")


def _lengths(sequence_lens: Tensor | None, batch: int, longest: int) -> list[int]:
    if sequence_lens is None:
        return [longest] * batch
    if sequence_lens.shape != (batch,):
        raise ValueError(f"sequence_lens has shape {list(sequence_lens.shape)}, expected [{batch}]")
    lengths: list[int] = sequence_lens.tolist()
    if any(not 0 <= length <= longest for length in lengths):
        raise ValueError(f"sequence_lens {lengths} leave [0, {longest}]")
    return lengths


def _padded(items: Sequence[Tensor], length: int) -> Tensor:
    """The rows of each item, [items, length, ...]; what an item lacks is zero."""
    longest = max(items, key=len)
    result = np.full((len(items), length, *longest.shape[1:]), "" if longest.dtype == object else 0, longest.dtype)
    for place, rows in zip(result, items, strict=True):
        if len(rows):
            place[: len(rows)] = rows
    return result
