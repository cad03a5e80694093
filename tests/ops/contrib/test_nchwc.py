"""Channels in blocks: the order of elements, which size the blocks have, and the operators on them."""

import itertools
import platform

import numpy as np
import pytest
from ops.contrib.codes import F32
from ops.contrib.nodes import assert_agree, ours

import onnxeval
from onnxeval.ops._neighbours import Neighbours
from onnxeval.ops.contrib import _blocks

DOMAIN = "com.microsoft.nchwc"


def draw(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def blocked(x, block):
    """(N, C, H, W) in blocks, element by element."""
    batch, channels, height, width = x.shape
    laid = np.empty(x.shape, x.dtype).reshape(batch, channels // block, height, width, block)
    for n, c, h, w in np.ndindex(*x.shape):
        laid[n, c // block, h, w, c % block] = x[n, c, h, w]
    return laid.reshape(x.shape)


def blocked_weights(w, block):
    """(M, C, kH, kW) in the order for blocks, element by element."""
    maps, channels, *kernel = w.shape
    inner = block if channels >= block else 1
    laid = np.empty(w.size, w.dtype).reshape(maps // block, channels // inner, *kernel, inner, block)
    for m, c, i, j in np.ndindex(*w.shape):
        laid[m // block, c // inner, i, j, c % inner, m % block] = w[m, c, i, j]
    return laid.reshape(w.shape)


@pytest.fixture(params=[8, 16])
def block(request, monkeypatch):
    """Blocks of either size, as on a machine that has them."""
    monkeypatch.setattr(_blocks, "_size_here", lambda: request.param)
    return request.param


def untrained(shape, seed=0):
    """Weights that do not tell the size of blocks."""
    return draw(shape, seed)


def trained(shape, seed=0):
    """Weights whose kernels, channels and places in a kernel differ in size."""
    spread = np.random.default_rng(seed + 1)
    factors = [np.exp(spread.standard_normal(size)) for size in (*shape[:2], int(np.prod(shape[2:])))]
    sizes = factors[0][:, None, None] * factors[1][:, None] * factors[2]
    return (draw(shape, seed) * sizes.reshape(shape)).astype(F32)


def size_for(*weights):
    return _blocks.block_size(Neighbours(tuple(("Conv", (None, w)) for w in weights)))


class TestSize:
    @pytest.mark.parametrize("size", [8, 16])
    @pytest.mark.parametrize("shape", [(64, 64, 3, 3), (32, 3, 7, 7), (128, 64, 1, 1), (256, 1, 5, 5), (64, 128, 5, 1)])
    def test_of_trained_weights(self, size, shape, monkeypatch) -> None:
        monkeypatch.setattr(_blocks, "_size_here", lambda: pytest.fail("the weights tell"))
        for seed in range(5):
            assert size_for(blocked_weights(trained(shape, seed), size)) == size

    @pytest.mark.parametrize(("size", "shape"), [(8, (24, 16, 3, 3)), (8, (16, 24, 1, 1)), (16, (16, 12, 3, 3))])
    def test_by_shapes(self, size, shape, monkeypatch) -> None:
        monkeypatch.setattr(_blocks, "_size_here", lambda: pytest.fail("the shape tells"))
        assert size_for(draw((32, 32, 1, 1)), draw(shape)) == size

    @pytest.mark.parametrize("size", [8, 16])
    def test_by_the_zeros_that_fill_up_a_block(self, size, monkeypatch) -> None:
        monkeypatch.setattr(_blocks, "_size_here", lambda: pytest.fail("the zeros tell"))
        w = untrained((32, 16, 3, 3))
        w[32 - size // 2 :] = 0
        assert size_for(blocked_weights(w, size)) == size

    def test_where_nothing_tells(self, block) -> None:
        assert size_for() == block
        assert size_for(untrained((64, 64, 3, 3)), np.ones((32, 3, 3, 3), F32), untrained((32, 1, 3, 3))) == block
        assert size_for(None) == block

    def test_of_this_machine(self) -> None:
        assert _blocks._size_here() in (8, 16)
        if platform.machine() == "aarch64":
            assert _blocks._size_here() == 16


def node(op_type, x, **attributes):
    return ours(op_type, [x], domain=DOMAIN, **attributes)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("channels", [32, 20])
def test_reorder(block, channels, last) -> None:
    x = draw((2, channels, 3, 2))
    full = np.zeros((2, -(-channels // block) * block, 3, 2), F32)
    full[:, :channels] = x
    given = node("ReorderInput", np.moveaxis(x, 1, -1).copy() if last else x, channels_last=last)
    np.testing.assert_array_equal(given, blocked(full, block))
    back = node("ReorderOutput", given, channels=channels, channels_last=last)
    np.testing.assert_array_equal(back, np.moveaxis(x, 1, -1) if last else x)


def test_reorder_refuses(block) -> None:
    with pytest.raises(onnxeval.NodeError, match=rf"12 channels, which are no blocks of {block}"):
        node("ReorderOutput", draw((1, 12, 2, 2)), channels=12)
    with pytest.raises(onnxeval.NodeError, match=rf"16 channels do not take the 32 of blocks of {block}"):
        node("ReorderOutput", draw((1, 32, 2, 2)), channels=16)
    with pytest.raises(onnxeval.NodeError, match="expected rank 4"):
        node("ReorderInput", draw((1, 32, 2)))


def convolution(x, w, group, stride, pad):
    """Loops over maps, windows and taps."""
    sizes = [(size + 2 * pad - kernel) // stride + 1 for size, kernel in zip(x.shape[2:], w.shape[2:], strict=True)]
    y = np.zeros((len(x), len(w), *sizes))
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    for m, row, column in itertools.product(range(len(w)), *map(range, sizes)):
        first = m // (len(w) // group) * w.shape[1]
        corner = (row * stride, column * stride)
        seen = padded[:, first : first + w.shape[1], corner[0] :, corner[1] :][..., : w.shape[2], : w.shape[3]]
        y[:, m, row, column] = (seen * w[m]).sum(axis=(1, 2, 3))
    return y


CONVS = {
    "many channels": ((2, 32, 5, 4), (16, 32, 3, 3), {"pads": [1, 1, 1, 1]}),
    "one place": ((1, 16, 5, 4), (48, 16, 1, 1), {"strides": [2, 2]}),
    "few channels": ((1, 3, 6, 6), (32, 3, 3, 3), {}),
    "one channel": ((1, 1, 6, 6), (16, 1, 3, 3), {}),
    "single channels": ((1, 32, 5, 5), (32, 1, 3, 3), {"group": 32, "pads": [1, 1, 1, 1]}),
    "groups": ((1, 32, 3, 3), (32, 16, 3, 3), {"group": 2}),
}


def conv_inputs(name, block, weights=untrained):
    shape, kernel, attributes = CONVS[name]
    x, w = draw(shape), weights(kernel, 1)
    numbers = convolution(
        x, w, attributes.get("group", 1), attributes.get("strides", [1])[0], attributes.get("pads", [0])[0]
    )
    return x if shape[1] < block else blocked(x, block), blocked_weights(w, block), draw(kernel[:1], 2), numbers


@pytest.mark.parametrize("name", CONVS)
def test_conv(block, name) -> None:
    x, w, b, numbers = conv_inputs(name, block)
    given = ours("Conv", [x, w, b], domain=DOMAIN, constants=(1, 2), **CONVS[name][2])
    np.testing.assert_allclose(given, blocked(numbers + b[:, None, None], block), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [8, 16])
def test_conv_in_blocks_that_the_weights_tell(size) -> None:
    x, w, b, numbers = conv_inputs("many channels", size, trained)
    given = ours("Conv", [x, w, b], domain=DOMAIN, constants=(1,), pads=[1, 1, 1, 1])
    np.testing.assert_allclose(given, blocked(numbers + b[:, None, None], size), rtol=1e-3, atol=1e-3)


def test_conv_with_a_sum_and_an_activation(block) -> None:
    x, w, b, numbers = conv_inputs("many channels", block)
    z = draw(numbers.shape, 3)
    given = ours(
        "Conv",
        [x, w, b, blocked(z, block)],
        domain=DOMAIN,
        constants=(1,),
        pads=[1, 1, 1, 1],
        activation="LeakyRelu",
        activation_params=[0.25],
    )
    total = numbers + b[:, None, None] + z
    np.testing.assert_allclose(given, blocked(np.where(total < 0, total / 4, total), block), rtol=1e-4, atol=1e-4)
    with pytest.raises(onnxeval.NodeError, match="Z has shape"):
        ours("Conv", [x, w, None, z[:1]], domain=DOMAIN, constants=(1,), pads=[1, 1, 1, 1])


def test_pools(block) -> None:
    x = draw((2, 32, 4, 6))
    laid = blocked(x, block)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), axis=(2, 3))[:, :, ::2, ::3]
    how = {"kernel_shape": [2, 3], "strides": [2, 3]}
    np.testing.assert_array_equal(node("MaxPool", laid, **how), blocked(windows.max(axis=(-2, -1)), block))
    np.testing.assert_allclose(
        node("AveragePool", laid, **how), blocked(windows.mean(axis=(-2, -1)), block), rtol=1e-5, atol=1e-6
    )
    whole = {"axis": (2, 3), "keepdims": True}
    np.testing.assert_array_equal(node("GlobalMaxPool", laid), blocked(x.max(**whole), block))
    np.testing.assert_allclose(node("GlobalAveragePool", laid), blocked(x.mean(**whole), block), rtol=1e-4, atol=1e-6)


def test_upsample(block) -> None:
    x = draw((1, 16, 2, 3))
    repeated = x.repeat(2, axis=2).repeat(3, axis=3)
    np.testing.assert_array_equal(node("Upsample", blocked(x, block), scales=[1, 1, 2, 3]), blocked(repeated, block))
    tall = node("Upsample", blocked(x, block), scales=[1, 1, 2, 1], mode="linear")
    mean = (x[:, :, 0] + x[:, :, 1]) / 2
    wanted = np.stack([x[:, :, 0], mean, x[:, :, 1], x[:, :, 1]], axis=2)
    np.testing.assert_allclose(tall, blocked(wanted, block), rtol=1e-6)
    with pytest.raises(onnxeval.NodeError, match="are not 1, 1 and two positive"):
        node("Upsample", blocked(x, block), scales=[1, 2, 2, 1])
    with pytest.raises(onnxeval.NodeError, match="'nearest' has no coordinate_transformation_mode 'half_pixel'"):
        node("Upsample", blocked(x, block), scales=[1, 1, 2, 1], coordinate_transformation_mode="half_pixel")


WINDOWS = [
    {"kernel_shape": [3, 3]},
    {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2, 2], "dilations": [2, 2]},
]
SINGLE = [
    ("ReorderInput", {}),
    ("ReorderOutput", {"channels": 20}),
    ("ReorderOutput", {"channels": 32, "channels_last": 1}),
    ("GlobalMaxPool", {}),
    ("GlobalAveragePool", {}),
    *(("MaxPool", attributes) for attributes in WINDOWS),
    *(("AveragePool", attributes) for attributes in WINDOWS),
    *(("AveragePool", {**attributes, "count_include_pad": 1}) for attributes in WINDOWS),
    ("Upsample", {"scales": [1, 1, 2, 3]}),
    *(
        ("Upsample", {"scales": [1, 1, 2, 3], "mode": "linear", "coordinate_transformation_mode": mode})
        for mode in ("asymmetric", "half_pixel", "align_corners")
    ),
]


@pytest.mark.parametrize(("op_type", "attributes"), SINGLE)
def test_as_onnxruntime(op_type, attributes) -> None:
    if attributes.get("channels") == 20 and _blocks._size_here() == 8:
        attributes = {"channels": 28}
    assert_agree(op_type, [draw((2, 32, 7, 5))], domain=DOMAIN, **attributes)


@pytest.mark.parametrize(("activation", "parameters"), [("", []), ("Relu", []), ("HardSigmoid", [0.1, 0.4])])
@pytest.mark.parametrize("name", CONVS)
def test_conv_as_onnxruntime(name, activation, parameters) -> None:
    shape, kernel, attributes = CONVS[name]
    assert_agree(
        "Conv",
        [draw(shape), draw(kernel, 1), draw(kernel[:1], 2)],
        domain=DOMAIN,
        constants=(1, 2),
        activation=activation or None,
        activation_params=parameters or None,
        rtol=1e-4,
        atol=1e-4,
        **attributes,
    )
