"""Parts of a model, drawn, against the whole model's own values."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

import onnxeval
from onnxeval.graph import constants_of


def same(one: Any, other: Any) -> bool:
    """Whether two values are alike to the last bit."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return False
        return bool(one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


def errors_of(model: onnx.ModelProto) -> set[str]:
    """The rules that find errors; that of open ranks, which inference cannot always tell, left out."""
    return {f.rule for f in onnxeval.check(model) if f.severity == "error"} - {"graph/no-shape"}


def check_parts(proto: onnx.ModelProto, feeds: Mapping[str, Any], count: int, seed: int = 0) -> None:
    """Draw parts that begin and end anywhere, and run them on what the whole model gives there."""
    whole, chance = onnxeval.load(proto), random.Random(seed)
    names = list(whole.values)
    values = whole.run(feeds, names, reference=True, seed=0)
    before = errors_of(proto)
    for _ in range(count):
        ends = chance.sample(names, min(chance.randint(1, 3), len(names)))
        cuts = [name for name in chance.sample(names, min(chance.randint(0, 6), len(names))) if name not in ends]
        try:
            part = onnxeval.extract(proto, cuts, ends)
        except onnxeval.InputError as error:  # some of the cuts are not on the way
            assert str(error).startswith("no output depends on ")  # noqa: PT017  # others than these are faults
            unused = str(error).removeprefix("no output depends on ").split(", ")
            cuts = [name for name in cuts if name not in unused]
            part = onnxeval.extract(proto, cuts, ends)
        model = onnxeval.load(part)
        given = {entry.name: values[entry.name] for entry in model.inputs if not entry.optional}
        assert {*cuts} <= {entry.name for entry in model.inputs}
        assert [entry.name for entry in model.outputs] == ends
        results = model.run(given, reference=True, seed=0)
        assert all(same(results[name], values[name]) for name in ends), (cuts, ends)
        assert errors_of(part) <= before, (cuts, ends)
        left = {*constants_of(part.graph)}
        assert left <= {*constants_of(proto.graph)}
        read = {name for node in part.graph.node for name in node.input}
        assert part.graph.node or left <= {*ends}, (cuts, ends)
        assert {node.op_type for node in part.graph.node} <= {node.op_type for node in proto.graph.node}
        assert read or not part.graph.node or not given
