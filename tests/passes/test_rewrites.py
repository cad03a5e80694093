"""Branches, like results, and movements: what is rewritten, what stays, and that the numbers are the same."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, numpy_helper, parser
from passes.plans import operators

import onnxeval
from onnxeval.executor import evaluate
from onnxeval.passes import Known, optimise
from onnxeval.values import TensorType

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def model(body: str, constants: dict | None = None, inputs: str = "float[2,3,4] x", outputs: str = "float y"):
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g ({inputs}) => ({outputs}) {{ {body} }}')
    for name, value in (constants or {}).items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return onnxeval.load(proto)


def steps(loaded, known=None) -> list[str]:
    plan = loaded.plan() if known is None else optimise(loaded.plan(reference=True), Known(evaluate, known))
    return operators(plan)


def same(loaded, feeds=None) -> None:
    feeds = {"x": X} if feeds is None else feeds
    for one, other in zip(loaded.run(feeds).values(), loaded.run(feeds, reference=True).values(), strict=True):
        assert one.dtype == other.dtype
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-5)  # compiled kernels may differ in the last places
        else:
            np.testing.assert_array_equal(one, other)


class TestBranches:
    BRANCHES = """
        y = If (c) <
            then_branch = t () => (float a) {{ k = Add (x, x) a = Mul (k, {last}) }},
            else_branch = e () => (float a) {{ k = Sub (x, x) a = Mul (k, x) }}
        >"""

    @pytest.mark.parametrize(("condition", "operators"), [(True, ["Add", "Mul"]), (False, ["Sub", "Mul"])])
    def test_the_branch_that_is_taken(self, condition, operators):
        loaded = model(self.BRANCHES.format(last="x"), {"c": condition})
        assert sorted(steps(loaded)) == sorted(operators)
        assert all("If" in step.label for step in loaded.plan().steps)
        same(loaded)

    def test_two_branches_with_the_same_names(self):
        one = self.BRANCHES.format(last="x")
        loaded = model(
            one + one.replace("y = If", "z = If").replace("x, x", "x, y"), {"c": True}, outputs="float y, float z"
        )
        assert "If" not in steps(loaded)
        same(loaded)

    def test_a_branch_that_hands_on_what_it_captures(self):
        loaded = model(
            "y = If (c) <then_branch = t () => (float a) { a = Identity (x) }, "
            "else_branch = e () => (float b) { b = Neg (x) }>",
            {"c": True},
        )
        assert steps(loaded) == ["Identity"]
        same(loaded)

    def test_what_a_branch_makes_constant_is_folded(self):
        loaded = model(
            "z = If (c) <then_branch = t () => (float a) { a = Exp (k) }, "
            "else_branch = e () => (float b) { b = Neg (k) }>"
            "y = Add (x, z)",
            {"c": True, "k": np.float32(2)},
        )
        assert steps(loaded) == ["Add"]
        same(loaded)

    def test_an_if_inside_an_if(self):
        loaded = model(
            "y = If (c) <then_branch = t () => (float a) { "
            "a = If (c) <then_branch = tt () => (float a2) { a2 = Exp (x) },"
            " else_branch = te () => (float a3) { a3 = Neg (x) }> }, else_branch = e () => (float b) { b = Neg (x) }>",
            {"c": True},
        )
        same(loaded)

    @pytest.mark.parametrize("is_declared", [True, False])
    def test_what_the_version_may_not_give_stays(self, is_declared):
        """Add-14 takes bfloat16, If-13 does not give it."""
        body = "y = If (c) <then_branch = t () => (float a) { a = Add (x, x) }, "
        body += "else_branch = e () => (float b) { b = Neg (x) }>"
        for kind, fits in ((TensorProto.BFLOAT16, False), (TensorProto.FLOAT, True)):
            loaded = model(body, {"c": True}, inputs="float[2] x")
            proto = loaded.proto
            proto.opset_import[0].version = 14
            for declared in (proto.graph.input[0], proto.graph.output[0]):
                declared.type.tensor_type.elem_type = kind
            for attribute in proto.graph.node[0].attribute:
                attribute.g.output[0].ClearField("type")
                if is_declared:
                    attribute.g.output[0].type.tensor_type.elem_type = kind
            loaded = onnxeval.load(proto)
            feeds = {"x": np.ones(2, ml_dtypes.bfloat16 if kind == TensorProto.BFLOAT16 else np.float32)}
            if fits:
                same(loaded, feeds)
                continue
            for reference in (True, False):
                with pytest.raises(onnxeval.NodeError, match="If-13: the output"):
                    loaded.run(feeds, reference=reference)

    def test_an_open_condition_stays(self):
        loaded = model(self.BRANCHES.format(last="x"), inputs="float[2,3,4] x, bool c")
        assert steps(loaded) == ["If"]
        for condition in (True, False):
            same(loaded, {"x": X, "c": np.array(condition)})


class TestLikeResults:
    def test_like_steps_are_one(self):
        loaded = model("a = Exp (x) b = Exp (x) c = Mul (a, k) d = Mul (b, m) y = Add (c, d)", {"k": f(3), "m": f(3)})
        assert steps(loaded) == ["Exp", "Mul", "Add"]
        same(loaded)

    def test_attributes_and_constants_tell_them_apart(self):
        loaded = model(
            "a = Softmax <axis = 0> (x) b = Softmax <axis = 1> (x) c = Mul (a, k) "
            "d = Mul (a, m) e = Add (c, d) y = Add (e, b)",
            {"k": f(0.0), "m": f(-0.0)},
        )
        assert len(steps(loaded)) == 6
        same(loaded)

    def test_zeros_of_either_sign_are_two(self):
        body = "a = LeakyRelu <alpha = 0.0> (x) b = LeakyRelu <alpha = -0.0> (x) c = Reciprocal (a) d = Reciprocal (b)"
        assert "LeakyRelu LeakyRelu" in " ".join(sorted(steps(model(f"{body} y = Max (c, d)"))))

    def test_random_numbers_and_outputs_stay(self):
        loaded = model(
            "a = RandomNormalLike (x) b = RandomNormalLike (x) y = Sub (a, b) z = Exp (x) w = Exp (x)",
            outputs="float y, float z, float w",
        )
        assert len(steps(loaded)) == 5
        assert loaded.run({"x": X})["y"].any()


def f(value) -> np.ndarray:
    return np.float32(value)


class TestMovements:
    @pytest.mark.parametrize(
        ("body", "operators"),
        [
            ("a = Transpose <perm = [1, 2, 0]> (x) y0 = Transpose <perm = [1, 0, 2]> (a)", ["Transpose"]),
            ("a = Transpose <perm = [1, 2, 0]> (x) y0 = Transpose <perm = [2, 0, 1]> (a)", []),
            ("a = Transpose (x) y0 = Transpose <perm = [2, 1, 0]> (a)", []),
            ("a = Transpose <perm = [0, 2, 1]> (x) y0 = Transpose (a)", ["Transpose"]),
            ("a = Transpose (x) y0 = Transpose (a)", ["Transpose", "Transpose"]),
            ("a = Reshape (x, s) y0 = Reshape (a, t)", ["Reshape"]),
            ("a = Flatten (x) y0 = Reshape (a, t)", ["Reshape"]),
            ("a = Unsqueeze (x, axes) y0 = Reshape (a, t)", ["Reshape"]),
            ("a = Reshape (x, t) y0 = Reshape (a, s)", ["Reshape", "Reshape"]),
            ("a = Reshape (x, s) y0 = Reshape (a, zero)", ["Reshape", "Reshape"]),
            ("a = Cast <to = 11> (x) b = Cast <to = 11> (a) y0 = Cast <to = 1> (b)", ["Cast", "Cast"]),
        ],
    )
    def test_merged(self, body, operators):
        constants = {"s": np.array([6, 4]), "t": np.array([4, -1]), "zero": np.array([0, 2, -1]), "axes": np.array([0])}
        loaded = model(body + " y = Exp (y0)", constants)
        assert steps(loaded) == [*operators, "Exp"]
        same(loaded)

    @pytest.mark.parametrize(
        "body",
        [
            "a = Reshape (x, s) y0 = Reshape (a, t)",
            "a = Reshape (x, u) y0 = Reshape (a, t)",
            "b = Reshape (x, t) a = Squeeze (b, axes) y0 = Reshape (a, t)",
        ],
    )
    def test_what_fails_between_fails(self, body):
        """Each of the shapes that follow would take the elements of x, the shape between does not."""
        loaded = model(
            body + " y = Exp (y0)",
            {"s": np.array([5, 4]), "t": np.array([4, -1]), "u": np.array([7, -1]), "axes": np.array([0])},
        )
        for _ in range(3):
            with pytest.raises(onnxeval.NodeError, match="Reshape" if "Squeeze" not in body else "Squeeze"):
                loaded.run({"x": X})

    def test_a_movement_that_is_an_output_stays(self):
        body = "a = Transpose <perm = [1, 0, 2]> (x) y = Transpose <perm = [1, 0, 2]> (a)"
        loaded = model(body, outputs="float y, float a")
        assert len(steps(loaded)) == 2
        same(loaded)

    def test_known_types(self):
        body = "a = Cast <to = 1> (x) b = Unsqueeze (a, axes) c = Squeeze (b) d = Flatten (c) y = Exp (d)"
        loaded = model(body, {"axes": np.array([0])})
        shapes = {"x": (2, 3, 4), "a": (2, 3, 4), "b": (1, 2, 3, 4), "c": (2, 3, 4), "d": (2, 12), "y": (2, 12)}
        types = {name: TensorType(np.dtype(np.float32), shape) for name, shape in shapes.items()}
        assert steps(loaded, types) == ["Flatten", "Exp"]  # the sizes after Squeeze are those of x
        assert steps(loaded, {}) == ["Cast", "Unsqueeze", "Squeeze", "Flatten", "Exp"]

    @given(st.lists(st.permutations(range(3)), min_size=1, max_size=4))
    def test_any_transposes(self, perms):
        names = ["x", *(f"v{i}" for i in range(len(perms)))]
        body = "\n".join(
            f"{names[i + 1]} = Transpose <perm = [{', '.join(map(str, perm))}]> ({names[i]})"
            for i, perm in enumerate(perms)
        )
        loaded = model(f"{body}\ny = Neg ({names[-1]})")
        assert len(steps(loaded)) <= 2
        same(loaded)


def test_a_long_row_of_movements_does_not_grow_its_label():
    body = "s = Shape (x) a0 = Reshape (x, s) " + " ".join(f"a{k + 1} = Reshape (a{k}, s)" for k in range(200))
    loaded = model(f"{body} y = Abs (a200)", inputs="float[N,3,4] x")
    known = {f"a{k}": TensorType(np.dtype(np.float32), (2, 3, 4)) for k in range(201)}
    plan = optimise(loaded.plan(reference=True), Known(evaluate, known))
    assert max(len(step.label) for step in plan.steps) < 1000
    same(loaded)
