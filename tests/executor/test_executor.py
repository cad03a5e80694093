"""Running plans: errors with their place, lifetimes, sub-graphs, limits, injected parameters."""

import gc
import weakref

import numpy as np
import onnx
import pytest

import onnxeval
from onnxeval import executor
from onnxeval.limits import Limits, Run
from onnxeval.model import load
from onnxeval.plan import Plan, Step
from onnxeval.values import Sequence


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


HEADER = '<ir_version: 10, opset_import: ["" : 21]>'


def test_an_error_says_which_node_in_which_graph_with_which_inputs() -> None:
    model = parse(
        f"""{HEADER}
        g (float[N] a, bool c) => (float[M] y) {{
            b = Constant <value = float[4] {{1, 2, 3, 4}}> ()
            [choose] y = If (c) <
                then_branch = t () => (float[M] r) {{ [grow] r = Add (a, b) }},
                else_branch = e () => (float[M] r) {{ r = Identity (a) }}
            >
        }}"""
    )
    with pytest.raises(onnxeval.NodeError) as raised:
        load(model).run({"a": np.ones(3, np.float32), "c": np.array(True)})
    error = raised.value
    assert error.path == ("choose (If-21)", "grow (Add-14)")
    assert error.inputs == ("a float32[3]", "b float32[4]")
    assert isinstance(error.cause, ValueError)
    assert str(error).splitlines()[0] == "choose (If-21) > grow (Add-14)"
    assert error.exit_code == 6


def test_a_type_that_the_version_does_not_allow_is_refused_before_the_kernel() -> None:
    text = """<ir_version: 8, opset_import: ["" : 11]>
        g (int8[1, 1, 4] x) => (int8[1, 1, 2] y) { y = MaxPool <kernel_shape = [2], strides = [2]> (x) }"""
    x = np.array([[[1, 2, 3, 4]]], np.int8)
    with pytest.raises(onnxeval.NodeError, match="int8, allowed: float16, float32, float64"):
        load(parse(text)).run({"x": x})
    newer = load(parse(text.replace("11]", "12]"))).run({"x": x})
    assert newer["y"].tolist() == [[[2, 4]]]


def test_type_variables_bind_once() -> None:
    model = parse(f"{HEADER} g (float[2] a, double[2] b) => (float[2] y) {{ y = Add (a, b) }}")
    with pytest.raises(onnxeval.NodeError, match='input 1 "B" is float64, but "A" is float32'):
        load(model).run({"a": np.ones(2, np.float32), "b": np.ones(2)})


def test_values_die_after_their_last_use() -> None:
    seen: list[weakref.ref[np.ndarray]] = []
    alive: list[bool] = []

    def make(x: np.ndarray) -> np.ndarray:
        result = x + 1
        seen.append(weakref.ref(result))
        return result

    def look(x: np.ndarray) -> np.ndarray:
        gc.collect()
        alive.append(seen[0]() is not None)
        return x * 2

    def step(kernel, read: str, made: str, releases: tuple[str, ...]) -> Step:
        return Step(kernel.__name__, kernel, (read,), (made,), {}, {}, frozenset(), None, releases=releases)

    steps = (step(make, "x", "a", ()), step(look, "a", "b", ("a",)), step(look, "b", "y", ("b",)))
    plan = Plan(("x",), ("y",), (None,), {}, (), steps)
    result = executor.execute(plan, {"x": np.zeros(2)}, Run())
    assert result["y"].tolist() == [4, 4]
    assert alive == [True, False]


def test_the_compiler_releases_what_nobody_reads_any_more() -> None:
    model = parse(f"{HEADER} g (float[2] x) => (float[2] y) {{ a = Neg (x) b = Abs (a) y = Add (b, a) }}")
    releases = [step.releases for step in load(model).plan(reference=True).steps]
    assert releases == [("x",), (), ("b", "a")]


def test_a_sub_graph_sees_the_values_around_it_and_its_own_first() -> None:
    model = parse(
        f"""{HEADER}
        g (float[1] x, bool c) => (float[1] y) {{
            k = Constant <value = float[1] {{10}}> ()
            y = If (c) <
                then_branch = t () => (float[1] r) {{
                    r = If (c) <
                        then_branch = tt () => (float[1] s) {{ s = Add (x, k) }},
                        else_branch = te () => (float[1] s) {{ s = Identity (x) }}
                    >
                }},
                else_branch = e () => (float[1] r) {{ r = Identity (k) }}
            >
        }}"""
    )
    run = load(model).run
    assert run({"x": np.ones(1, np.float32), "c": np.array(True)})["y"] == 11
    assert run({"x": np.ones(1, np.float32), "c": np.array(False)})["y"] == 10


def test_an_endless_loop_meets_the_limit() -> None:
    model = parse(
        f"""{HEADER}
        g (int64 n) => (int64 y) {{
            yes = Constant <value = bool {{1}}> ()
            y = Loop (, yes, n) <
                body = b (int64 i, bool go, int64 v) => (bool on, int64 w) {{ on = Identity (go) w = Identity (v) }}
            >
        }}"""
    )
    with pytest.raises(onnxeval.ResourceLimitError, match="more than 1,000 nodes") as raised:
        load(model).run({"n": np.array(1)}, limits=Limits(steps=1000))
    assert raised.value.exit_code == 7
    with pytest.raises(onnxeval.ResourceLimitError, match=r"more than 0.05 seconds"):
        load(model).run({"n": np.array(1)}, limits=Limits(seconds=0.05))


def test_allocate_refuses_before_memory_is_taken() -> None:
    run = Run(Limits(memory=1000))
    assert run.allocate((10, 25), np.dtype(np.float32)).shape == (10, 25)
    with pytest.raises(onnxeval.ResourceLimitError, match=r"float32\[10, 26\] takes 1,040 bytes, allowed are 1,000"):
        run.allocate((10, 26), np.dtype(np.float32))
    with pytest.raises(ValueError, match="negative"):
        run.allocate((-1,), np.dtype(np.float32))


def kernel_step(kernel, outputs: tuple[str, ...]) -> Step:
    return Step("node 0 (Test-1)", kernel, (), outputs, {}, {}, frozenset(), None)


def test_scalars_become_arrays_of_rank_0_and_lists_sequences() -> None:
    (number,) = executor.run_step(kernel_step(lambda: np.float32(2), ("y",)), {}, Run())
    assert isinstance(number, np.ndarray)
    assert number.shape == ()
    assert number.dtype == np.float32
    (items,) = executor.run_step(kernel_step(lambda: [np.ones(1)], ("y",)), {}, Run())
    assert isinstance(items, Sequence)


def test_missing_outputs_are_an_error_and_extra_ones_are_dropped() -> None:
    two = kernel_step(lambda: (np.ones(1), np.zeros(1)), ("y",))
    assert len(executor.run_step(two, {}, Run())) == 1
    with pytest.raises(onnxeval.NodeError, match="gave 1 outputs, the node lists 2"):
        executor.run_step(kernel_step(lambda: np.ones(1), ("y", "z")), {}, Run())


def test_the_same_seed_gives_the_same_numbers() -> None:
    draws = [Run(seed=seed).rng.random(3).tolist() for seed in (7, 7, 8)]
    assert draws[0] == draws[1] != draws[2]


def test_the_middle_of_a_message_that_nobody_reads_is_left_out() -> None:
    model = parse(f"{HEADER} g (float[N] x) => (float[M] y) {{ y = Transpose <perm = {list(range(100_000))}> (x) }}")
    with pytest.raises(onnxeval.NodeError, match=r"perm \[0, 1, 2") as raised:
        load(model).run({"x": np.ones(3, np.float32)})
    assert len(str(raised.value)) < 5000
    assert "99999]" in str(raised.value)


def test_results_of_any_size_are_refused_before_what_leads_to_them() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    inputs = ", ".join(["x"] * 26)
    einsum = f'y = Einsum <equation = "{",".join(letters)}->{letters}"> ({inputs})'
    expand = "s = Constant <value_ints = [4611686018427387904, 4611686018427387904]> () y = Expand (x, s)"
    for node, size in ((einsum, 16), (expand, 1)):
        model = load(parse(f"{HEADER} g (float[N] x) => (float[M] y) {{ {node} }}"))
        for reference in (False, True):
            with pytest.raises(onnxeval.ResourceLimitError, match="a tensor float32"):
                model.run({"x": np.ones(size, np.float32)}, reference=reference)


def test_many_axes_take_no_time() -> None:
    model = parse(f"{HEADER} g (float[N] x, int64[M] a) => (float[K] y) {{ y = Unsqueeze (x, a) }}")
    with pytest.raises(onnxeval.NodeError, match="100001"):
        load(model).run({"x": np.ones(3, np.float32), "a": np.arange(100_000)})
