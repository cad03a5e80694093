"""QMoE: MoE whose experts have weights of few bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxeval.dtypes import FLOAT8E4M3FN, Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib._experts import Activation, mixed
from onnxeval.ops.contrib._packing import unpacked
from onnxeval.ops.contrib._typed import FLOAT32, FLOATS, UINT8, microsoft_op
from onnxeval.values import shape_text


@microsoft_op(
    "QMoE",
    "TTWSTWSTWSTZZZTGGGGSS",
    T=FLOATS,
    W=(UINT8, FLOAT8E4M3FN),
    Z=(UINT8,),
    S=FLOATS,
    G=(FLOAT32,),
)
@in_float32
def quantized_mixture_of_experts(
    x: Tensor,
    router_probs: Tensor,
    fc1_weights: Tensor,
    fc1_scales: Tensor | None,
    fc1_bias: Tensor | None,
    fc2_weights: Tensor,
    fc2_scales: Tensor | None,
    fc2_bias: Tensor | None,
    fc3_weights: Tensor | None,
    fc3_scales: Tensor | None,
    fc3_bias: Tensor | None,
    fc1_zero_points: Tensor | None,
    fc2_zero_points: Tensor | None,
    fc3_zero_points: Tensor | None,
    router_weights: Tensor | None,
    fc1_global_scale: Tensor | None,
    fc2_global_scale: Tensor | None,
    fc1_act_scale: Tensor | None,
    fc2_act_scale: Tensor | None,
    fc1_act_block_scale: Tensor | None,
    fc2_act_block_scale: Tensor | None,
    *,
    accuracy_level: int = 0,  # noqa: ARG001  allows less precision than there is
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_type: str = "relu",
    block_size: int = 0,
    expert_weight_bits: int = 4,
    fc1_expert_weight_bits: int | None = None,
    fc2_expert_weight_bits: int | None = None,
    fc3_expert_weight_bits: int | None = None,
    k: int = 1,
    normalize_routing_weights: int = 0,
    quant_type: str = "int",
    swiglu_fusion: int = 0,
    swiglu_limit: float | None = None,
    swiglu_limit_after_activation: int = 0,
    use_sparse_mixer: int = 0,
    weights_prepacked: int = -1,
) -> Tensor:
    """Tokens (..., H), logits (tokens, E) -> (..., H), as MoE-1; ``router_weights`` weigh where they are given.

    Weights of ``quant_type`` "int" are (E, F, H * bits / 8), rows of codes from the low bits up, and stand for
    (code - zero point) * scale. Scales are (E, F), or (E, F, H / block_size); so are zero points, packed alike, each
    expert's or each row's filled up to a byte. Without them they are 2^(bits - 1), and of 3 bits they are always 4.
    Those of "fp8" are float8e4m3fn (E, F, H) and stand for their product with the scale of a square block, or with that
    of their expert where ``block_size`` is not positive.

    Raises ValueError where shapes do not fit together, for the sparse mixer, which no text explains, and for
    quantizations and layouts that belong to a device. Source: com.microsoft.QMoE-1.
    """
    if use_sparse_mixer:
        raise ValueError("use_sparse_mixer asks for a routing that is not documented")
    if quant_type not in ("int", "fp8"):
        raise ValueError(f"quant_type {quant_type!r} is a layout of a device, only int and fp8 can be read")
    if weights_prepacked not in (-1, 0):
        raise ValueError(f"weights_prepacked {weights_prepacked} is a layout of a device, only 0 and -1 can be read")
    if any(part is not None for part in (fc1_act_scale, fc2_act_scale, fc1_act_block_scale, fc2_act_block_scale)):
        raise ValueError(f"scales of activations are given, which quant_type {quant_type!r} has not")
    act = Activation(
        activation_type,
        activation_alpha,
        activation_beta,
        swiglu_fusion,
        swiglu_limit,
        bool(swiglu_limit_after_activation),
    )

    def product(
        name: str,
        weights: Tensor,
        scales: Tensor | None,
        bias: Tensor | None,
        zeros: Tensor | None,
        whole: Tensor | None,
        bits: int | None,
    ) -> _Product:
        if quant_type == "fp8":
            return _Product(name, weights, whole if block_size <= 0 else scales, bias, zeros, 0, block_size)
        return _Product(name, weights, scales, bias, zeros, expert_weight_bits if bits is None else bits, block_size)

    fc1 = product("fc1", fc1_weights, fc1_scales, fc1_bias, fc1_zero_points, fc1_global_scale, fc1_expert_weight_bits)
    fc2 = product("fc2", fc2_weights, fc2_scales, fc2_bias, fc2_zero_points, fc2_global_scale, fc2_expert_weight_bits)
    fc3 = None
    if fc3_weights is not None:
        fc3 = product("fc3", fc3_weights, fc3_scales, fc3_bias, fc3_zero_points, None, fc3_expert_weight_bits)

    def answer(tokens: Tensor, expert: int) -> Tensor:
        inner = fc1(tokens, expert)
        return fc2(act.alone(inner) if fc3 is None else act.gated(inner, fc3(tokens, expert)), expert)

    return mixed(
        x, router_probs, router_weights, answer, experts=len(fc1_weights), k=k, normalize=normalize_routing_weights
    )


@dataclass(frozen=True)
class _Product:
    """The products with one of an expert's matrices; ``bits`` is 0 for weights of float 8."""

    name: str
    weights: Tensor
    scales: Tensor | None
    bias: Tensor | None
    zeros: Tensor | None
    bits: int
    block: int

    def __post_init__(self) -> None:
        if self.bits not in (0, 2, 3, 4, 8):
            raise ValueError(f"weights of {self.name} have {self.bits} bits, expected 2, 3, 4 or 8")
        if (self.weights.dtype == np.uint8) != bool(self.bits):
            raise TypeError(f"weights of {self.name} are {self.weights.dtype}, which quant_type does not mean")
        if self.scales is None or self.weights.ndim != 3:
            raise ValueError(f"{self.name} has weights of shape {shape_text(self.weights.shape)} and no scales")
        if self.bits and self.block and (self.block < 16 or self.block & (self.block - 1)):
            raise ValueError(f"block_size {self.block} is no power of 2 from 16 on")
        if not self.bits and self.zeros is not None:
            raise ValueError(f"{self.name} has zero points, which float 8 has not")

    def __call__(self, tokens: Tensor, expert: int) -> Tensor:
        product: Tensor = tokens @ self._matrix(expert, tokens.shape[1]).T
        return product if self.bias is None else product + self._of(self.bias, expert, "bias", (product.shape[1],))

    def _matrix(self, expert: int, width: int) -> Tensor:
        """What the weights of an expert stand for, (rows, width) in float32."""
        if expert >= len(self.weights):
            raise ValueError(f"{self.name} has weights of {len(self.weights)} experts, not of expert {expert}")
        rows = self.weights.shape[1]
        scales = np.asarray(self.scales)
        if not self.bits:
            weights = convert(self._of(self.weights, expert, "weights", (rows, width)), FLOAT32)
            if self.block <= 0:
                return np.asarray(weights * self._of(scales, expert, "global_scale", ()))
            blocks = (-(-rows // self.block), -(-width // self.block))
            by_block = self._of(scales, expert, "scales", blocks)
            return np.asarray(weights * by_block.repeat(self.block, 0)[:rows].repeat(self.block, 1)[:, :width])
        packed = self._of(self.weights, expert, "weights", (rows, -(-width * self.bits // 8)))
        codes = _codes(packed, self.bits)[:, :width].astype(np.float32)
        if self.block and width % self.block:
            raise ValueError(f"{width} features of {self.name} are no blocks of {self.block}")
        groups = width // self.block if self.block else 1
        shape = (rows, groups) if self.block else (rows,)
        by_group = self._of(scales, expert, "scales", shape).reshape(rows, groups, 1)
        steps = codes.reshape(rows, groups, width // groups) - self._zero_points(expert, shape).reshape(rows, groups, 1)
        return np.asarray((steps * by_group).reshape(rows, width))

    def _zero_points(self, expert: int, shape: tuple[int, ...]) -> Tensor:
        if self.zeros is None:
            return np.full(shape, 2 ** (self.bits - 1), np.float32)
        packed = self._of(self.zeros, expert, "zero_points", (*shape[:-1], -(-shape[-1] * self.bits // 8)))
        zeros = _codes(packed, self.bits)[..., : shape[-1]]
        if self.bits == 3 and np.any(zeros != 4):
            raise ValueError(f"zero points of {self.name} of 3 bits are {np.unique(zeros).tolist()}, expected 4")
        return zeros.astype(np.float32)

    def _of(self, values: Tensor, expert: int, part: str, shape: tuple[int, ...]) -> Tensor:
        if values.shape[1:] != shape or expert >= len(values):
            expected = shape_text((len(self.weights), *shape))
            raise ValueError(f"{self.name} has {part} of shape {shape_text(values.shape)}, expected {expected}")
        return np.asarray(values[expert])


def _codes(packed: Tensor, bits: int) -> Tensor:
    """(..., n) uint8 -> (..., n * 8 // bits): the integers of that many bits in each row, from the low bits up."""
    if bits != 3:
        return unpacked(packed, bits)
    count = packed.shape[-1] * 8 // bits
    each = np.unpackbits(packed, axis=-1, bitorder="little")[..., : count * bits]
    return np.packbits(each.reshape(*packed.shape[:-1], count, bits), axis=-1, bitorder="little")[..., 0]
