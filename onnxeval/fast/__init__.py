"""Faster kernels in the place of readable ones, each keyed to the function it replaces.

`replacement` is asked for each step when a plan is bound, with what is known of its inputs then: constant weights are
packed once. A replacement has the signature of the readable kernel, and hands on to it whatever it was not made for:
other types, other layouts, inputs that are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, TypeVar

from onnxeval.dtypes import Tensor
from onnxeval.fast._checks import FLOAT32
from onnxeval.fast.engine import native
from onnxeval.fast.halves import for_halves
from onnxeval.ops._precision import as_float32, is_in_float32
from onnxeval.registry import Kernel

#: Makes the replacement from the constant inputs (None where one is not known) and the attributes; None where the
#: readable kernel is as good.
Binder: TypeAlias = Callable[[Sequence[Tensor | None], Mapping[str, Any]], "Kernel | None"]
B = TypeVar("B", bound=Binder)

#: Where readable kernels live -> the modules that replace them, imported when the first of them is bound.
_MODULES: dict[str, tuple[str, ...]] = {
    "onnxeval.ops.math.matmul": ("products",),
    "onnxeval.ops.math.softmax": ("rows",),
    "onnxeval.ops.nn.attention": ("attention",),
    "onnxeval.ops.nn.batch_norm": ("batch_norms",),
    "onnxeval.ops.nn.conv": ("convolutions",),
    "onnxeval.ops.nn.conv_transpose": ("transposed",),
    "onnxeval.ops.nn.conv_integer": ("integer_convolutions",),
    "onnxeval.ops.nn.average_pool": ("pools",),
    "onnxeval.ops.nn.layer_norm": ("rows",),
    "onnxeval.ops.nn.lrn": ("local_norms",),
    "onnxeval.ops.nn.max_pool": ("pools",),
    "onnxeval.ops.nn.rotary_embedding": ("rotary",),
    "onnxeval.ops._attention": ("attention",),
    "onnxeval.ops._elementwise": ("curves", "elementwise", "maps"),
    "onnxeval.ops.logical.boolean": ("maps",),
    "onnxeval.ops.math.arithmetic": ("maps",),
    "onnxeval.ops.math.clip": ("elementwise",),
    "onnxeval.ops.math.cumulative": ("reductions",),
    "onnxeval.ops.math.erf": ("curves",),
    "onnxeval.ops.math.expand": ("moves",),
    "onnxeval.ops.math.power": ("elementwise",),
    "onnxeval.ops.math.quantized_matmul": ("integers", "quantized_products"),
    "onnxeval.ops.math.rectifiers": ("curves", "elementwise"),
    "onnxeval.ops.math.sigmoids": ("curves",),
    "onnxeval.ops.math.variadic": ("maps",),
    "onnxeval.ops.quantization.dynamic": ("integers",),
    "onnxeval.ops.rnn.gru": ("layers",),
    "onnxeval.ops.rnn.lstm": ("layers",),
    "onnxeval.ops.rnn.simple": ("layers",),
    "onnxeval.ops.traditionalml.features": ("linear",),
    "onnxeval.ops.traditionalml.linear": ("linear",),
    "onnxeval.ops.traditionalml.maps": ("linear",),
    "onnxeval.ops.traditionalml.svm": ("vectors",),
    "onnxeval.ops.traditionalml.tree_ensemble": ("trees",),
    "onnxeval.ops.traditionalml.tree_votes": ("trees",),
    "onnxeval.ops.quantization.linear": ("quantize",),
    "onnxeval.ops.contrib.quantize_linear": ("quantize",),
    "onnxeval.ops.contrib.qlinear_elementwise": ("quantized_elements",),
    "onnxeval.ops.contrib.qlinear_pool": ("quantized_elements",),
    "onnxeval.ops.contrib.attention": ("contrib_attention",),
    "onnxeval.ops.contrib.gelu": ("contrib_rows",),
    "onnxeval.ops.contrib.group_query_attention": ("contrib_attention",),
    "onnxeval.ops.contrib.layer_norm": ("contrib_rows",),
    "onnxeval.ops.contrib.multi_head_attention": ("contrib_attention",),
    "onnxeval.ops.contrib.matmul_nbits": ("bits",),
    "onnxeval.ops.contrib.rotary_embedding": ("rotary",),
    "onnxeval.ops.contrib.quantized_gemm": ("quantized_products",),
    "onnxeval.ops.contrib.qlinear_conv": ("integer_convolutions",),
    "onnxeval.ops.contrib.dynamic_quantize": ("integers",),
    "onnxeval.ops.contrib.dynamic_quantize_lstm": ("recurrent",),
    "onnxeval.ops.reduction.arg": ("reductions",),
    "onnxeval.ops.reduction.reduce": ("reductions",),
    "onnxeval.ops.tensor.cast": ("conversions",),
    "onnxeval.ops.tensor.choose": ("conversions", "maps"),
    "onnxeval.ops.tensor.concat_split": ("moves",),
    "onnxeval.ops.tensor.gather": ("picks",),
    "onnxeval.ops.tensor.pad": ("pads",),
    "onnxeval.ops.tensor.resize": ("resizing",),
    "onnxeval.ops.tensor.scatter": ("picks",),
}

K = TypeVar("K", bound=Kernel)


def replayable(kernel: K) -> K:
    """Mark a replacement that does nothing with the numbers of its inputs but hand their memory to compiled kernels.

    For inputs of the same shapes its calls may be recorded and performed again, see `onnxeval.replay`. It may do other
    things for some inputs: where its results are then not what a compiled kernel wrote, it is not replayed. One that
    changes them afterwards calls `interrupt` of the compiled kernels.
    """
    vars(kernel)["is_replayable"] = True
    return kernel


def is_replayable(kernel: Kernel | None) -> bool:
    """Whether a kernel is marked so."""
    return bool(getattr(kernel, "is_replayable", False))


class _Binding(NamedTuple):
    """How a kernel is replaced, see `replaces`."""

    make: Callable[..., Kernel | None]
    rounded: int
    heeds_fast_math: bool


_BINDINGS: dict[Kernel, _Binding] = {}
#: More than any kernel has that is replaced.
_MOST_OUTPUTS = 16


def replaces(*kernels: Kernel, rounded: int = 0, heeds_fast_math: bool = False) -> Callable[[B], B]:
    """Let a function make the replacement of these kernels.

    What is made for float32 serves 16-bit floats too where the readable kernel computes with them in float32; and where
    it does not, but that is as exact, the first results, ``rounded`` of them, being rounded. A function that
    ``heeds_fast_math`` takes ``fast_math=True`` where less exact results will do.
    """

    def register(binder: B) -> B:
        for kernel in kernels:
            if (other := _BINDINGS.get(kernel)) is not None:
                raise ValueError(f"{kernel.__name__} is replaced twice: {other.make} and {binder}")
            _BINDINGS[kernel] = _Binding(binder, rounded, heeds_fast_math)
        return binder

    return register


def replacement(
    kernel: Kernel, constants: Sequence[Tensor | None], attributes: Mapping[str, Any], *, fast_math: bool = False
) -> Kernel | None:
    """What runs faster in the place of a kernel; None where nothing does. With ``fast_math`` it may be less exact."""
    binding = _binding_of(kernel)
    if binding is None or native() is None:
        return None
    make = partial(binding.make, fast_math=True) if fast_math and binding.heeds_fast_math else binding.make
    try:
        rounded = _MOST_OUTPUTS if is_in_float32(kernel) else binding.rounded
        if not rounded or any(x is not None and x.dtype == FLOAT32 for x in constants):
            return make(constants, attributes)
        known = [as_float32(x) for x in constants]
        wide = make(known, attributes)
        return None if wide is None else for_halves(wide, constants, known, rounded)
    except (ValueError, TypeError, KeyError):
        return None  # the readable kernel says what is wrong with attributes or constants


@cache
def _binding_of(kernel: Kernel) -> _Binding | None:
    for home in _MODULES.get(getattr(kernel, "__module__", ""), ()):
        import_module(f"{__name__}.{home}")
    return _BINDINGS.get(kernel)
