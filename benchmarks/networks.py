"""Networks of common designs at uncommon sizes, made where they are measured: none was looked at while tuning.

Each function below fills a `Network` and returns the name of its output.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from building import Network

NETWORKS: dict[str, Callable[[Network], str]] = {}


def network(make: Callable[[Network], str]) -> Callable[[Network], str]:
    NETWORKS[make.__name__] = make
    return make


def build(name: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray[Any, Any]]]:
    """A network of the table and what to feed it."""
    made = Network(name)
    return made.model(NETWORKS[name](made)), made.feeds


def write(name: str, folder: Path) -> tuple[Path, Path]:
    """The same as files in a folder: the model and its feeds (.npz), renewed each time."""
    folder.mkdir(parents=True, exist_ok=True)
    model, feeds = build(name)
    model_path, feeds_path = folder / f"{name}.onnx", folder / f"{name}.npz"
    for path in (model_path, feeds_path):
        partial = path.with_suffix(f".{os.getpid()}.partial")
        with partial.open("wb") as file:
            if path is model_path:
                file.write(model.SerializeToString())
            else:
                np.savez(file, **feeds)
        os.replace(partial, path)
    return model_path, feeds_path


@network
def batch_of_eight(net: Network) -> str:
    """A small classifier over eight pictures of 37x53: sizes no vector divides, average pools, BatchNormalization."""
    x, channels = net.input("pictures", 8, 3, 37, 53), 3
    for filters in (24, 40, 72):
        for _ in range(2):
            x = net.add("Relu", net.normalised(net.conv(x, channels, filters, (3, 3)), filters))
            channels = filters
        x = net.add(
            "AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=filters > 24
        )
    flat = net.add("Flatten", x)
    weight = net.weight(channels * 5 * 7, 101, inputs=channels * 5 * 7)
    return net.add("Softmax", net.add("Gemm", flat, weight, net.around(0, 101)), axis=-1)


@network
def resnext(net: Network) -> str:
    """Residual blocks whose 3x3 convolutions have 32 groups, as ResNeXt's, on a picture of 147x203."""
    x = net.conv(net.input("picture", 1, 3, 147, 203), 3, 64, (7, 7), stride=2)
    x = net.add("MaxPool", net.add("Relu", x), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for filters, blocks in ((128, 2), (256, 2), (512, 2)):
        for block in range(blocks):
            stride = 2 if block == 0 and filters > 128 else 1
            y = net.add("Relu", net.normalised(net.conv(x, channels, filters // 2, (1, 1)), filters // 2))
            y = net.conv(y, filters // 2, filters // 2, (3, 3), stride=stride, group=32)
            y = net.add("Relu", net.normalised(y, filters // 2))
            y = net.normalised(net.conv(y, filters // 2, filters, (1, 1), gain=0.5), filters)
            if block == 0:
                x = net.normalised(net.conv(x, channels, filters, (1, 1), stride=stride, gain=1), filters)
            x, channels = net.add("Relu", net.add("Add", y, x)), filters
    pooled = net.add("Flatten", net.add("GlobalAveragePool", x))
    return net.add("Gemm", pooled, net.weight(1000, channels, inputs=channels), net.around(0, 1000), transB=1)


@network
def deeplab(net: Network) -> str:
    """Convolutions of several dilations side by side over one map and its mean, resized: DeepLab's head, 131x163."""
    x, channels = net.input("picture", 1, 3, 131, 163), 3
    for filters, stride in ((32, 2), (48, 1), (96, 2), (96, 1), (160, 2)):
        x, channels = net.add("Relu", net.conv(x, channels, filters, (3, 3), stride=stride)), filters
    for dilation in (2, 4):
        x = net.add("Relu", net.conv(x, channels, channels, (3, 3), dilation=dilation))
    branches = [net.conv(x, channels, 64, (1, 1))]
    branches += [net.conv(x, channels, 64, (3, 3), dilation=dilation) for dilation in (3, 6, 9)]
    mean = net.add("Relu", net.conv(net.add("GlobalAveragePool", x), channels, 64, (1, 1)))
    size = net.add("Slice", net.add("Shape", x), net.constant([2], np.int64), net.constant([4], np.int64))
    target = net.add("Concat", net.constant([1, 64], np.int64), size, axis=0)
    branches.append(net.add("Expand", mean, target))
    joined = net.add("Concat", *(net.add("Relu", branch) for branch in branches), axis=1)
    scores = net.conv(net.add("Relu", net.conv(joined, 320, 96, (1, 1))), 96, 21, (1, 1), gain=1)
    sizes = net.constant([1, 21, 131, 163], np.int64)
    return net.add("Resize", scores, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")


@network
def unet(net: Network) -> str:
    """Down by MaxPool, up by ConvTranspose, both sides joined at each size: U-Net on a picture of 92x148."""
    x, channels = net.input("picture", 1, 1, 92, 148), 1
    kept = []
    for filters in (24, 48, 96):
        for _ in range(2):
            x, channels = net.add("Relu", net.conv(x, channels, filters, (3, 3))), filters
        if filters < 96:
            kept.append((x, filters))
            x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    for side, filters in reversed(kept):
        weight = net.weight(channels, filters, 2, 2, inputs=channels, gain=1)
        up = net.add("ConvTranspose", x, weight, net.around(0, filters), kernel_shape=[2, 2], strides=[2, 2])
        x, channels = net.add("Concat", side, up, axis=1), 2 * filters
        for _ in range(2):
            x, channels = net.add("Relu", net.conv(x, channels, filters, (3, 3))), filters
    return net.add("Sigmoid", net.conv(x, channels, 2, (1, 1), gain=1))


@network
def wavenet(net: Network) -> str:
    """Convolutions over one line of 4,001 samples with dilations up to 128, gated, summed from all depths."""
    x = net.conv(net.input("samples", 1, 1, 4001), 1, 32, (3,))
    total = ""
    for dilation in (1, 2, 4, 8, 16, 32, 64, 128):
        both = net.conv(x, 32, 64, (3,), dilation=dilation, gain=1)
        ends = net.constant([32, 32], np.int64)
        front = net.add("Split", both, ends, axis=1, outputs=2)
        gated = net.add("Mul", net.add("Tanh", front), net.add("Sigmoid", f"{front}.1"))
        seen = net.conv(gated, 32, 48, (1,), gain=1)
        total = net.add("Add", total, seen) if total else seen
        x = net.add("Add", x, net.conv(gated, 32, 32, (1,), gain=1))
    y = net.add("Relu", net.conv(net.add("Relu", total), 48, 64, (1,), gain=0.5))
    return net.add("Softmax", net.conv(y, 64, 64, (1,), gain=1), axis=1)


@network
def gru(net: Network) -> str:
    """Two layers of GRU in both directions over three texts of 77 signs, of unlike lengths."""
    x = net.add("Gather", net.weight(311, 60, inputs=1), net.indices("signs", 311, 77, 3))
    lengths, size = net.constant([77, 61, 30], np.int32), 60
    for _ in range(2):
        weight = net.weight(2, 3 * 88, size, inputs=size, gain=1)
        recurrence = net.weight(2, 3 * 88, 88, inputs=88, gain=1)
        y = net.add(
            "GRU",
            x,
            weight,
            recurrence,
            net.around(0, 2, 6 * 88),
            lengths,
            direction="bidirectional",
            hidden_size=88,
            linear_before_reset=1,
        )
        turned = net.add("Transpose", y, perm=[0, 2, 1, 3])
        x, size = net.add("Reshape", turned, net.constant([77, 3, 176], np.int64)), 176
    return net.add("LogSoftmax", net.linear(x, 176, 43), axis=-1)


@network
def transformer(net: Network) -> str:
    """An encoder of three layers, attention and GELU spelled out, over two texts of 83 words, some masked."""
    words, wide, heads = 83, 180, 6
    x = net.add("Gather", net.weight(997, wide, inputs=1, gain=1), net.indices("words", 997, 2, words))
    x = net.add("Add", x, net.weight(1, words, wide, inputs=1, gain=1))
    absent = np.zeros((2, 1, 1, words))
    absent[1, ..., 67:] = -1e4
    mask, apart = net.constant(absent), net.constant([2, words, heads, wide // heads], np.int64)
    joined = net.constant([2, words, wide], np.int64)

    def normalised(value: str) -> str:
        return net.add("LayerNormalization", value, net.around(1, wide), net.around(0, wide), axis=-1, epsilon=1e-5)

    def by_heads(value: str, *order: int) -> str:
        return net.add("Transpose", net.add("Reshape", net.linear(value, wide, wide), apart), perm=order)

    for _ in range(3):
        keys, queries, values = by_heads(x, 0, 2, 3, 1), by_heads(x, 0, 2, 1, 3), by_heads(x, 0, 2, 1, 3)
        scores = net.add("Div", net.add("MatMul", queries, keys), net.constant(np.sqrt(wide / heads)))
        chosen = net.add("Softmax", net.add("Add", scores, mask), axis=-1)
        mixed = net.add("Transpose", net.add("MatMul", chosen, values), perm=[0, 2, 1, 3])
        x = normalised(net.add("Add", x, net.linear(net.add("Reshape", mixed, joined), wide, wide)))
        inner = net.linear(x, wide, 4 * wide)
        grown = net.add("Add", net.add("Erf", net.add("Div", inner, net.constant(np.sqrt(2)))), net.constant(1))
        gelu = net.add("Mul", net.add("Mul", inner, grown), net.constant(0.5))
        x = normalised(net.add("Add", x, net.linear(gelu, 4 * wide, wide)))
    return net.add("Tanh", net.linear(net.add("ReduceMean", x, axes=[1], keepdims=0), wide, 12))


@network
def efficientnet(net: Network) -> str:
    """Inverted bottlenecks with depthwise 3x3 and 5x5, SiLU and squeeze-and-excitation, on a picture of 109x141."""

    def silu(value: str) -> str:
        return net.add("Mul", value, net.add("Sigmoid", value))

    x, channels = silu(net.conv(net.input("picture", 1, 3, 109, 141), 3, 32, (3, 3), stride=2)), 32
    for filters, kernel, stride, repeats in (
        (16, 3, 1, 1),
        (24, 3, 2, 2),
        (40, 5, 2, 2),
        (80, 3, 2, 2),
        (112, 5, 1, 2),
    ):
        for repeat in range(repeats):
            wide = channels if filters == 16 else 6 * channels
            y = x if wide == channels else silu(net.conv(x, channels, wide, (1, 1)))
            step = stride if repeat == 0 else 1
            y = silu(net.conv(y, wide, wide, (kernel, kernel), stride=step, group=wide, gain=2))
            squeezed = silu(net.conv(net.add("GlobalAveragePool", y), wide, channels // 4, (1, 1)))
            gate = net.add("Sigmoid", net.conv(squeezed, channels // 4, wide, (1, 1)))
            y = net.conv(net.add("Mul", y, gate), wide, filters, (1, 1))
            x, channels = net.add("Add", y, x) if repeat else y, filters
    x = silu(net.conv(x, channels, 640, (1, 1)))
    pooled = net.add("ReduceMean", x, axes=[2, 3], keepdims=0)
    return net.add("Gemm", pooled, net.weight(640, 200, inputs=640), net.around(0, 200))


@network
def quantized_cnn(net: Network) -> str:
    """A statically quantised classifier as quantisers write it: QuantizeLinear and DequantizeLinear around each layer.

    Weights have a scale for each channel; what flows is uint8 behind a Relu and int8 before the first layer.
    """
    zero_point = net.constant(0, np.uint8)

    def through_codes(value: str, scale: float, zero: str) -> str:
        step = net.constant(scale)
        return net.add("DequantizeLinear", net.add("QuantizeLinear", value, step, zero), step, zero)

    def layer(value: str, scale: float, channels: int, filters: int, taps: int, stride: int = 1, group: int = 1) -> str:
        inputs = channels // group * taps * taps
        steps = net.draw.uniform(0.8, 1.2, filters) * np.sqrt(2 / inputs) / 20
        codes, biases = net.codes(filters, channels // group, taps, taps), net.draw.integers(-99, 99, filters)
        zeros = (net.constant(np.zeros(filters), dtype) for dtype in (np.int8, np.int32))
        weight = net.add("DequantizeLinear", codes, net.constant(steps), next(zeros), axis=0)
        bias = net.constant(biases, np.int32)
        bias = net.add("DequantizeLinear", bias, net.constant(scale * steps), next(zeros), axis=0)
        shape = {"kernel_shape": [taps] * 2, "strides": [stride] * 2, "pads": [taps // 2] * 4, "group": group}
        return through_codes(net.add("Relu", net.add("Conv", value, weight, bias, **shape)), 6 / 255, zero_point)

    x = through_codes(net.input("picture", 1, 3, 95, 127), 4 / 127, net.constant(0, np.int8))
    x, channels = layer(x, 4 / 127, 3, 32, 3, stride=2), 32
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2)):
        x = layer(x, 6 / 255, channels, channels, 3, stride=stride, group=channels)
        x, channels = layer(x, 6 / 255, channels, filters, 1), filters
    x = layer(x, 6 / 255, channels, 128, 3)
    pooled = through_codes(net.add("Flatten", net.add("GlobalAveragePool", x)), 3 / 255, zero_point)
    return net.add("Gemm", pooled, net.weight(128, 100, inputs=128), net.around(0, 100))
