"""Memory that results share: never two at a time, and all of it comes back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import onnxeval
from onnxeval.arena import Arena, empty
from onnxeval.fast.engine import native


@settings(deadline=None)
@given(data=st.data())
def test_blocks_are_apart_and_come_back(data):
    arena = Arena(4096)
    live = {}
    for turn in range(data.draw(st.integers(1, 40))):
        if live and data.draw(st.booleans()):
            number = data.draw(st.sampled_from(sorted(live)))
            block, array = live.pop(number)
            assert (array == number % 128).all()
            arena.take_back(block)
            continue
        shape = tuple(data.draw(st.lists(st.integers(0, 12), max_size=3)))
        dtype = data.draw(st.sampled_from([np.int8, np.float32, np.complex128]))
        with arena:
            array = empty(shape, dtype)
        assert (array.shape, array.dtype) == (shape, dtype)
        array[...] = turn % 128
        block = arena.block_of(array)
        assert block is None or array.ctypes.data % 64 == 0
        if block is not None:
            live[turn] = block, array
    assert all((array == number % 128).all() for number, (_, array) in live.items())
    for block, _ in live.values():
        arena.take_back(block)
    with arena:
        assert arena.block_of(empty((4096,), np.int8)) is not None


def test_arrays_without_an_arena_have_memory_of_their_own():
    arena = Arena(64)
    with arena:
        within, beyond = empty((16,), np.float32), empty((16,), np.float32)
    assert arena.block_of(within) is not None
    assert arena.block_of(beyond) is arena.block_of(empty((4,), np.float32)) is None
    assert beyond.base is None


SIZE = 8


@st.composite
def graphs(draw):
    """Square matrices, each made of those before it; some by steps whose results are views."""
    nodes, names = [], ["x"]
    for place in range(draw(st.integers(3, 14))):
        name = f"v{place}"
        a, b = (draw(st.sampled_from(names[-5:])) for _ in range(2))
        operator, inputs = draw(
            st.sampled_from(
                [
                    ("Relu", [a]),
                    ("Add", [a, b]),
                    ("Sub", [a, b]),
                    ("Max", [a, b]),
                    ("MatMul", [a, "w"]),
                    ("Softmax", [a]),
                    ("Transpose", [a]),
                    ("Reshape", [a, "shape"]),
                    ("Identity", [a]),
                    ("CumSum", [a, "axis"]),
                    ("ReduceMax", [a]),
                    ("NonZero", [a]),
                ]
            )
        )
        if operator == "NonZero":  # runs in NumPy, and its shape depends on numbers: the count goes on
            nodes += [
                helper.make_node("NonZero", [a], [f"{name}n"]),
                helper.make_node("Shape", [f"{name}n"], [f"{name}s"], start=1),
                helper.make_node("Cast", [f"{name}s"], [f"{name}c"], to=1),
                helper.make_node("Add", [a, f"{name}c"], [name]),
            ]
        elif operator == "ReduceMax":  # a small value, which broadcasts where it is read
            nodes += [
                helper.make_node("ReduceMax", [a], [f"{name}m"]),
                helper.make_node("Sub", [a, f"{name}m"], [name]),
            ]
        else:
            nodes.append(helper.make_node(operator, inputs, [name]))
        names.append(name)
    outputs = draw(st.lists(st.sampled_from(names[1:]), min_size=1, max_size=3, unique=True))
    graph = helper.make_graph(
        nodes,
        "drawn",
        [helper.make_tensor_value_info("x", 1, [SIZE, SIZE])],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs],
        [
            numpy_helper.from_array(np.eye(SIZE, k=1, dtype=np.float32), "w"),
            numpy_helper.from_array(np.array([SIZE, -1]), "shape"),
            numpy_helper.from_array(np.array(1), "axis"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.skipif(native() is None, reason="the compiled kernels are not built, or turned off")
@settings(max_examples=80, deadline=None)
@given(proto=graphs(), seed=st.integers(0, 2**16))
def test_values_that_share_memory_are_right_in_every_run(proto, seed):
    model = onnxeval.load(proto)
    rng = np.random.default_rng(seed)
    for _ in range(8):
        feeds = {"x": rng.integers(-3, 4, (SIZE, SIZE)).astype(np.float32)}
        got = model.run(feeds)
        for name, expected in model.run(feeds, reference=True).items():
            np.testing.assert_allclose(got[name], expected, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.skipif(native() is None, reason="the compiled kernels are not built, or turned off")
def test_memory_is_for_what_is_needed_at_a_time():
    """A hundred values of a quarter of a megabyte are replayed: two of them are alive at once."""
    nodes = [
        helper.make_node("Softmax" if place % 2 else "Neg", [f"v{place}"], [f"v{place + 1}"]) for place in range(100)
    ]
    graph = helper.make_graph(
        nodes,
        "long",
        [helper.make_tensor_value_info("v0", 1, [256, 256])],
        [helper.make_tensor_value_info("v100", 1, None)],
    )
    model = onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))
    rng = np.random.default_rng(0)
    for _ in range(6):
        feeds = {"v0": rng.standard_normal((256, 256)).astype(np.float32)}
        expected = model.run(feeds, reference=True)["v100"]
        np.testing.assert_allclose(model.run(feeds)["v100"], expected, rtol=1e-5)
    (replay,) = [kept.replay for each in model._adaptives.values() for kept in each._kinds.values() if kept.replay]
    made = [value for value in replay._values if isinstance(value, np.ndarray) and value.shape == (256, 256)]
    assert len(made) > 20
    assert len({value.ctypes.data for value in made}) < 6
