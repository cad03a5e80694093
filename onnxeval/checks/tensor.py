"""Rules on the tensors a model holds: their types, dims, data fields and external files.

Nothing is decoded or allocated: what a tensor says of itself is held against what is there.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from onnx import TensorProto

from onnxeval.checks.held import Tensor
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.dtypes import BY_ELEMENT_TYPE, SUB_BYTE_BITS, name_of
from onnxeval.external import is_inside

_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
#: The field for the elements of each type, where it is not int32_data.
_FIELD_OF: dict[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.COMPLEX64: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.COMPLEX128: "double_data",
    TensorProto.INT64: "int64_data",
    TensorProto.UINT32: "uint64_data",
    TensorProto.UINT64: "uint64_data",
    TensorProto.STRING: "string_data",
}
_MOST_ELEMENTS = 2**63 - 1
#: The size of an element in raw data. Strings never stand there.
_BITS = {n: SUB_BYTE_BITS.get(d, 8 * d.itemsize) for n, d in BY_ELEMENT_TYPE.items() if n != TensorProto.STRING}


def _count(tensor: TensorProto) -> int | None:
    """How many elements the dims make; None where they make no sense."""
    dims = tensor.dims[:]
    count = math.prod(dims)
    return count if min(dims, default=0) >= 0 and count <= _MOST_ELEMENTS else None


def _filled(tensor: TensorProto) -> list[str]:
    """The fields that hold data; a raw_data that is there and empty counts where no other field does."""
    filled = [field for field in _FIELDS if getattr(tensor, field)]
    return [*filled, "raw_data"] if tensor.HasField("raw_data") and (not filled or tensor.raw_data) else filled


def _is_external(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


def _bytes_needed(tensor: TensorProto, count: int) -> int:
    bits = _BITS.get(tensor.data_type, 8 * BY_ELEMENT_TYPE[tensor.data_type].itemsize)
    return (count * bits + 7) // 8


def _entries_needed(tensor: TensorProto, count: int) -> int:
    """How many entries of the typed field the elements take: complex ones two, narrow integers share one."""
    bits = SUB_BYTE_BITS.get(BY_ELEMENT_TYPE[tensor.data_type])
    if bits in (2, 4):
        return (count * bits + 7) // 8
    return count * (2 if tensor.data_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128) else 1)


def plain_data(tensor: TensorProto) -> tuple[bool, bytes | None]:
    """Whether one field alone holds as much as dims and type ask for, and the data if that is raw_data.

    No rule on tensors finds anything then. Strings and external data are never plain.
    """
    if tensor.data_location or tensor.HasField("segment") or tensor.data_type not in _BITS:
        return False, None
    sizes = tensor.dims[:]
    if min(sizes, default=0) < 0:
        return False, None
    count, raw, own = math.prod(sizes), None, _FIELD_OF.get(tensor.data_type, "int32_data")
    if tensor.HasField("raw_data"):
        raw, own = tensor.raw_data, ""
        fits = len(raw) == (count * _BITS[tensor.data_type] + 7) // 8
    else:
        fits = len(getattr(tensor, own)) == _entries_needed(tensor, count)
    if fits:
        for field in _FIELDS:
            if field != own and getattr(tensor, field):
                return False, None
    return fits, raw


@rule("tensor/element-type", "error", Tensor)
def element_type(tensor: Tensor) -> Faults:
    """A tensor's element type is undefined, or none that the standard knows.

    Why: its data cannot be read.

    Mend: set `data_type` to one of the numbers of `TensorProto.DataType`. A number above those known may come from
    a newer onnx.

    Example:
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }
        >>> model.graph.initializer[0].data_type = 99
    """
    number = tensor.proto.data_type
    if number not in BY_ELEMENT_TYPE:
        yield Fault(tensor.where, f"element type {number} is {'unknown' if number else 'undefined'}")


@rule("tensor/dims", "error", Tensor)
def dims(tensor: Tensor) -> Faults:
    """A tensor's dims are negative, or make more elements than can be counted.

    Why: there is no such tensor.

    Mend: write the sizes that the data has; a tensor's dims are never open.

    Example:
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }
        >>> model.graph.initializer[0].dims[0] = -1
    """
    if _count(tensor.proto) is None:
        shape = list(tensor.proto.dims)
        what = "hold a negative size" if min(shape) < 0 else f"make more than {_MOST_ELEMENTS} elements"
        yield Fault(tensor.where, f"dims {shape} {what}")


@rule("tensor/data-field", "error", Tensor)
def data_field(tensor: Tensor) -> Faults:
    """A tensor's data stands in a field that is not for its type, in several, or both in the file and outside it.

    Why: which of the data counts is open, and most readers look into one field only and find nothing.

    Mend: write the data again; `onnx.numpy_helper.from_array` chooses the field.

    Example:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> model.graph.initializer.add(name="w", data_type=1, dims=[2], int64_data=[1, 2])

    Instead:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> model.graph.initializer.add(name="w", data_type=1, dims=[2], float_data=[1, 2])
    """
    proto = tensor.proto
    if (dtype := BY_ELEMENT_TYPE.get(proto.data_type)) is None:
        return
    filled = _filled(proto)
    own = _FIELD_OF.get(proto.data_type, "int32_data")
    if proto.HasField("segment"):
        yield Fault(tensor.where, "its data is said to be a segment, which the standard does not use")
    if _is_external(proto):
        if filled:
            yield Fault(tensor.where, f"its data is said to be external, but {', '.join(filled)} holds some")
        elif proto.data_type == TensorProto.STRING:
            yield Fault(tensor.where, "strings cannot be external data")
    elif len(filled) > 1:
        yield Fault(tensor.where, f"its data stands in several fields: {', '.join(filled)}")
    elif filled == ["raw_data"] and proto.data_type == TensorProto.STRING:
        yield Fault(tensor.where, "strings cannot stand in raw_data", f"they belong in {own}")
    elif filled and filled[0] not in (own, "raw_data"):
        yield Fault(tensor.where, f"its data stands in {filled[0]}, {name_of(dtype)} belongs in {own} or raw_data")


@rule("tensor/data-length", "error", Tensor)
def data_length(tensor: Tensor) -> Faults:
    """A tensor's data is longer or shorter than its dims and type say.

    Why: the file was cut, or dims or type were changed without the data.

    Mend: write the tensor again, or the dims that the data has. A file without its weights keeps them elsewhere, as
    external data or in the program that wrote it.

    Example:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> model.graph.initializer.add(name="w", data_type=1, dims=[2], float_data=[1])

    Instead:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> model.graph.initializer.add(name="w", data_type=1, dims=[2], float_data=[1, 2])
    """
    proto = tensor.proto
    count = _count(proto)
    if proto.data_type not in BY_ELEMENT_TYPE or count is None:
        return
    what = f"{count} elements of {name_of(BY_ELEMENT_TYPE[proto.data_type])}"
    own = _FIELD_OF.get(proto.data_type, "int32_data")
    filled = _filled(proto)
    if _is_external(proto):
        length = _external_entries(proto).get("length", "")
        if length.isdecimal() and int(length) != (needed := _bytes_needed(proto, count)):
            yield Fault(tensor.where, f"{what} take {needed} bytes, its external data has the length {length}")
    elif filled == ["raw_data"] and proto.data_type != TensorProto.STRING:
        if (size := len(proto.raw_data)) != (needed := _bytes_needed(proto, count)):
            yield Fault(tensor.where, f"{what} take {needed} bytes, raw_data has {size}")
    elif filled in ([own], []) and (size := len(getattr(proto, own))) != (needed := _entries_needed(proto, count)):
        where = f"{own} has {size}" if filled else "there is no data"
        yield Fault(tensor.where, f"{what} take {needed} entries, {where}")


@rule("tensor/text", "error", Tensor)
def text(tensor: Tensor) -> Faults:
    r"""A string of a tensor is not UTF-8.

    Why: strings are UTF-8 by the standard; no reader can show or compare this one.

    Mend: encode the text as UTF-8. Bytes that are no text belong into a tensor of uint8.

    Example:
        g () => (string[1] y) { y = Identity(w) }
        >>> model.graph.initializer.add(name="w", data_type=8, dims=[1], string_data=[b"\xff"])

    Instead:
        g () => (string[1] y) { y = Identity(w) }
        >>> model.graph.initializer.add(name="w", data_type=8, dims=[1], string_data=["é".encode()])
    """
    if tensor.proto.data_type == TensorProto.STRING:
        for place, data in enumerate(tensor.proto.string_data):
            try:
                data.decode()
            except UnicodeDecodeError as error:
                yield Fault(tensor.where, f"string {place} is not UTF-8: {data[:20]!r} ({error.reason})")
                return


# External data


def _external_entries(tensor: TensorProto) -> dict[str, str]:
    return {str(entry.key): str(entry.value) for entry in tensor.external_data}


def _external_file(tensor: Tensor) -> Path | None:
    """Where a tensor's external data should be; None where it is not external or the model comes from no file."""
    location = _external_entries(tensor.proto).get("location", "")
    if not _is_external(tensor.proto) or not tensor.model.folders or not location or _escapes(location):
        return None
    return tensor.model.folders[0] / location


def _escapes(location: str) -> bool:
    return os.path.isabs(location) or ".." in Path(location).parts or "\0" in location


@rule("tensor/external-location", "error", Tensor)
def external_location(tensor: Tensor) -> Faults:
    """External data has no location, or one outside the model's folder.

    Why: no reader may follow it: a model could name any file of its user's.

    Mend: move the file into the model's folder and write its path relative to that.

    Example:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=1)
        >>> w.external_data.add(key="location", value="../weights.bin")

    Instead:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=1)
        >>> w.external_data.add(key="location", value="weights.bin")
    """
    if not _is_external(tensor.proto):
        return
    location = _external_entries(tensor.proto).get("location", "")
    if not location:
        yield Fault(tensor.where, "its external data has no location")
    elif _escapes(location):
        yield Fault(tensor.where, f"its external data location {location!r} leaves the model's folder")
    elif (path := _external_file(tensor)) is not None and not is_inside(path, tensor.model.folders):
        yield Fault(tensor.where, f"its external data location {location!r} is a link out of the model's folder")


@rule("tensor/external-missing", "error", Tensor)
def external_missing(tensor: Tensor) -> Faults:
    """The file of a tensor's external data is not beside the model.

    Why: the weights are not there; the `.onnx` file alone was copied, as a rule.

    Mend: put the file into the model's folder, under the name that the message says.

    Example:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=1)
        >>> w.external_data.add(key="location", value="wieghts.bin")

    Instead:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=1)
        >>> w.external_data.add(key="location", value="weights.bin")
    """
    path = _external_file(tensor)
    if path is not None and is_inside(path, tensor.model.folders) and not os.path.isfile(path):
        yield Fault(tensor.where, f"its external data file {path.name!r} is not there (looked in {path.parent})")


@rule("tensor/external-range", "error", Tensor)
def external_range(tensor: Tensor) -> Faults:
    """External data has an offset or a length that is no number, or that reaches past the end of its file.

    Why: the file belongs to another version of the model, or is cut short.

    Mend: fetch model and data together again.

    Example:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=1)
        >>> w.external_data.add(key="location", value="weights.bin")
        >>> w.external_data.add(key="offset", value="123456")

    Instead:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> w = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=1)
        >>> w.external_data.add(key="location", value="weights.bin")
        >>> w.external_data.add(key="offset", value="0")
    """
    if not _is_external(tensor.proto):
        return
    entries = _external_entries(tensor.proto)
    wrong = [key for key in ("offset", "length") if not entries.get(key, "0").isdecimal()]
    for key in wrong:
        yield Fault(tensor.where, f"its external data has the {key} {entries[key]!r}, expected a non-negative integer")
    path, count = _external_file(tensor), _count(tensor.proto)
    if wrong or path is None or not is_inside(path, tensor.model.folders) or not os.path.isfile(path):
        return
    needed = 0 if count is None or tensor.proto.data_type not in BY_ELEMENT_TYPE else _bytes_needed(tensor.proto, count)
    end = int(entries.get("offset", "0")) + int(entries.get("length", needed))
    if end > (size := os.path.getsize(path)):
        yield Fault(tensor.where, f"its external data ends at byte {end}, {path.name} has {size}")
