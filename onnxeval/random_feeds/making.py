"""Feeds for a model: sizes for what is open, a look at what the nodes want, and values for what nobody gave."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onnxeval.checks.recording import Record, Recorded, record
from onnxeval.dtypes import Tensor, is_integer
from onnxeval.loader import Loaded
from onnxeval.random_feeds.analysis import wishes_for
from onnxeval.random_feeds.drawing import draw
from onnxeval.random_feeds.open import OpenSizes
from onnxeval.random_feeds.sketch import pinned, sketch_of
from onnxeval.random_feeds.wishes import ANY, TRUTH, Wish
from onnxeval.sizes import leading_sizes
from onnxeval.values import TensorType, Value, ValueType

if TYPE_CHECKING:
    from onnxeval.model import Declared, Model

#: Inputs of no more elements than this may be sizes that others hang on: they are drawn first.
_FEW = 64
_ROUNDS = 4
#: Operators that move windows over their input, and which input tells the windows' shape; 0 where an attribute does.
_WEIGHTS = {"AveragePool": 0, "Conv": 1, "ConvInteger": 1, "LpPool": 0, "MaxPool": 0, "QLinearConv": 3}
#: What is tried, in order, for open sizes where the nodes cannot work with 1.
_LARGE = (16, 256)
_TRIED = (2, 4, 8, 16, 32, 64, 128, 256, 512)


@dataclass(frozen=True, slots=True)
class Made:
    """All feeds, the names of those made up, and the sizes that were taken for what was open, by name."""

    feeds: dict[str, Value]
    names: tuple[str, ...]
    sizes: dict[str, int]


def make_feeds(model: Model, given: Mapping[str, Value], sizes: Mapping[str, int], seed: int) -> Made:
    """Values for every input that the model needs and nobody gave, always the same for the same seed.

    Raises InputError for a size of what no input has, and for given values that contradict each other.
    """
    wanted = [entry for entry in model.inputs if entry.name not in given and not entry.optional]
    proto = sketch_of(model.proto, [entry.name for entry in model.inputs if entry.name in given])
    taken = OpenSizes(proto, model.inputs, given, sizes)
    if not wanted:
        return Made(dict(given), (), {})
    recorded = _settle(proto, taken, given)
    feeds = dict(given)
    for _ in range(_ROUNDS):
        wishes = wishes_for(recorded)
        before = {name: feeds.get(name) for name in feeds}
        for entry in wanted:
            feeds[entry.name] = _drawn(entry, wishes.get(entry.name, ANY), taken, seed)
        small = {entry.name: feeds[entry.name] for entry in wanted if _is_few(feeds[entry.name])}
        if all(_same(value, before.get(name)) for name, value in small.items()):
            break
        recorded = _record(proto, taken, {**given, **small})
    return Made(feeds, tuple(entry.name for entry in wanted), taken.assumed)


def _drawn(entry: Declared, wish: Wish, taken: OpenSizes, seed: int) -> Value:
    """Each input has numbers of its own, so that those of others stay when a wish changes."""
    rng = np.random.default_rng([seed, zlib.crc32(entry.name.encode(errors="backslashreplace"))])
    if wish is ANY and "mask" in entry.name.lower() and _is_wide_integer(entry.type):
        wish = TRUTH
    return draw(rng, taken.placed(entry.name, entry.type), wish, {})


def _is_wide_integer(value_type: ValueType | None) -> bool:
    dtype = value_type.dtype if isinstance(value_type, TensorType) else None
    return dtype is not None and is_integer(dtype) and dtype.itemsize > 2  # narrower ones are data


def _is_few(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.size <= _FEW and value.dtype.kind in "iufb"


def _same(value: Tensor, before: Any) -> bool:
    return isinstance(before, np.ndarray) and before.shape == value.shape and bool(np.array_equal(value, before))


def _settle(proto: Any, taken: OpenSizes, given: Mapping[str, Value]) -> Recorded:
    """What is known of the model with the least sizes for what is open that its nodes can work with."""

    def look(sizes: Mapping[str, int]) -> tuple[Recorded, int]:
        taken.assume(sizes)
        recorded = _record(proto, taken, given)
        return recorded, _faults(recorded)

    recorded, least = look({})
    best = dict(taken.assumed)
    for group in _groups(list(best), leading_sizes(proto.graph)) if least else ():
        if not group or not any(look(dict.fromkeys(group, size))[1] < least for size in _LARGE):
            continue
        for size in _TRIED:
            found, faults = look(dict.fromkeys(group, size))
            if faults < least:
                recorded, least, best = found, faults, dict(taken.assumed)
        if not least:
            break
    for name in [name for name, size in best.items() if size > 1]:
        found, faults = look({**best, name: 1})
        if faults <= least:
            recorded, least, best = found, faults, dict(taken.assumed)
    taken.assume(best)
    return recorded


def _groups(names: Sequence[str], leading: Collection[str]) -> Iterator[Sequence[str]]:
    """The dimensions to be tried together: all but those of batches, one alone, all."""
    inner = [name for name in names if name not in leading]
    yield from dict.fromkeys((tuple(inner), *((name,) for name in names), tuple(names)))


def _faults(recorded: Recorded) -> int:
    """How many nodes cannot work with the sizes that there are, as far as can be seen."""
    return sum(finding.severity == "error" for finding in recorded.findings) + _starved(recorded.records)


def _starved(records: Iterable[Record]) -> int:
    """The nodes whose windows find no room, of which inference does not always tell."""
    return sum(_has_no_window(each) + _starved(each.inner) for each in records)


def _has_no_window(each: Record) -> bool:
    weight = _WEIGHTS.get(each.node.op_type)
    shape = each.inputs[0].shape if each.inputs else None
    attributes = each.attributes
    if weight is None or shape is None or attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return False
    kernel = attributes.get("kernel_shape") or ((each.inputs[weight].shape or ())[2:] if weight else ())
    pads, dilations = (
        attributes.get("pads") or (0,) * 2 * len(kernel),
        attributes.get("dilations") or (1,) * len(kernel),
    )
    return any(
        isinstance(size, int) and isinstance(taps, int) and size + before + after < dilation * (taps - 1) + 1
        for size, taps, before, after, dilation in zip(
            shape[2:], kernel, pads[: len(kernel)], pads[len(kernel) :], dilations, strict=False
        )
    )


def _record(proto: Any, taken: OpenSizes, feeds: Mapping[str, Value]) -> Recorded:
    return record(Loaded(pinned(proto, taken.sizes, _tensors(feeds.items())), "the model", ()))


def _tensors(feeds: Iterable[tuple[str, Value]]) -> dict[str, Tensor]:
    return {name: value for name, value in feeds if isinstance(value, np.ndarray)}
