"""DepthToSpace and SpaceToDepth against loops over pixels, written from the text."""

import numpy as np
import onnx
import pytest

import onnxeval
from onnxeval.dtypes import BFLOAT16, STRING
from onnxeval.ops.tensor.depth_space import depth_to_space, space_to_depth


def channel_of(mode: str, depth: int, depths: int, row: int, column: int, blocksize: int) -> int:
    """Where a block's pixel (row, column) of one depth lies on the channel axis: DCR counts blocks outside depths."""
    block = row * blocksize + column
    return block * depths + depth if mode == "DCR" else depth * blocksize**2 + block


def pixels(shape: tuple[int, ...], blocksize: int, mode: str):
    """(index in the depth form, index in the space form) of every element."""
    batch, channels, height, width = shape
    depths = channels // blocksize**2
    for n in range(batch):
        for depth in range(depths):
            for h in range(height * blocksize):
                for w in range(width * blocksize):
                    channel = channel_of(mode, depth, depths, h % blocksize, w % blocksize, blocksize)
                    yield (n, channel, h // blocksize, w // blocksize), (n, depth, h, w)


SHAPES = [
    ((1, 4, 1, 1), 2),
    ((2, 8, 2, 3), 2),
    ((1, 27, 2, 2), 3),
    ((2, 3, 2, 2), 1),
    ((0, 4, 2, 2), 2),
    ((1, 4, 0, 2), 2),
]


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize(("shape", "blocksize"), SHAPES)
def test_every_pixel_goes_where_the_text_says(shape: tuple[int, ...], blocksize: int, mode: str) -> None:
    x = np.arange(np.prod(shape)).reshape(shape)
    batch, channels, height, width = shape
    wanted = np.full((batch, channels // blocksize**2, height * blocksize, width * blocksize), -1)
    for deep, wide in pixels(shape, blocksize, mode):
        wanted[wide] = x[deep]
    got = depth_to_space(x, blocksize=blocksize, mode=mode)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(space_to_depth(wanted, blocksize=blocksize, mode=mode), x)


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16, np.int8, np.uint64, np.complex64, np.bool_, STRING], ids=str)
def test_elements_are_moved_whatever_their_type(dtype) -> None:
    numbers = np.arange(16).reshape(1, 4, 2, 2)
    x = numbers.astype(str).astype(object) if dtype == STRING else numbers.astype(dtype)
    got = depth_to_space(x, blocksize=2, mode="CRD")
    assert got.dtype == dtype
    assert got.tolist() == x.ravel()[depth_to_space(numbers, blocksize=2, mode="CRD")].tolist()


def one_node(op_type: str, opset: int, attributes: str) -> onnxeval.Model:
    return onnxeval.load(
        onnx.parser.parse_model(
            f'<ir_version: 10, opset_import: ["" : {opset}]>'
            f"g (float[N, C, H, W] x) => (float[N, D, I, J] y) {{ y = {op_type} <{attributes}> (x) }}"
        )
    )


@pytest.mark.parametrize("opset", [1, 10, 11, 13, 27, 28])
def test_depth_to_space_at_every_version(opset: int) -> None:
    """Before 11 there is no mode, and the order is DCR."""
    x = np.arange(24, dtype=np.float32).reshape(1, 12, 1, 2)
    modes = ["DCR"] if opset < 11 else ["DCR", "CRD"]
    for mode in modes:
        attributes = "blocksize = 2" if opset < 11 else f'blocksize = 2, mode = "{mode}"'
        wanted = np.empty((1, 3, 2, 4), np.float32)
        for deep, wide in pixels(x.shape, 2, mode):
            wanted[wide] = x[deep]
        np.testing.assert_array_equal(one_node("DepthToSpace", opset, attributes).run({"x": x})["y"], wanted)
    default = one_node("DepthToSpace", opset, "blocksize = 2").run({"x": x})["y"]
    np.testing.assert_array_equal(default, depth_to_space(x, blocksize=2, mode="DCR"))


@pytest.mark.parametrize("opset", [11, 13])
def test_onnxruntime_agrees(opset: int) -> None:
    runtime = pytest.importorskip("onnxruntime")
    x = np.arange(48, dtype=np.float32).reshape(2, 8, 1, 3)
    for mode in ("DCR", "CRD"):
        model = one_node("DepthToSpace", opset, f'blocksize = 2, mode = "{mode}"')
        session = runtime.InferenceSession(model.proto.SerializeToString(), providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(model.run({"x": x})["y"], session.run(None, {"x": x})[0])


@pytest.mark.parametrize(
    ("kernel", "shape", "attributes", "message"),
    [
        (depth_to_space, (1, 6, 1, 1), {"blocksize": 2}, "channels 6 is not a multiple of blocksize² = 4"),
        (depth_to_space, (4, 1, 1), {"blocksize": 2}, "rank 3, expected 4"),
        (depth_to_space, (1, 4, 1, 1), {"blocksize": 0}, "blocksize 0 is not positive"),
        (depth_to_space, (1, 4, 1, 1), {"blocksize": 2, "mode": "RCD"}, "mode 'RCD' is neither"),
        (space_to_depth, (1, 1, 3, 2), {"blocksize": 2}, "height 3 is not a multiple of blocksize 2"),
        (space_to_depth, (1, 1, 2, 5), {"blocksize": 2}, "width 5 is not a multiple of blocksize 2"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_numbers(kernel, shape, attributes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernel(np.zeros(shape), **attributes)
