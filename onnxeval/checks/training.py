"""Rules on Gradient, which names the values of its graph in attributes."""

from __future__ import annotations

from onnx import GraphProto

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.views import Node
from onnxeval.errors import ModelError
from onnxeval.graph import check_independent, order_function, order_graph


def _listed(node: Node, name: str) -> list[str]:
    return [s.decode(errors="replace") for a in node.attributes if a.name == name for s in (*a.strings, a.s) if s]


@rule("node/gradient", "error", Node, "ai.onnx.preview.training.Gradient")
def gradient(node: Node) -> Faults:
    """A Gradient names values that its graph does not have, that depend on one another, or other than its inputs.

    Why: `xs` and `zs` are what the target `y` is computed from, in the order of the inputs; a value that is computed
    from another of them cannot be varied on its own.

    Mend: name values of the graph around the node, none computed from another.

    Example:
        <ir_version: 10, opset_import: ["": 21, "ai.onnx.preview.training": 1]>
        g (float[2] x) => (float[2] y, float[2] d) {
            y = Mul(x, x)
            d = ai.onnx.preview.training.Gradient<xs = ["w"], y = "y">(x)
        }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "ai.onnx.preview.training": 1]>
        g (float[2] x) => (float[2] y, float[2] d) {
            y = Mul(x, x)
            d = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(x)
        }
    """
    variables, target = [*_listed(node, "xs"), *_listed(node, "zs")], _listed(node, "y")
    if variables and len(variables) != len(node.inputs):
        yield Fault(node.where, f"xs and zs name {len(variables)} values, {len(node.inputs)} inputs are given")
    visible = set(node.scope.known_names())
    unknown = [name for name in dict.fromkeys((*variables, *target)) if name not in visible]
    for name in unknown:
        yield Fault(node.where, f'it names "{name}", which the graph does not have')
    if not unknown and variables:
        yield from _dependent(node, variables, visible)
        for name in target:
            if name in node.scope.inputs and name not in variables:
                yield Fault(node.where, f'its target "{name}" is an input: no node computes it')


def _dependent(node: Node, variables: list[str], visible: set[str]) -> Faults:
    proto = node.scope.proto
    try:
        order = order_graph(proto) if isinstance(proto, GraphProto) else order_function(proto, ())
    except ModelError:
        return  # there is a cycle, or a name is made twice: other rules tell
    try:
        check_independent(proto.node, order, variables, visible)
    except ModelError as error:
        yield Fault(node.where, str(error))
