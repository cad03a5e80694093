"""What a random model is made of: element-wise operators, products, windows, normalisations, reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
from passes.drawn_graph import SIZES, Drawn, Unfit

UNARY = ["Abs", "Neg", "Exp", "Sqrt", "Reciprocal", "Floor", "Ceil", "Relu", "Sigmoid", "Tanh", "Erf", "LeakyRelu"]
UNARY += ["Selu", "Softplus", "Softsign", "HardSigmoid", "Sign", "Identity", "Log", "Sin", "Cos", "IsNaN", "Round"]
UNARY += ["HardSwish", "Mish", "Gelu", "Celu", "ThresholdedRelu", "Dropout", "Not", "Elu"]
SINCE = {"Erf": 9, "Sign": 9, "IsNaN": 9, "Round": 11, "HardSwish": 14, "Mish": 18, "Gelu": 20, "Celu": 12}
SINCE |= {"ThresholdedRelu": 10, "Where": 9}
BINARY = ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Greater", "Less", "Equal", "And", "Or", "Xor"]


def is_float(x: np.ndarray) -> bool:
    return x.dtype.kind == "f"


def broadcastable(d: Drawn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another one."""
    sizes = [1 if d.chance(0.35) else size for size in shape]
    sizes = [d.pick(SIZES) if size == 1 and d.chance(0.1) else size for size in sizes]
    sizes = sizes[int(d.rng.integers(len(sizes) + 1)) if d.chance(0.5) else 0 :]
    return (1, *sizes) if d.chance(0.1) and len(shape) < 5 else tuple(sizes)


# What a draw adds


def unary(d: Drawn) -> None:
    op = d.pick(UNARY)
    x = d.any(lambda v: v.dtype.kind == "b" if op == "Not" else is_float(v))
    if x is None or SINCE.get(op, 0) > d.opset:
        raise Unfit
    extra: dict[str, Any] = {}
    if op in ("LeakyRelu", "Elu", "Celu", "HardSigmoid", "ThresholdedRelu") and d.chance(0.5):
        extra["alpha"] = float(d.pick((0.1, 0.25, 1.0, 1 / 6, 2.0)))
    if op == "Gelu" and d.chance(0.5):
        extra["approximate"] = "tanh"
    d.node(op, x, **extra)


def binary(d: Drawn) -> None:
    op = d.pick(BINARY)
    x = d.any(lambda v: (v.dtype.kind == "b") == (op in ("And", "Or", "Xor")))
    if x is None:
        raise Unfit
    value = d.values[x]
    y = d.any(lambda v: v.dtype == value.dtype and v.shape == value.shape) if d.chance(0.3) else None
    y = y or d.given(broadcastable(d, value.shape), value.dtype, 0.7)
    d.node(op, *((x, y) if d.chance(0.6) else (y, x)))


def clip(d: Drawn) -> None:
    x = d.any(is_float)
    if x is None:
        raise Unfit
    low, high = sorted(d.rng.standard_normal(2))
    if d.opset < 11:
        d.node("Clip", x, min=float(low), max=float(high))
    else:
        kind = d.values[x].dtype
        bounds = [d.constant(low, kind), d.constant(high, kind)]
        d.node("Clip", x, *(("" if d.chance(0.2) else bounds[0]), bounds[1])[: 1 + d.chance(0.8)])


def where(d: Drawn) -> None:
    x = d.any()
    if x is None or d.opset < 9:
        raise Unfit
    value = d.values[x]
    condition = d.any(lambda v: v.dtype.kind == "b" and d.chance(0.7))
    condition = condition or d.given(broadcastable(d, value.shape), bool)
    y = d.given(broadcastable(d, value.shape), value.dtype)
    d.node("Where", condition, *((x, y) if d.chance(0.5) else (y, x)))


def matmul(d: Drawn) -> None:
    x = d.any(lambda v: is_float(v) and v.ndim >= 1)
    if x is None:
        raise Unfit
    value = d.values[x]
    n = d.pick(SIZES)
    if value.ndim == 2 and d.chance(0.5):
        turned, other = d.chance(0.3), d.chance(0.5)
        k = value.shape[0] if turned else value.shape[1]
        inputs = [x, d.given((n, k) if other else (k, n), value.dtype, 0.8)]
        if d.opset < 11 or d.chance(0.7):
            m = value.shape[1] if turned else value.shape[0]
            inputs.append(d.given(d.pick([(n,), (1, n), (m, 1), (m, n), (1,), ()]), value.dtype, 0.7))
        scale = {"alpha": float(d.pick((0.5, 1.0, 2.0)))} if d.chance(0.3) else {}
        scale |= {"beta": float(d.pick((0.5, 0.0, 2.0)))} if d.chance(0.3) else {}
        y = d.node("Gemm", *inputs, transA=int(turned), transB=int(other), **scale)
    else:
        shape = (value.shape[-1], n) if d.chance(0.6) else (*value.shape[:-2], value.shape[-1], n)
        shape = (value.shape[-1],) if d.chance(0.1) else shape
        w = d.given(shape, value.dtype, 0.7)
        y = d.node("MatMul", x, w)
    follow(d, y)


def follow(d: Drawn, y: str) -> None:
    """What often comes after a product: bias, scale, residual, normalisation, activation."""
    for _ in range(int(d.rng.integers(4))):
        value = d.values[y]
        what = d.pick(("bias", "residual", "unary", "scale", "norm", "clip", "self"))
        if what == "bias" or what == "scale":
            shapes = [(1,), (), value.shape[-1:], (value.shape[1], *(1,) * (value.ndim - 2)) if value.ndim > 2 else ()]
            shapes.append((1, *shapes[-1]))
            other = d.given(d.pick(shapes), value.dtype, 0.9)
            op = d.pick(("Add", "Sub")) if what == "bias" else d.pick(("Mul", "Div"))
            y = d.node(op, *((y, other) if d.chance(0.7) else (other, y)))
        elif what == "residual":
            other = d.given(broadcastable(d, value.shape) if d.chance(0.3) else value.shape, value.dtype, 0.3)
            y = d.node("Add", *((y, other) if d.chance(0.5) else (other, y)))
        elif what == "unary":
            op = d.pick(("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Exp", "HardSigmoid", "Elu", "Softplus", "Abs", "Neg"))
            y = d.node(op, y)
        elif what == "norm" and value.ndim >= 2:
            y = normalised(d, y)
        elif what == "clip" and d.opset >= 11:
            y = d.node("Clip", y, d.constant(0, value.dtype), d.constant(6, value.dtype))
        elif what == "self":
            y = d.node(d.pick(("Add", "Mul", "Sub")), y, y)


def normalised(d: Drawn, x: str) -> str:
    value = d.values[x]
    channels = (value.shape[1],)
    names = [d.constant(d.numbers(channels, value.dtype)) for _ in range(3)]
    variance = d.constant(np.abs(d.numbers(channels, value.dtype)) + value.dtype.type(0.1))
    return d.node("BatchNormalization", x, *names, variance, epsilon=float(d.pick((1e-5, 1e-3))))


def conv(d: Drawn) -> None:
    axes = d.pick((1, 2, 2, 2, 3))
    x = d.any(lambda v: is_float(v) and v.ndim == axes + 2) if d.chance(0.6) else None
    dtype = d.pick((np.float32, np.float32, np.float32, np.float64, np.float16))
    if x is None:
        x = d.fed(
            d.numbers((d.pick((1, 2, 3)), d.pick((1, 2, 3, 4, 6, 8, 16, 17)), *d.rng.integers(1, 14, axes)), dtype)
        )
    value = d.values[x]
    channels = value.shape[1]
    groups = [g for g in (1, 1, 2, 3, 4, channels, channels) if g and channels % g == 0]
    group = d.pick(groups or [1])
    per = d.pick((1, 1, 2, 3, 8, 17))
    transposed = d.chance(0.2)
    kernel = [int(k) for k in d.rng.choice((1, 1, 2, 3, 3, 3, 5, 7), axes)]
    if d.chance(0.5):
        kernel = [kernel[0]] * axes
    attributes: dict[str, Any] = {"group": group}
    if d.chance(0.4):
        attributes["strides"] = [int(s) for s in d.rng.choice((1, 2, 3), axes)]
    if d.chance(0.3):
        attributes["dilations"] = [int(s) for s in d.rng.choice((1, 2, 3), axes)]
    if d.chance(0.3):
        attributes["auto_pad"] = d.pick(("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"))
    elif d.chance(0.7):
        attributes["pads"] = [int(p) for p in d.rng.choice((0, 1, 1, 2, 3), 2 * axes)]
        if d.chance(0.5):
            attributes["pads"] = [int(k // 2) for k in kernel] * 2
    if transposed:
        shape = (channels, per, *kernel)
        count = per * group
    else:
        count = group * per
        shape = (count, channels // group if group else 0, *kernel)
    inputs = [x, d.given(shape, value.dtype, 0.85)]
    if d.chance(0.5):
        inputs.append(d.given((count,), value.dtype, 0.9))
    follow(d, d.node("ConvTranspose" if transposed else "Conv", *inputs, **attributes))


def pool(d: Drawn) -> None:
    x = d.any(lambda v: is_float(v) and v.ndim in (3, 4, 5))
    if x is None:
        raise Unfit
    axes = d.values[x].ndim - 2
    op = d.pick(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"))
    if op.startswith("Global"):
        d.node(op, x)
        return
    kernel = [int(k) for k in d.rng.choice((1, 2, 3), axes)]
    attributes: dict[str, Any] = {"kernel_shape": kernel}
    if d.chance(0.5):
        attributes["strides"] = [int(s) for s in d.rng.choice((1, 2, 3), axes)]
    if d.chance(0.3):
        attributes["auto_pad"] = d.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif d.chance(0.5):
        attributes["pads"] = [
            min(int(p), k - 1) for p, k in zip(d.rng.choice((0, 1, 2), 2 * axes), kernel * 2, strict=True)
        ]
    if op == "AveragePool" and d.chance(0.5):
        attributes["count_include_pad"] = 1
    if d.opset >= 11 and d.chance(0.3):
        attributes["ceil_mode"] = 1
    d.node(op, x, **attributes)


def norm(d: Drawn) -> None:
    x = d.any(lambda v: is_float(v) and v.ndim >= 2)
    if x is None:
        raise Unfit
    value = d.values[x]
    axis = int(d.rng.integers(-value.ndim, value.ndim)) if d.opset >= 11 else int(d.rng.integers(value.ndim))
    what = d.pick(("BatchNormalization", "Softmax", "Softmax", "LogSoftmax", "LayerNormalization"))
    if what == "BatchNormalization":
        normalised(d, x)
    elif what == "LayerNormalization":
        if d.opset < 17:
            raise Unfit
        shape = value.shape[axis:]
        rest = [d.given(shape, value.dtype)] if d.chance(0.5) else []
        d.node(what, x, d.given(shape, value.dtype), *rest, axis=axis)
    else:
        d.node(what, x, axis=axis)


def reduction(d: Drawn) -> None:
    x = d.any(is_float)
    if x is None:
        raise Unfit
    value = d.values[x]
    op = "Reduce" + d.pick(("Mean", "Sum", "Max", "Min", "Prod", "L2", "SumSquare", "L1", "LogSumExp"))
    low = -value.ndim if d.opset >= 11 else 0
    axes = sorted({int(a) for a in d.rng.integers(low, max(value.ndim, 1), d.pick((1, 1, 2)))}) if value.ndim else []
    if len({a % value.ndim for a in axes}) < len(axes):
        axes = axes[:1]
    as_input = d.opset >= 18 or (d.opset >= 13 and op == "ReduceSum")
    keep = int(d.rng.integers(2))
    if not axes or d.chance(0.1):
        d.node(op, x, keepdims=keep)
    elif as_input:
        d.node(op, x, d.ints(*axes), keepdims=keep)
    else:
        d.node(op, x, axes=axes, keepdims=keep)
