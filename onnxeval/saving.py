"""A model to a file: in the format of the suffix, its data inside, or beside it where protobuf holds no more."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx.serialization
from google.protobuf.descriptor import FieldDescriptor
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

from onnxeval.errors import ModelError, OutputError
from onnxeval.external import NO_FILES, Files
from onnxeval.files.writing import whole_file
from onnxeval.tensors import array_from, external_bytes, packed

#: Protobuf writes no larger messages; what is not the data of tensors has to find room, too.
_MOST_INSIDE = 2**31 - 2**24
#: Where data begins in a file beside the model, so that it can be mapped into memory; less than that stays inside.
_PAGE = 4096
_BINARY = "protobuf"


def save_model(model: ModelProto, path: str | os.PathLike[str], files: Files = NO_FILES) -> list[str]:
    """Write a model whose external data is in ``files``; notes for the user on how. ``model`` is used up.

    Data of more than two gigabytes goes to a file beside it, PATH with ``.data`` after it. Raises OutputError, and
    leaves what was there, where a file cannot be written, ModelError where the format cannot hold the model.
    """
    target = Path(path)
    if os.path.isdir(target):
        raise OutputError(f"{target} is a folder")
    tensors = list(tensors_of(model))
    beside = target.with_name(f"{target.name}.data")
    _refuse_own_data(tensors, files, (target, beside))
    if model.ByteSize() + sum(external_bytes(t, files).size for t in tensors if _is_outside(t)) <= _MOST_INSIDE:
        embed(model, files)
        return _save(model, target)
    with whole_file(target) as partial, whole_file(beside) as data:
        with data.open("wb") as stream:
            for tensor in tensors:
                _move_out(tensor, files, stream, beside.name)
        content, notes = model_bytes(model, target)
        partial.write_bytes(content)
    return [*notes, f"the data of tensors is in {beside}, as protobuf holds no more than 2 GB"]


def _refuse_own_data(tensors: Iterable[TensorProto], files: Files, targets: Iterable[Path]) -> None:
    """Raise OutputError where a file would be written over one that the model's data is in."""
    outside = {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}
    places = [folder / location for location in outside for folder in files.folders]
    for target in targets:
        if any(is_same_file(place, target) for place in places):
            raise OutputError(f"{target} holds the model's own data", hint="write to another file")


def is_same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether both are there, and are one file."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _save(model: ModelProto, target: Path) -> list[str]:
    content, notes = model_bytes(model, target)
    with whole_file(target) as partial:
        partial.write_bytes(content)
    return notes


def embed(model: ModelProto, files: Files) -> None:
    """Put external data into the messages. Raises ModelError where it is not there."""
    for tensor in tensors_of(model):
        if _is_outside(tensor):
            tensor.raw_data = external_bytes(tensor, files).tobytes()
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")


def _move_out(tensor: TensorProto, files: Files, stream: Any, location: str) -> None:
    """Write the data of a tensor to a file beside the model."""
    data = external_bytes(tensor, files) if _is_outside(tensor) else tensor.raw_data
    if len(data) < _PAGE and not _is_outside(tensor):
        return
    stream.seek(-stream.tell() % _PAGE, os.SEEK_CUR)
    offset = stream.tell()
    stream.write(data)
    tensor.ClearField("raw_data")
    tensor.ClearField("external_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": offset, "length": stream.tell() - offset}.items():
        tensor.external_data.add(key=key, value=str(value))


def _is_outside(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


# Formats


def model_bytes(model: ModelProto, path: str | os.PathLike[str]) -> tuple[bytes, list[str]]:
    """A model as the file of this name holds it, by its suffix as in `parse_model`, and notes on what that leaves out.

    Raises ModelError where the format cannot hold it: only texts for people may be left out.
    """
    registry = onnx.serialization.registry
    file_format = registry.get_format_from_file_extension(Path(path).suffix) or _BINARY
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # onnx calls its text format experimental each time
            data = bytes(registry.get(file_format).serialize_proto(model))
            if file_format == _BINARY:
                return data, []
            again = onnx.load_model_from_string(data, file_format)
    except Exception as error:  # what the serialisers raise is theirs to choose
        reason = error.args[0] if error.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(error)
        raise ModelError(f"the model cannot be written as {file_format}: {text}") from error
    if again == model:
        return data, []
    one, other = _comparable(model), _comparable(again)
    if one == other:
        return data, []
    if _without_prose(one) != _without_prose(other):
        raise ModelError(
            f"the model cannot be written as {file_format} without loss", hint=".textproto and .json are other texts"
        )
    return data, [f"{file_format} leaves out what doc_string says"]


def _comparable(model: ModelProto) -> ModelProto:
    """The model in one of the ways to say the same: elements as bytes, nothing where a text is empty."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for tensor in tensors_of(copy):
        if tensor.data_type != TensorProto.STRING and not _is_outside(tensor):
            data = packed(array_from(tensor).reshape(-1))
            for field, _ in tensor.ListFields():
                if field.name.endswith("_data"):
                    tensor.ClearField(field.name)
            tensor.raw_data = data
    _clear(copy, lambda field, value: field.type == FieldDescriptor.TYPE_STRING and value == "")
    return copy


def _without_prose(model: ModelProto) -> ModelProto:
    _clear(model, lambda field, _value: field.name == "doc_string")
    return model


def _clear(message: Any, is_cleared: Callable[[Any, Any], bool]) -> None:
    """Clear fields of a message and of those in it; the elements of tensors are left alone."""
    for field, value in message.ListFields():
        if is_cleared(field, value):
            message.ClearField(field.name)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in (value,) if hasattr(value, "ListFields") else value:
                _clear(inner, is_cleared)


# The tensors of a message


def tensors_of(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor that a model holds: initializers, and those in attributes, at any depth."""
    yield from _in_graph(model.graph)
    for info in model.training_info:
        yield from _in_graph(info.initialization)
        yield from _in_graph(info.algorithm)
    for function in model.functions:
        yield from _in_attributes(function.attribute_proto)
        yield from _in_nodes(function.node)


def _in_graph(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from _in_sparse(sparse)
    yield from _in_nodes(graph.node)


def _in_sparse(sparse: SparseTensorProto) -> Iterator[TensorProto]:
    yield sparse.values
    yield sparse.indices


def _in_nodes(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        yield from _in_attributes(node.attribute)


def _in_attributes(attributes: Iterable[AttributeProto]) -> Iterator[TensorProto]:
    for attribute in attributes:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("sparse_tensor"):
            yield from _in_sparse(attribute.sparse_tensor)
        for sparse in attribute.sparse_tensors:
            yield from _in_sparse(sparse)
        if attribute.HasField("g"):
            yield from _in_graph(attribute.g)
        for graph in attribute.graphs:
            yield from _in_graph(graph)
