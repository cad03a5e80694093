"""SequenceMap: a sub-graph for each element of a sequence."""

from __future__ import annotations

from onnxeval.dtypes import Tensor
from onnxeval.ops._body import Body
from onnxeval.registry import op
from onnxeval.values import Sequence, TensorType, Value


@op("SequenceMap", versions=(17,))
def sequence_map(
    input_sequence: Sequence, *additional_inputs: Tensor | Sequence, body: Body, n_outputs: int
) -> tuple[Sequence, ...]:
    """A sequence for each output of ``body``, which gets the i-th elements of the sequences, and the tensors whole.

    Raises ValueError where the sequences differ in length or the numbers of inputs and outputs do not fit the body.
    Source: SequenceMap-17.
    """
    inputs = (input_sequence, *additional_inputs)
    if body.n_inputs != len(inputs) or n_outputs > len(body.output_types):
        raise ValueError(
            f"the body has {body.n_inputs} inputs and {len(body.output_types)} outputs, "
            f"the node {len(inputs)} and {n_outputs}"
        )
    lengths = [len(value) for value in inputs if isinstance(value, list)]
    if len(set(lengths)) > 1:
        raise ValueError(f"the sequences have lengths {lengths}")
    columns: list[list[Value]] = [[] for _ in body.output_types]
    for i in range(len(input_sequence)):
        sample = (value[i] if isinstance(value, list) else value for value in inputs)
        for column, result in zip(columns, body(*sample), strict=True):
            column.append(result)
    return tuple(
        Sequence(column, TensorType(declared.dtype) if isinstance(declared, TensorType) and declared.dtype else None)
        for column, declared in zip(columns, body.output_types, strict=True)
    )
