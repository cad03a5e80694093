from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import helper, numpy_helper

import onnxeval
import onnxeval.ops.controlflow.branch
import onnxeval.ops.controlflow.loop
import onnxeval.ops.controlflow.scan
from onnxeval.registry import STANDARD
from onnxeval.values import EmptyOptional, OptionalType, Sequence, SequenceType, TensorType

FLOAT, INT64, BOOL = TensorType(np.dtype(np.float32)), TensorType(np.dtype(np.int64)), TensorType(np.dtype(np.bool_))
TRUE, FALSE = np.array(True), np.array(False)
IF, LOOP, SCAN = (STANDARD["", name, 25] for name in ("If", "Loop", "Scan"))
SCAN_8 = STANDARD["", "Scan", 8]


class Graph:
    """A sub-graph written in Python."""

    def __init__(self, function, n_inputs, *output_types):
        self.function, self.n_inputs, self.output_types = function, n_inputs, output_types

    def __call__(self, *inputs):
        assert len(inputs) == self.n_inputs
        results = self.function(*inputs)
        assert len(results) == len(self.output_types)
        return tuple(np.asarray(r) if isinstance(r, np.generic) else r for r in results)


def f32(*values):
    return np.array(values, np.float32)


def assert_equal(got, wanted):
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        np.testing.assert_array_equal(g, w)


# If


@pytest.mark.parametrize("condition", [TRUE, np.array([True]), np.array([[False]])])
def test_if_runs_one_branch(condition):
    def never():
        raise AssertionError

    taken = Graph(lambda: (f32(1), np.array(2)), 0, FLOAT, INT64)
    other = Graph(never, 0, FLOAT, None)
    branches = (taken, other) if condition.item() else (other, taken)
    got = IF(condition, then_branch=branches[0], else_branch=branches[1], n_outputs=2)
    assert_equal(got, (f32(1), np.array(2)))


@pytest.mark.parametrize(
    ("condition", "else_types", "n_outputs", "message"),
    [
        (np.array([True, False]), (FLOAT,), 1, r"condition has shape \[2\]"),
        (np.array([], np.bool_), (FLOAT,), 1, r"condition has shape \[0\]"),
        (TRUE, (FLOAT, FLOAT), 1, "1 and 2 outputs"),
        (TRUE, (FLOAT,), 2, "the node lists 2"),
        (TRUE, (INT64,), 1, "output 0 is float32 from then_branch and int64"),
        (TRUE, (SequenceType(FLOAT),), 1, r"float32 from then_branch and seq\(float32\)"),
    ],
)
def test_if_refusals(condition, else_types, n_outputs, message):
    then_branch = Graph(lambda: (f32(1),), 0, FLOAT)
    else_branch = Graph(lambda: (f32(1),) * len(else_types), 0, *else_types)
    with pytest.raises(ValueError, match=message):
        IF(condition, then_branch=then_branch, else_branch=else_branch, n_outputs=n_outputs)


def test_if_branches_may_give_an_optional_and_what_it_holds():
    empty = Graph(lambda: (EmptyOptional(FLOAT),), 0, OptionalType(FLOAT))
    filled = Graph(lambda: (f32(1),), 0, FLOAT)
    (got,) = IF(FALSE, then_branch=filled, else_branch=empty, n_outputs=1)
    assert got == EmptyOptional(FLOAT)


# Loop: the body adds the iteration, goes on below 10, and gives a row


def sample_body(limit=10, calls=None):
    def run(iteration, condition, total):
        if calls is not None:
            calls.append((iteration, condition))
        total = total + iteration.astype(np.float32) + 1
        return np.array(bool(total < limit)), total, total * 2

    return Graph(run, 3, BOOL, FLOAT, TensorType(np.dtype(np.float32), ()))


def c_loop(trip_count, condition, total, limit):
    """The table of the text, where what ends the loop is `i < trip_count`, `cond`, or both."""
    rows, i = [], 0
    cond = True if condition is None else condition
    while (trip_count is None or i < trip_count) and (cond or (condition is None and trip_count is not None)):
        total += i + 1
        cond = total < limit
        rows.append(total * 2)
        i += 1
    return np.array(total, np.float32), np.array(rows, np.float32)


@pytest.mark.parametrize("trip_count", [None, 0, 1, 3, 6, -2])
@pytest.mark.parametrize("condition", [None, True, False])
@pytest.mark.parametrize("version", [1, 11, 13, 16, 19, 21, 23, 24, 25])
def test_loop_modes(trip_count, condition, version):
    """Without both bounds the text loops for ever: the body's condition ends it."""
    got = STANDARD["", "Loop", version](
        None if trip_count is None else np.array(trip_count, np.int64),
        None if condition is None else np.array(condition),
        np.array(1, np.float32),
        body=sample_body(),
        n_outputs=2,
    )
    total, rows = c_loop(trip_count, condition, 1, 10)
    assert_equal(got, (total, rows))


def test_loop_tells_the_body_where_it_is():
    calls = []
    LOOP(np.array([4]), np.array([True]), np.array(0, np.float32), body=sample_body(calls=calls), n_outputs=2)
    assert [(i.dtype, i.shape, i.item()) for i, _ in calls] == [(np.int64, (), n) for n in range(4)]
    assert [c.item() for _, c in calls] == [True] * 4


def test_loop_of_no_trips_knows_its_rows():
    row_types = [
        TensorType(np.dtype(ml_dtypes.bfloat16), (2, "n", None)),
        TensorType(np.dtype(object), ()),
        TensorType(np.dtype(np.int8), None),
    ]
    body = Graph(None, 2, BOOL, *row_types)
    got = LOOP(np.array(0), None, body=body, n_outputs=3)
    assert [(g.dtype, g.shape) for g in got] == [
        (ml_dtypes.bfloat16, (0, 2, 0, 0)),
        (np.dtype(object), (0,)),
        (np.int8, (0,)),
    ]
    with pytest.raises(ValueError, match="scan output 0 has no rows"):
        LOOP(np.array(0), None, body=Graph(None, 2, BOOL, None), n_outputs=1)


def test_loop_of_no_trips_tries_what_its_rows_are_where_they_are_not_declared():
    seen = []

    def body(i, condition, x):
        seen.append((i.item(), x.tolist()))
        return condition, x + 1, x.astype(np.int8), x.reshape(1, 2)

    graph = Graph(body, 3, BOOL, None, None, TensorType(np.dtype("f4"), (1, "n")))
    got = LOOP(np.array(0), None, f32(1, 2), body=graph, n_outputs=3)
    assert_equal(got, (f32(1, 2), np.empty((0, 2), np.int8), np.empty((0, 1, 0), np.float32)))
    assert seen == [(0, [1, 2])]


def test_loop_carries_may_grow_and_be_sequences_and_optionals():
    def run(iteration, condition, x, items, option):
        return condition, np.append(x, f32(iteration)), Sequence([*items, x]), x

    body = Graph(run, 5, BOOL, FLOAT, SequenceType(FLOAT), OptionalType(FLOAT))
    x, items, option = LOOP(np.array(3), None, f32(), Sequence([], FLOAT), EmptyOptional(FLOAT), body=body, n_outputs=3)
    np.testing.assert_array_equal(x, [0, 1, 2])
    assert [len(item) for item in items] == [0, 1, 2]
    np.testing.assert_array_equal(option, [0, 1])


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        (f32(1), np.array([1]), r"carried value 0 changes from float32\[1\] to int64\[1\]"),
        (Sequence([], FLOAT), Sequence([], INT64), "carried value 0 changes"),
        (f32(1), Sequence([f32(1)]), "carried value 0 changes"),
        (EmptyOptional(FLOAT), np.array([1]), "carried value 0 changes"),
    ],
)
def test_loop_carries_keep_their_type(first, then, message):
    body = Graph(lambda i, c, x: (c, then), 3, BOOL, None)
    with pytest.raises(ValueError, match=message):
        LOOP(np.array(2), None, first, body=body, n_outputs=1)


@pytest.mark.parametrize(
    ("row_of", "error", "message"),
    [
        (lambda i: np.zeros(i + 1), ValueError, r"scan output 0 changes from float64\[1\] to float64\[2\]"),
        (lambda i: np.zeros(1, (np.int8, np.int16)[i]), ValueError, r"changes from int8\[1\] to int16\[1\]"),
        (lambda i: Sequence([f32(1)]), TypeError, "scan output 0 is sequence of 1 float32"),
    ],
)
def test_loop_rows_are_alike(row_of, error, message):
    body = Graph(lambda i, c: (c, row_of(i.item())), 2, BOOL, None)
    with pytest.raises(error, match=message):
        LOOP(np.array(2), None, body=body, n_outputs=1)


@pytest.mark.parametrize(
    ("trip_count", "condition", "body", "n_outputs", "message"),
    [
        (np.array([1, 2]), None, sample_body(), 2, r"trip count has shape \[2\]"),
        (None, np.array([True, True]), sample_body(), 2, r"condition has shape \[2\]"),
        (np.array(1), None, Graph(None, 2, BOOL, FLOAT), 1, "the body has 2 inputs and 2 outputs"),
        (np.array(1), None, Graph(None, 3, BOOL), 1, "the body has 3 inputs and 1 outputs"),
        (np.array(1), None, sample_body(), 3, "the node lists 3 outputs, its body gives 2"),
    ],
)
def test_loop_refusals(trip_count, condition, body, n_outputs, message):
    with pytest.raises(ValueError, match=message):
        LOOP(trip_count, condition, np.array(0, np.float32), body=body, n_outputs=n_outputs)


def test_loop_of_an_old_model_whose_body_lists_its_initializers_as_inputs():
    """IR version 3 wants every initializer among the inputs; the loop gives the body none of them."""

    def scalar(name, kind):
        return helper.make_tensor_value_info(name, kind, [])

    def pair(name, kind):
        return helper.make_tensor_value_info(name, kind, [2])

    body = helper.make_graph(
        [helper.make_node("Add", ["v", "one"], ["sum"]), helper.make_node("Less", ["sum", "limit"], ["less"])],
        "body",
        [scalar("i", 7), scalar("c", 9), pair("v", 1), pair("one", 1), scalar("limit", 1)],
        [pair("less", 9), pair("sum", 1)],
        [numpy_helper.from_array(f32(1, 1), "one"), numpy_helper.from_array(np.array(9, np.float32), "limit")],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)],
        "g",
        [scalar("m", 7), pair("x", 1)],
        [pair("y", 1)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=3)
    outputs = onnxeval.load(model).run({"m": np.array(3), "x": f32(0, 1)})
    np.testing.assert_array_equal(outputs["y"], [3, 4])


# Scan: the body keeps a running sum and gives it with the element itself


def running_sum(shape=(2,)):
    row = TensorType(np.dtype(np.float32), shape)
    return Graph(lambda s, x: (s + x, s + x, x), 2, FLOAT, row, row)


def scan(*inputs, body, n=1, version=25, **attributes):
    names = ("scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions")
    given = dict.fromkeys(names) | attributes
    return STANDARD["", "Scan", version](*inputs, body=body, num_scan_inputs=n, **given)


@pytest.mark.parametrize("version", [9, 11, 16, 19, 21, 23, 24, 25])
def test_scan_sums(version):
    x = f32(1, 2, 3, 4, 5, 6).reshape(3, 2)
    assert_equal(
        scan(f32(10, 20), x, body=running_sum(), version=version),
        (f32(19, 32), f32(11, 22, 14, 26, 19, 32).reshape(3, 2), x),
    )


@pytest.mark.parametrize("axis", [1, -1])
def test_scan_axes_and_directions(axis):
    x = f32(1, 2, 3, 4, 5, 6).reshape(2, 3)
    final, sums, elements = scan(
        f32(0, 0),
        x,
        body=running_sum(),
        scan_input_axes=(axis,),
        scan_input_directions=(1,),
        scan_output_axes=(axis, 0),
        scan_output_directions=(0, 1),
    )
    np.testing.assert_array_equal(final, [6, 15])
    np.testing.assert_array_equal(sums, [[3, 5, 6], [6, 11, 15]])  # appended: from the last element on
    np.testing.assert_array_equal(elements, x.T)  # prepended: in the order of the input


def test_scan_zips_its_inputs_and_needs_no_state():
    body = Graph(lambda x, y: (x * 10 + y,), 2, INT64)
    x = np.arange(3)
    (got,) = scan(x, x, body=body, n=2, scan_input_directions=(0, 1))
    np.testing.assert_array_equal(got, [2, 11, 20])


def test_scan_without_outputs():
    body = Graph(lambda s, x: (s + x,), 2, FLOAT)
    assert_equal(scan(np.array(0, np.float32), f32(1, 2, 3), body=body), (np.array(6, np.float32),))


def test_scan_of_length_zero():
    got = scan(f32(7, 8), np.empty((0, 2), np.float32), body=running_sum(), scan_output_axes=(-1, 0))
    assert_equal(got, (f32(7, 8), np.empty((2, 0), np.float32), np.empty((0, 2), np.float32)))
    untyped = Graph(lambda state, x: (state, x.astype(np.int8)), 2, None, None)
    got = scan(f32(7, 8), np.empty((0, 2), np.float32), body=untyped)
    assert_equal(got, (f32(7, 8), np.empty((0, 2), np.int8)))


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ((f32(0, 0), f32(1).reshape(1, 1)), {"n": 3}, "num_scan_inputs is 3, 2 inputs"),
        ((f32(0, 0), f32(1).reshape(1, 1)), {"n": 0}, "num_scan_inputs is 0"),
        ((f32(0, 0), f32(1)), {"scan_input_axes": (1,)}, "scan_input_axes 1 is outside"),
        ((f32(0, 0), f32(1)), {"scan_input_axes": (0, 0)}, r"scan_input_axes \[0, 0\] has 2 elements, expected 1"),
        ((f32(0, 0), f32(1)), {"scan_input_directions": (2,)}, "elements other than 0 and 1"),
        (
            (f32(0, 0), f32(1)),
            {"scan_output_directions": (1,)},
            "scan_output_directions .1. has 1 elements, expected 2",
        ),
        ((f32(0, 0), f32(1, 2).reshape(1, 2)), {"scan_output_axes": (0, 2)}, "axis 2 is outside"),
        ((f32(0), f32(1, 2).reshape(1, 2)), {}, r"state 0 changes from float32\[1\] to float32\[2\]"),
        ((np.zeros(2), f32(1, 2).reshape(1, 2).astype(int)), {"body": 1}, "state 0 changes"),
    ],
)
def test_scan_refusals(inputs, attributes, message):
    body = Graph(lambda s, x: (x, x), 2, None, None) if attributes.pop("body", 0) else running_sum()
    with pytest.raises(ValueError, match=message):
        scan(*inputs, body=body, **attributes)


def test_scan_inputs_are_of_one_length():
    body = Graph(lambda x, y: (x,), 2, FLOAT)
    with pytest.raises(ValueError, match=r"lengths \[2, 3\]"):
        scan(f32(1, 2), f32(1, 2, 3), body=body, n=2)


def test_scan_checks_its_body():
    with pytest.raises(ValueError, match="the body has 2 inputs and 3 outputs"):
        scan(f32(0, 0), f32(0, 0), f32(1), body=running_sum())


# Scan-8


def scan_8(lengths, *inputs, body, n=1, directions=None):
    return SCAN_8(lengths, *inputs, body=body, num_scan_inputs=n, directions=directions)


@pytest.mark.parametrize("lengths", [None, [3, 3], [1, 2], [0, 3], [0, 0]])
@pytest.mark.parametrize("direction", [0, 1])
def test_scan_8(lengths, direction):
    """The pseudo-code of the text, for the meaningful values; backwards starts at an item's own end."""
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    start = f32(10, 20, 30, 40).reshape(2, 2)
    final, sums, elements = scan_8(
        None if lengths is None else np.array(lengths), start, x, body=running_sum(), directions=(direction,)
    )
    assert sums.shape == elements.shape == x.shape
    for item in range(2):
        length = 3 if lengths is None else lengths[item]
        state = start[item]
        for t in range(length):
            element = x[item, length - 1 - t if direction else t]
            state = state + element
            np.testing.assert_array_equal(sums[item, t], state)
            np.testing.assert_array_equal(elements[item, t], element)
        np.testing.assert_array_equal(final[item], state)
        assert not sums[item, length:].any()


def test_scan_8_shapes_of_what_was_not_computed():
    unknown = TensorType(np.dtype(object), None)
    body = Graph(lambda x: (x,), 1, unknown)
    words = np.array([["a", "b"], ["c", "d"]], object).reshape(2, 2, 1)
    (got,) = scan_8(np.array([0, 1]), words, body=body)
    np.testing.assert_array_equal(got, np.array([["", ""], ["c", ""]], object).reshape(2, 2, 1))
    (got,) = scan_8(None, np.empty((0, 4, 2), np.float32), body=Graph(None, 1, TensorType(np.dtype("f4"), (2,))))
    assert got.shape == (0, 4, 2)


@pytest.mark.parametrize(
    ("lengths", "shapes", "message"),
    [
        ([4, 1], [(2, 2), (2, 3, 2)], r"sequence_lens \[4, 1\] leave \[0, 3\]"),
        ([1], [(2, 2), (2, 3, 2)], r"sequence_lens has shape \[1\], expected \[2\]"),
        ([1, 1], [(3, 2), (2, 3, 2)], "has no batch axis of 2 items"),
        ([1, 1], [(2, 2), (2,)], "need a batch and a sequence axis"),
    ],
)
def test_scan_8_refusals(lengths, shapes, message):
    with pytest.raises(ValueError, match=message):
        scan_8(np.array(lengths), *(np.zeros(shape, np.float32) for shape in shapes), body=running_sum())
    with pytest.raises(ValueError, match="expected them equal"):
        scan_8(None, np.zeros((2, 3)), np.zeros((2, 4)), body=Graph(None, 2, FLOAT), n=2)
