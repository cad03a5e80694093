"""Good models, and changes by chance that spoil them: what a careless hand or a broken tool does."""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper

from onnxeval.schema import all_schemas

#: Opset, graph (and functions), and the shapes or the elements of initializers. Every node has a name of its own.
_MODELS: dict[str, tuple[int, str, dict[str, Any]]] = {
    "network": (
        21,
        """g (float[N, 3, 8, 8] x) => (float[N, 10] y, int64[N, 10] z) {
            [conv] a = Conv<pads = [1, 1, 1, 1], strides = [1, 1]>(x, w, b)
            [relu] r = Relu(a)
            [pool] p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)
            [flat] f = Flatten<axis = 1>(p)
            [gemm] h = Gemm<alpha = 1.0, transB = 0>(f, m, c)
            [soft] y = Softmax<axis = -1>(h)
            [cast] z = Cast<to = 7>(y)
        }""",
        {"w": (4, 3, 3, 3), "b": (4,), "m": (64, 10), "c": (10,)},
    ),
    "shapes": (
        13,
        """g (float[2, 3, 4] x, float[2, 3, 4] t) => (float[6, 4] y, float[4, 3, 2] u, float[2, 6, 4] v) {
            [shape] s = Shape(x)
            [two] two = Constant<value = int64[1] {2}>()
            [minus] minus = Constant<value = int64[1] {-1}>()
            [pick] n = Gather<axis = 0>(s, two)
            [join] j = Concat<axis = 0>(minus, n)
            [fold] y = Reshape(x, j)
            [turn] u = Transpose<perm = [2, 1, 0]>(t)
            [both] v = Concat<axis = 1>(x, t)
        }""",
        {},
    ),
    "control": (
        21,
        """g (int64 n, bool c, float[2, 2] x) => (float[2, 2] y, float[K, 2, 2] every, float[2, 2] z) {
            [loop] y, every = Loop(n, c, x) <
                body = b (int64 i, bool k, float[2, 2] s) => (bool k2, float[2, 2] s2, float[2, 2] e) {
                    [same] k2 = Identity(k)
                    [prod] s2 = MatMul(s, x)
                    [neg] e = Neg(s2)
            }>
            [if] z = If(c) <then_branch = t () => (float[2, 2] p) { [exp] p = Exp(y) },
                            else_branch = e () => (float[2, 2] q) { [add] q = Add(x, y) }>
        }""",
        {},
    ),
    "functions": (
        21,
        """g (float[2, 3] x, double[2, 3] d) => (float[2, 3] y, double[2, 3] z) {
            [first] h = loc.scale<factor = 2.0>(x, x)
            [second] y = loc.twice(h)
            [third] z = loc.twice(d)
        }
        <domain: "loc", opset_import: ["": 21]> scale <factor> (a, b) => (c) {
            [leak] l = LeakyRelu<alpha: float = @factor>(a)
            [sum] c = Add(l, b)
        }
        <domain: "loc", opset_import: ["": 21]> twice (a) => (c) { [self] c = Add(a, a) }""",
        {},
    ),
    "old": (
        9,
        """g (float[1, 2, 4, 4] x, float[5, 2] w)
        => (float[1, 2, 4, 4] y, float[1, 8] s, float[2, 2] k, float[5, 2] t) {
            [norm] y = BatchNormalization<epsilon = 0.00001>(x, scale, bias, mean, variance)
            [view] x2 = Reshape(x, target)
            [mean] s = ReduceMean<axes = [1, 2], keepdims = 0>(x2)
            [unsq] u = Unsqueeze<axes = [0]>(w)
            [some] k = Slice<axes = [0], starts = [0], ends = [2]>(w)
            [tile] deep = Tile(u, reps)
            [last] t = ReduceMax<axes = [0], keepdims = 0>(deep)
        }""",
        {"scale": (2,), "bias": (2,), "mean": (2,), "variance": (2,), "target": [1, 4, 1, 8], "reps": [2, 1, 1]},
    ),
    "sequences": (
        21,
        """g (float[2, 3] x, int64 i, string[2] t)
        => (seq(float[2, 3]) s, float[4, 3] j, string[2] u, float[2, 1] v, float[1, 3] p) {
            [make] s = SequenceConstruct(x, x)
            [take] y = SequenceAt(s, i)
            [glue] j = ConcatFromSequence<axis = 0>(s)
            [text] u = Identity(t)
            [less] b = Less(x, y)
            [pick] w = Where(b, x, y)
            [drop] d, m = Dropout(w)
            [top] v, k = TopK<axis = 1>(d, one)
            [many] p, q = Split<axis = 0, num_outputs = 2>(x)
        }""",
        {"one": [1]},
    ),
    "recurrent": (
        14,
        """g (float[5, 2, 3] x)
        => (float[5, 1, 2, 4] y, float[2, 2, 4] h, float[2, 1, 8, 8] big, float[2, 1, 2, 2] small) {
            [lstm] y, lh, lc = LSTM<hidden_size = 4>(x, w, r)
            [gru] gy, h = GRU<hidden_size = 4, direction = "bidirectional">(x, gw, gr)
            [one] o = ConstantOfShape(shape)
            [up] big = DepthToSpace<blocksize = 2>(o)
            [down] lo = AveragePool<kernel_shape = [3, 3], auto_pad = "VALID">(o)
            [cut] small = Slice(lo, low, high, axes)
            [pad] unread = Pad<mode = "edge">(small, pads)
        }""",
        {
            "w": (1, 16, 3),
            "r": (1, 16, 4),
            "gw": (2, 12, 3),
            "gr": (2, 12, 4),
            "shape": [2, 4, 4, 4],
            "low": [0],
            "high": [1],
            "axes": [1],
            "pads": [0] * 8,
        },
    ),
}
NAMES = tuple(_MODELS)
_OPERATORS = sorted({s.key.op_type for s in all_schemas() if s.key.domain == "" and not s.deprecated})
_NUMBERS = (-3, -1, 0, 1, 2, 3, 4, 5, 7, 100)
_TEXTS = ("", "x", "y", "ghost", "VALID", "linear", "reverse", "ij->ji")


def good_model(name: str) -> ModelProto:
    """One of the good models."""
    opset, text, constants = _MODELS[name]
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}, "loc": 1]> {text}')
    for constant, of in constants.items():
        shape = (len(of),) if isinstance(of, list) else of
        values = of if isinstance(of, list) else [0.5] * math.prod(of)
        model.graph.initializer.append(helper.make_tensor(constant, 7 if isinstance(of, list) else 1, shape, values))
    return model


def graphs(model: ModelProto) -> Iterator[Any]:
    """Every graph and function."""
    yield model.graph
    yield from model.functions
    for node in model.graph.node:
        yield from (attribute.g for attribute in node.attribute if attribute.type == AttributeProto.GRAPH)


def nodes(model: ModelProto) -> list[NodeProto]:
    return [node for graph in graphs(model) for node in graph.node]


def _names(model: ModelProto) -> list[str]:
    return ["", "ghost", *(name for node in nodes(model) for name in (*node.input, *node.output))]


def _values(model: ModelProto) -> list[Any]:
    """What declares a type, inputs before outputs."""
    found = [graph for graph in graphs(model) if isinstance(graph, GraphProto)]
    return [value for graph in found for value in (*graph.input, *graph.output, *graph.value_info)]


# Changes


def drop_node(model: ModelProto, chance: Random) -> None:
    graph = chance.choice([graph for graph in graphs(model) if graph.node])
    del graph.node[chance.randrange(len(graph.node))]


def double_node(model: ModelProto, chance: Random) -> None:
    graph = chance.choice([graph for graph in graphs(model) if graph.node])
    graph.node.add().CopyFrom(chance.choice(graph.node))


def reorder(model: ModelProto, chance: Random) -> None:
    graph = chance.choice(list(graphs(model)))
    copies = [NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    chance.shuffle(copies)
    del graph.node[:]
    graph.node.extend(copies)


def rename_slot(model: ModelProto, chance: Random) -> None:
    node = chance.choice(nodes(model))
    slots = chance.choice([slots for slots in (node.input, node.output) if slots] or [node.output])
    if slots:
        slots[chance.randrange(len(slots))] = chance.choice(_names(model))


def drop_slot(model: ModelProto, chance: Random) -> None:
    node = chance.choice(nodes(model))
    slots = chance.choice((node.input, node.output))
    if slots:
        del slots[chance.randrange(len(slots))]


def add_slot(model: ModelProto, chance: Random) -> None:
    node = chance.choice(nodes(model))
    chance.choice((node.input, node.output)).append(chance.choice(_names(model)))


def change_operator(model: ModelProto, chance: Random) -> None:
    node = chance.choice(nodes(model))
    node.op_type = chance.choice((*_OPERATORS, "Conw", ""))


def change_domain(model: ModelProto, chance: Random) -> None:
    chance.choice(nodes(model)).domain = chance.choice(("", "loc", "ai.onnx.ml", "com.acme"))


def retype(model: ModelProto, chance: Random) -> None:
    value = chance.choice(_values(model))
    if value.type.HasField("tensor_type"):
        value.type.tensor_type.elem_type = chance.choice((0, 1, 6, 7, 8, 9, 10, 11, 16, 99))


def reshape(model: ModelProto, chance: Random) -> None:
    value = chance.choice(_values(model))
    shape = value.type.tensor_type.shape
    change = chance.randrange(4)
    if change == 0:
        value.type.tensor_type.ClearField("shape")
    elif change == 1 or not shape.dim:
        shape.dim.add(dim_value=chance.choice((0, 1, 2, 3, 8)))
    elif change == 2:
        del shape.dim[chance.randrange(len(shape.dim))]
    else:
        shape.dim[chance.randrange(len(shape.dim))].dim_value = chance.choice((0, 1, 2, 3, 5, 8))


def drop_value(model: ModelProto, chance: Random) -> None:
    graph = chance.choice(list(graphs(model)))
    values = chance.choice((graph.input, graph.output))
    if values:
        del values[chance.randrange(len(values))]


def change_weight(model: ModelProto, chance: Random) -> None:
    if not model.graph.initializer:
        return
    place = chance.randrange(len(model.graph.initializer))
    tensor, change = model.graph.initializer[place], chance.randrange(5)
    if change == 0:
        del model.graph.initializer[place]
    elif change == 1:
        tensor.data_type = chance.choice((0, 1, 6, 7, 8, 11, 99))
    elif change == 2 and tensor.dims:
        tensor.dims[chance.randrange(len(tensor.dims))] = chance.choice((-1, 0, 1, 2, 3))
    elif change == 3:
        tensor.dims.append(1)
    elif tensor.int64_data:
        tensor.int64_data[chance.randrange(len(tensor.int64_data))] = chance.choice(_NUMBERS)


def _with_attributes(model: ModelProto) -> list[NodeProto]:
    return [node for node in nodes(model) if node.attribute]


def drop_attribute(model: ModelProto, chance: Random) -> None:
    if found := _with_attributes(model):
        node = chance.choice(found)
        del node.attribute[chance.randrange(len(node.attribute))]


def rename_attribute(model: ModelProto, chance: Random) -> None:
    if found := _with_attributes(model):
        node = chance.choice(found)
        names = ("axis", "axes", "alpha", "pads", "strides", "body", "to", "", *(a.name for a in node.attribute))
        chance.choice(node.attribute).name = chance.choice(names)


def change_attribute(model: ModelProto, chance: Random) -> None:
    if not (found := _with_attributes(model)):
        return
    attribute = chance.choice(chance.choice(found).attribute)
    if attribute.type == AttributeProto.INT:
        attribute.i = chance.choice(_NUMBERS)
    elif attribute.type == AttributeProto.INTS and attribute.ints:
        attribute.ints[chance.randrange(len(attribute.ints))] = chance.choice(_NUMBERS)
    elif attribute.type == AttributeProto.STRING:
        attribute.s = chance.choice(_TEXTS).encode()


def lengthen_attribute(model: ModelProto, chance: Random) -> None:
    lists = [a for node in nodes(model) for a in node.attribute if a.type == AttributeProto.INTS]
    if lists:
        ints = chance.choice(lists).ints
        if chance.random() < 0.5:
            ints.append(chance.choice(_NUMBERS))
        elif ints:
            del ints[-1]


def retype_attribute(model: ModelProto, chance: Random) -> None:
    if found := _with_attributes(model):
        attribute = chance.choice(chance.choice(found).attribute)
        attribute.type = chance.choice((0, 1, 2, 3, 6, 7, 8))


def add_attribute(model: ModelProto, chance: Random) -> None:
    name = chance.choice(("axis", "keepdims", "perm", "group", "to", "mode", "alpha", "num_outputs"))
    value: Any = chance.choice((0, 1, 2, [0], [1, 0], 0.5, "edge"))
    chance.choice(nodes(model)).attribute.append(helper.make_attribute(name, value))


def change_version(model: ModelProto, chance: Random) -> None:
    imports = chance.choice((model, *model.functions)).opset_import
    if not imports:
        return
    if chance.random() < 0.2:
        del imports[chance.randrange(len(imports))]
    else:
        imports[chance.randrange(len(imports))].version = chance.choice((0, 1, 5, 7, 9, 11, 13, 18, 20, 21, 24, 28, 99))


def change_ir_version(model: ModelProto, chance: Random) -> None:
    model.ir_version = chance.choice((0, 1, 2, 3, 4, 7, 8, 9, 99))


def change_function(model: ModelProto, chance: Random) -> None:
    if not model.functions:
        return
    function = chance.choice(model.functions)
    change = chance.randrange(4)
    if change == 0:
        function.name = chance.choice(("twice", "scale", "other", ""))
    elif change == 1:
        del function.attribute[:]
    elif change == 2:
        model.functions.add().CopyFrom(function)
    else:
        del model.functions[0]


CHANGES: tuple[Callable[[ModelProto, Random], None], ...] = (
    *(drop_node, double_node, reorder, rename_slot, drop_slot, add_slot, change_operator, change_domain),
    *(retype, reshape, drop_value, change_weight, drop_attribute, rename_attribute, change_attribute),
    *(lengthen_attribute, retype_attribute, add_attribute, change_version, change_ir_version, change_function),
)
