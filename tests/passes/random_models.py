"""Random models of a few nodes, valid for their opset: what exporters write, and all of it together."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, ModelProto, helper, numpy_helper
from passes.drawn_graph import SIZES, SPECIAL, Drawn, Unfit
from passes.random_nodes import binary, broadcastable, clip, conv, is_float, matmul, norm, pool, reduction, unary, where

from onnxeval.errors import OnnxEvalError


def unsqueezed(d: Drawn, x: str, *axes: int, op: str = "Unsqueeze") -> str:
    return d.node(op, x, d.ints(*axes)) if d.opset >= 13 else d.node(op, x, axes=list(axes))


def sliced(d: Drawn, x: str, start: int, end: int, axis: int, step: int = 1) -> str:
    if d.opset < 10:
        return d.node("Slice", x, starts=[start], ends=[end], axes=[axis])
    return d.node("Slice", x, d.ints(start), d.ints(end), d.ints(axis), d.ints(step))


def movement(d: Drawn) -> None:
    x = d.any(lambda v: v.ndim >= 1)
    if x is None:
        raise Unfit
    value = d.values[x]
    axis = int(d.rng.integers(value.ndim))
    what = d.pick(
        ("Transpose", "Slice", "Squeeze", "Unsqueeze", "Concat", "Flatten", "Reshape", "Expand", "Split", "Pad")
    )
    if what == "Transpose":
        y = d.node(what, x, perm=[int(p) for p in d.rng.permutation(value.ndim)])
        if d.chance(0.5):
            d.node(what, y, perm=[int(p) for p in d.rng.permutation(value.ndim)])
    elif what == "Slice":
        start, end = d.pick(((0, 2), (1, 1000), (-2, 1000), (0, -1), (2**40, -(2**40)), (-1, -1000)))
        sliced(d, x, start, end, axis, d.pick((1, 1, 2, -1, -2)))
    elif what == "Squeeze":
        unsqueezed(d, x, *([a for a, size in enumerate(value.shape) if size == 1] or [axis]), op="Squeeze")
    elif what == "Unsqueeze" and value.ndim < 5:
        unsqueezed(d, x, axis)
    elif what == "Concat":
        others = [x if d.chance(0.3) else d.given(value.shape, value.dtype) for _ in range(d.pick((1, 2)))]
        d.node(what, x, *others, axis=axis)
    elif what == "Flatten":
        d.node(what, x, axis=int(d.rng.integers(value.ndim + 1)))
    elif what == "Reshape":
        d.node(what, x, d.ints(*d.pick(((-1,), (0, -1), (1, -1), (-1, 1), (value.size, 1)))))
    elif what == "Expand" and d.opset >= 8:
        d.node(what, x, d.ints(*(d.pick((2, 3)) if size == 1 else d.pick((1, size)) for size in (1, *value.shape))))
    elif what == "Split" and value.shape[axis] >= 2:
        d.node(what, x, outputs=2, axis=axis, **({"num_outputs": 2} if d.opset >= 18 else {}))
    elif what == "Pad" and d.opset >= 11:
        pads = [int(p) for p in d.rng.integers(-1, 3, 2 * value.ndim)]
        d.node(what, x, d.ints(*pads), mode=d.pick(("constant", "edge")))


def shapes(d: Drawn) -> None:
    """Shape arithmetic as exporters write it."""
    x = d.any(lambda v: v.ndim >= 1)
    if x is None:
        raise Unfit
    value = d.values[x]
    shape = d.node("Shape", x)
    first = d.node("Gather", shape, d.constant(int(d.rng.integers(value.ndim)), np.int64), axis=0)
    what = d.pick(("reshape", "expand", "fill", "arange", "scale", "slice", "range_mask"))
    one = unsqueezed(d, first, 0)
    if what == "reshape":
        d.node("Reshape", x, d.node("Concat", one, d.ints(-1), axis=0))
    elif what == "expand" and d.opset >= 8:
        target = d.node("Concat", d.ints(d.pick((1, 2))), shape, axis=0)
        d.node("Expand", x, target)
    elif what == "fill" and d.opset >= 9:
        filled = d.node("ConstantOfShape", shape, value=numpy_helper.from_array(d.numbers((1,), value.dtype)))
        if value.dtype.kind != "b":
            d.node("Add", x, filled)
    elif what == "arange" and d.opset >= 11:
        places = d.node("Range", d.constant(0, np.int64), first, d.constant(1, np.int64))
        d.node("Mul", places, d.ints(2))
    elif what == "scale" and is_float(value):
        number = d.node("Cast", first, to=helper.np_dtype_to_tensor_dtype(value.dtype))
        d.node("Div", x, d.node("Sqrt", number))
    elif what == "slice" and d.opset >= 10:
        half = d.node("Div", one, d.ints(2))
        d.node("Slice", x, d.ints(0), half, d.ints(0))
    elif what == "range_mask" and d.opset >= 11:
        places = d.node("Range", d.constant(0, np.int64), first, d.constant(1, np.int64))
        d.node("Less", unsqueezed(d, places, 0), unsqueezed(d, places, 1))


def spelled(d: Drawn) -> None:
    """What passes recognise, with something changed now and then."""
    x = d.any(lambda v: is_float(v) and v.ndim >= 1)
    if x is None:
        raise Unfit
    kind = d.values[x].dtype

    def number(value: float) -> str:
        if d.chance(0.06):
            value *= 1.001
        shape = d.pick(((), (), (1,), (1, 1))) if d.chance(0.5) else ()
        return d.constant(np.full(shape, value), kind)

    def one(op: str, a: str, b: str) -> str:
        y = d.node(op, *((b, a) if op in ("Add", "Mul") and d.chance(0.3) else (a, b)))
        if d.chance(0.04):
            d.node("Neg", y)
        return y

    what = d.pick(("gelu", "tanh", "hardswish", "swish", "layer", "rms", "softmax", "attention", "cube"))
    if what == "gelu" and d.opset >= 9:
        inner = one("Add", d.node("Erf", one("Div", x, number(2**0.5))), number(1))
        d.pick(
            (
                lambda: one("Mul", one("Mul", x, inner), number(0.5)),
                lambda: one("Mul", x, one("Mul", inner, number(0.5))),
            )
        )()
    elif what in ("tanh", "cube"):
        cube = one("Pow", x, number(3)) if what == "cube" else one("Mul", one("Mul", x, x), x)
        inner = one("Mul", one("Add", x, one("Mul", cube, number(0.044715))), number((2 / np.pi) ** 0.5))
        one("Mul", one("Mul", x, number(0.5)), one("Add", d.node("Tanh", inner), number(1)))
    elif what == "hardswish":
        if d.opset >= 11 and d.chance(0.7):
            y = d.node("Clip", one("Add", x, number(3)), d.constant(0, kind), d.constant(6, kind))
            one("Div", one("Mul", x, y), number(6))
        else:
            if kind == np.float64:  # alpha is a float32, the sixth of HardSwish is not
                raise Unfit
            one("Mul", x, d.node("HardSigmoid", x, alpha=1 / 6, beta=0.5))
    elif what == "swish":
        one("Mul", x, d.node("Sigmoid", x))
    elif what in ("layer", "rms", "softmax"):
        axes = [d.values[x].ndim - 1 if d.opset < 11 else -1]

        def reduced(op: str, a: str) -> str:
            if d.opset >= 18 or (op == "ReduceSum" and d.opset >= 13):
                return d.node(op, a, d.ints(*axes), keepdims=1)
            return d.node(op, a, axes=axes, keepdims=1)

        if what == "softmax":
            e = d.node("Exp", one("Sub", x, reduced("ReduceMax", x)))
            one("Div", e, reduced("ReduceSum", e))
            return
        y = one("Sub", x, reduced("ReduceMean", x)) if what == "layer" else x
        root = d.node("Sqrt", one("Add", reduced("ReduceMean", one("Pow", y, number(2))), number(1e-5)))
        size = d.values[x].shape[-1] if d.chance(0.9) else 1
        y = one("Mul", one("Div", y, root), d.constant(d.numbers((size,), kind)))
        if d.chance(0.8):
            one("Add", y, d.constant(d.numbers((size,), kind)))
    else:
        value = d.values[x]
        if value.ndim < 2:
            raise Unfit
        keys = d.pick((1, 3, 8, 50))
        scores = d.node("MatMul", x, d.given((*value.shape[:-2], value.shape[-1], keys), kind))
        if d.chance(0.6):
            scores = one(d.pick(("Mul", "Div")), scores, number(0.125))
        if d.chance(0.5):
            shape = broadcastable(d, d.values[scores].shape)
            mask = np.where(d.rng.random(shape) < 0.3, d.pick((-np.inf, -1e9)), 0)
            scores = one("Add", scores, d.constant(mask, kind) if d.chance(0.5) else d.fed(mask.astype(kind)))
        y = d.node("Softmax", scores, axis=-1 if d.opset >= 11 else d.values[scores].ndim - 1)
        if d.chance(0.2) and d.opset >= 9:
            y = d.node("Where", d.node("IsNaN", y), d.constant(0, kind), y)
        d.node("MatMul", y, d.given((*value.shape[:-2], keys, d.pick((1, 4, 17))), kind))


def decided_by_numbers(d: Drawn) -> None:
    """What elements are picked, or which way it goes, depends on numbers that others may be the next time."""
    x = d.any(lambda v: v.ndim >= 1 and 0 not in v.shape and v.dtype.kind == "f")
    if x is None or d.opset < 13:
        raise Unfit
    value = d.values[x]
    axis = int(d.rng.integers(value.ndim))
    best = d.node("ArgMax", d.fed(d.rng.permutation(7).astype(np.float32)), axis=0, keepdims=0)

    def below(size: int) -> str:
        return d.node("Mod", best, d.constant(size, np.int64))

    what = d.pick(("Gather", "Gather", "several", "Slice", "CumSum", "Trilu", "Loop"))
    if what == "Gather":
        y = d.node("Gather", x, below(value.shape[axis]), axis=axis)
        d.node(d.pick(("Relu", "Neg", "Identity")), y)
    elif what == "several":
        index = d.node("Unsqueeze", below(value.shape[axis]), d.ints(0))
        d.node("Gather", x, d.node("Concat", index, d.ints(0), axis=0), axis=axis)
    elif what == "Slice":
        start = d.node("Unsqueeze", below(value.shape[axis]), d.ints(0))
        d.node("Slice", x, start, d.node("Add", start, d.ints(1)), d.ints(axis))
    elif what == "CumSum":
        d.node("CumSum", x, below(value.ndim), exclusive=int(d.chance(0.3)))
    elif what == "Trilu" and value.ndim >= 2 and d.opset >= 14:
        d.node("Trilu", x, below(3), upper=int(d.chance(0.5)))
    elif what == "Loop":
        tag = f"_{len(d.nodes)}"
        body = helper.make_graph(
            [
                helper.make_node("Gather", [x, "trip" + tag], ["row" + tag], axis=axis),
                helper.make_node("Identity", ["going" + tag], ["on" + tag]),
                helper.make_node("Neg", ["row" + tag], ["seen" + tag]),
            ],
            "body",
            [helper.make_empty_tensor_value_info(n + tag) for n in ("trip", "going")],
            [helper.make_empty_tensor_value_info(n + tag) for n in ("on", "seen")],
        )
        d.node("Loop", d.constant(value.shape[axis], np.int64), "", body=body)


def branches(d: Drawn) -> None:
    x = d.any(is_float)
    if x is None or d.opset < 11:
        raise Unfit
    value = d.values[x]
    other = d.any(lambda v: v.dtype == value.dtype) or x

    def branch(tag: str) -> GraphProto:
        op = d.pick(("Relu", "Neg", "Add"))
        inputs = [x, other] if op == "Add" else [x]
        nodes = [helper.make_node(op, inputs, [f"{tag}_{len(d.nodes)}"], name=f"inner_{tag}")]
        if d.chance(0.3):
            nodes.append(helper.make_node("Exp", [nodes[0].output[0]], [f"{tag}e_{len(d.nodes)}"]))
        return helper.make_graph(nodes, tag, [], [helper.make_empty_tensor_value_info(nodes[-1].output[0])])

    if d.chance(0.6):
        kind = d.pick(("fed", "constant", "shape", "value"))
        if kind == "fed":
            condition = d.fed(np.array(d.chance(0.5)))
        elif kind == "constant":
            condition = d.constant(np.array(d.chance(0.5)))
        elif kind == "shape":
            condition = d.node("Equal", d.node("Size", x), d.constant(int(d.pick((1, value.size))), np.int64))
        else:
            condition = d.node("Greater", d.node("ReduceMax", x, keepdims=0), d.constant(1, value.dtype))
        d.node("If", condition, then_branch=branch("then"), else_branch=branch("else"))
        return
    tag = f"_{len(d.nodes)}"
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state" + tag, other], ["sum" + tag], name="inner"),
            helper.make_node("Identity", ["going" + tag], ["on" + tag]),
            helper.make_node("Relu", ["sum" + tag], ["seen" + tag]),
        ],
        "body",
        [helper.make_empty_tensor_value_info(n + tag) for n in ("trip", "going", "state")],
        [helper.make_empty_tensor_value_info(n + tag) for n in ("on", "sum", "seen")],
    )
    trips = int(d.rng.integers(0, 4))
    count = d.constant(trips, np.int64) if d.chance(0.5) else d.fed(np.array(trips))
    d.node("Loop", count, "", x, outputs=2, body=body)


DRAWS = (unary, unary, binary, binary, binary, clip, where, matmul, matmul, conv, conv, conv, pool, norm, reduction)
DRAWS += (movement, movement, shapes, shapes, spelled, spelled, branches, decided_by_numbers)


def drawn(seed: int) -> tuple[ModelProto, dict[str, np.ndarray]] | None:
    """A model and its feeds; None where the draws came to nothing."""
    d = Drawn(seed)
    kinds = (np.float32,) * 8 + (np.float64, np.float16, np.int64, np.int32)
    for _ in range(d.pick((1, 1, 2))):
        rank = d.pick((0, 1, 2, 2, 3, 3, 4, 4, 5))
        shape = [d.pick(SIZES[: 14 if rank < 4 else 9]) for _ in range(rank)]
        d.fed(d.numbers(shape, d.pick(kinds), SPECIAL))
    wanted = int(d.rng.integers(2, 16))
    for _ in range(3 * wanted):
        if len(d.nodes) >= wanted or d.fails:
            break
        try:
            d.pick(DRAWS)(d)
        except (Unfit, OnnxEvalError):
            continue
    return (d.model(), d.feeds) if d.nodes else None
