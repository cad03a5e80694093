"""A product and the element-wise operators after it in one pass: bias, residual and activation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from onnxeval.dtypes import Tensor
from onnxeval.fast._checks import is_float32
from onnxeval.fast.activations import IDENTITY, Activation
from onnxeval.fast.curves import activation_of, clip_of
from onnxeval.fast.parts import SO_FAR, Part, Product
from onnxeval.registry import STANDARD, Kernel, OpKey

_SUMS = (STANDARD.require(OpKey("", "Add", 14), "math"), STANDARD.require(OpKey("", "Sum", 13), "math"))

#: Where readable kernels live -> the module with what computes them, with something added and an activation.
_HOMES = {"onnxeval.ops.math.matmul": "products", "onnxeval.ops.nn.conv": "convolutions"}


def _product_of(kernel: Kernel) -> type[Product] | None:
    home = _HOMES.get(getattr(kernel, "__module__", ""))
    products: Mapping[Kernel, type[Product]] = {} if home is None else import_module(f"onnxeval.fast.{home}").PRODUCTS
    return products.get(kernel)


class FusedHead:
    """The first ``length`` parts of a chain at once."""

    def __init__(
        self,
        first: Part,
        product: type[Product],
        constants: Sequence[Tensor | None],
        extras: Mapping[str, int],
        activation: Activation,
        length: int,
        fast_math: bool,
    ) -> None:
        self.length = length
        self.sources = first.sources
        self.attributes = first.attributes
        self.extras = extras  # what is added: bias or residual -> its place
        # A constant bias may be stored as one row, on more axes
        bias = constants[extras["bias"]] if "bias" in extras else None
        self.vectors = {} if bias is None else {"bias": bias.reshape(-1)}
        self.rank = 0 if bias is None else bias.ndim  # the least of the result
        known = [constants[source] if source >= 0 else None for source in first.sources]
        self.product = product(known, first.attributes, fast_math)
        self.activation = activation
        self.readable = first.kernel

    def __call__(self, *inputs: Tensor | None, **supplied: Any) -> Tensor | None:
        """Their result; None where the parts must do it, one after the other."""
        values = [inputs[source] if source >= 0 else None for source in self.sources]
        added = {name: inputs[place] for name, place in self.extras.items()} | self.vectors
        result = self.product(*values, **self.attributes, **added, **supplied, activation=self.activation)
        return None if result is None or result.ndim < self.rank else result

    def alone(self, *values: Tensor | None, **given: Any) -> Tensor:
        """The first part by itself, with the weights that are packed already."""
        result = self.product(*values, **given)
        return self.readable(*values, **given) if result is None else result


def fused_head(
    parts: Sequence[Part], constants: Sequence[Tensor | None], *, fast_math: bool = False
) -> FusedHead | None:
    """The product that a chain begins with, and what goes with it of the rest; None where there is none."""
    first = parts[0]
    product = _product_of(first.kernel)
    if product is None:
        return None
    extras: dict[str, int] = {}
    activation = IDENTITY
    length = 1
    for part in parts[1:]:
        place = _added(part)
        if place is None:
            found = _activation(part, constants)
            if found is not None:
                activation, length = found, length + 1
            break
        kind = _kind_of_extra(constants[place], product.has_columns)
        if kind == "bias" and len(first.sources) > 2 and first.sources[2] >= 0:  # Gemm has one already
            break
        if kind is None or kind in extras or "residual" in extras:
            break
        extras[kind] = place
        length += 1
    return FusedHead(first, product, constants, extras, activation, length, fast_math)


def _added(part: Part) -> int | None:
    """The place of what a part adds to the result so far; None where it does something else."""
    if part.kernel not in _SUMS or len(part.sources) != 2 or SO_FAR not in part.sources:
        return None
    other = part.sources[1] if part.sources[0] == SO_FAR else part.sources[0]
    return other if other >= 0 else None


def _kind_of_extra(value: Tensor | None, has_columns: bool) -> str | None:
    """How the product adds it: a constant vector is a bias of its columns, what is not known may be a residual."""
    if value is None:
        return "residual"
    if not is_float32(value):
        return None
    if value.size > 1 and value.shape[-1] == value.size:
        return "bias" if has_columns else None
    return "residual" if value.ndim > 1 and value.shape[-1] > 1 else None


def _activation(part: Part, constants: Sequence[Tensor | None]) -> Activation | None:
    if part.sources[0] != SO_FAR:
        return None
    clipped = clip_of(part, constants)
    if clipped is not None or len(part.sources) > 1:
        return clipped
    return activation_of(part.kernel, part.attributes)
