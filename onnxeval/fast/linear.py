"""Linear models of few numbers, scaled and normalised rows, maps of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import FLOAT32
from onnxeval.fast._scores import TRANSFORMS, Choice, Complement, Ending, doubles_or_none, table_of
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.traditionalml._lookup import only_one
from onnxeval.ops.traditionalml.features import normalizer, scaler
from onnxeval.ops.traditionalml.linear import linear_classifier, linear_regressor
from onnxeval.ops.traditionalml.maps import zip_map
from onnxeval.registry import Kernel, preparation_of
from onnxeval.values import MapType, TensorType
from onnxeval.values import Sequence as SequenceValue

#: Multiplications of a product that NumPy is quicker at.
_MANY = 1 << 13

#: Numbers of features that one step remembers its weights for.
_MOST_PLANS = 8

_NORMS = {"MAX": 0, "L1": 1, "L2": 2}


@replaces(linear_classifier)
def bind_linear_classifier(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """LinearClassifier."""
    names = ("classlabels_ints", "classlabels_strings")
    try:
        labels = only_one(**{name: attributes[name] for name in names})
    except ValueError:
        return None
    transform = attributes["post_transform"]

    def ending(features: int, base: Tensor) -> Ending:
        if labels.size != 2 or len(attributes["coefficients"]) != features:
            return Ending(
                labels.size, doubles_or_none(base), TRANSFORMS[transform], choice=Choice.GREATEST, labels=labels
            )
        complement = Complement.TO_ZERO if transform == "LOGISTIC" else Complement.TO_ONE
        return Ending(1, doubles_or_none(base), TRANSFORMS[transform], complement, Choice.POSITIVE, labels)

    return _linear(linear_classifier, attributes, ending)


@replaces(linear_regressor)
def bind_linear_regressor(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """LinearRegressor."""

    def ending(_: int, base: Tensor) -> Ending:
        return Ending(attributes["targets"], doubles_or_none(base), TRANSFORMS[attributes["post_transform"]])

    return _linear(linear_regressor, attributes, ending)


def _linear(readable: Kernel, attributes: Mapping[str, Any], ending_of: Any) -> Kernel | None:
    kernels = native()
    prepare = preparation_of(readable)
    assert kernels is not None
    assert prepare is not None
    if attributes["post_transform"] not in TRANSFORMS:
        return None
    plane = prepare(attributes["coefficients"], attributes["intercepts"])

    @lru_cache(_MOST_PLANS)
    def plan_for(features: int) -> tuple[Ending, Tensor] | None:
        ending = ending_of(features, plane.intercepts)
        size = ending.width * features
        if ending.width < 1 or plane.coefficients.size < size or plane.intercepts.size not in (0, ending.width):
            return None
        return ending, np.ascontiguousarray(plane.coefficients[:size].reshape(ending.width, features).T)

    @replayable
    def scored(x: Tensor, *, allocate: Allocate, **given: Any) -> Any:
        table = table_of(x)
        plan = None if table is None else plan_for(table.shape[1])
        if table is None or plan is None or table.size * plan[0].width > _MANY:
            return readable(x, allocate=allocate, **given, prepared=plane)
        ending, weights = plan

        def compute(*rest: Any) -> None:
            kernels.run_linear(table, weights, *rest)

        return ending.run(compute, len(table), FLOAT32, allocate)

    return scored


@replaces(normalizer)
def bind_normalizer(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """Normalizer."""
    kernels = native()
    assert kernels is not None
    norm = _NORMS.get(attributes["norm"])
    if norm is None:
        return None

    @replayable
    def normalised(x: Tensor, **given: Any) -> Tensor:
        table = table_of(x)
        if table is None:
            return normalizer(x, **given)
        result = empty(x.shape, np.float32)
        kernels.run_normalizer(table, norm, result)
        return result

    return normalised


@replaces(scaler)
def bind_scaler(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """Scaler."""
    kernels = native()
    assert kernels is not None
    offset, scale = attributes["offset"] or (), attributes["scale"] or ()
    if offset and scale and len(offset) != len(scale):
        return None

    @lru_cache(_MOST_PLANS)
    def plan_for(features: int) -> tuple[Tensor, Tensor] | None:
        if any(len(given) not in (0, 1, features) for given in (offset, scale)):
            return None
        shift, factor = (
            np.ascontiguousarray(np.broadcast_to(np.array(given or neutral, np.float64), (features,)))
            for given, neutral in ((offset, 0), (scale, 1))
        )
        return shift, factor

    @replayable
    def scaled(x: Tensor, **given: Any) -> Tensor:
        table = table_of(x)
        plan = None if table is None else plan_for(table.shape[1])
        if plan is None:
            return scaler(x, **given)
        result = empty(x.shape, np.float32)
        kernels.run_scaler(table, *plan, result)
        return result

    return scaled


@replaces(zip_map)
def bind_zip_map(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """ZipMap, whose keys are read once."""
    names = ("classlabels_int64s", "classlabels_strings")
    try:
        labels = only_one(**{name: attributes[name] for name in names})
    except ValueError:
        return None
    keys = labels.tolist()
    kind = MapType(labels.dtype, TensorType(FLOAT32))

    def zipped(x: Tensor, **given: Any) -> SequenceValue:
        if type(x) is not np.ndarray or x.dtype != FLOAT32 or x.ndim != 2 or x.shape[1] != len(keys):
            return zip_map(x, **given)
        return SequenceValue([dict(zip(keys, row, strict=True)) for row in x], kind)

    return zipped
