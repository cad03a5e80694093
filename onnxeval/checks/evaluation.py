"""Rules on what onnxeval itself can run."""

from __future__ import annotations

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.views import Node
from onnxeval.functions import has_typed_function_body
from onnxeval.ops.contrib._refused import why_refused
from onnxeval.registry import STANDARD
from onnxeval.schema import STANDARD_DOMAINS, why_missing


@rule("evaluation/no-kernel", "note", Node)
def no_kernel(node: Node) -> Faults:
    """Nothing here runs the operator: there is no kernel for it, no function of the model and no function body.

    Why: `onnxeval run` will refuse the model. Where the operator is not the standard's, its attributes and types cannot
    be judged here either. The model may be right, and run elsewhere.

    Mend: nothing in the model. A kernel of your own is a Python function under `onnxeval.op`; custom operators are
    often better exported as functions of the model.

    Example:
        <ir_version: 10, opset_import: ["": 21, "com.acme": 1]>
        g (float[2] x) => (float[2] y) { h = com.acme.Resample(x)  y = Neg(h) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { h = loc.Resample(x)  y = Neg(h) }
        <domain: "loc", opset_import: ["": 21]> Resample (a) => (c) { c = Add(a, a) }
    """
    version = node.version
    if version is None or not isinstance(node.op_type, str) or node.function is not None:
        return
    if node.domain in STANDARD_DOMAINS:
        if (schema := node.schema) is None:
            return
        STANDARD.load_section(schema.section)
        if schema.key in STANDARD or schema.definition.has_function or has_typed_function_body(schema):
            return
    elif node.kernel is not None or any(domain == node.domain for domain, _, _ in node.scope.model.functions_by_key):
        return
    there = STANDARD.versions(node.domain, node.op_type)
    reason = why_refused(node.domain, node.op_type) or why_missing(node.domain, node.op_type, version, there)
    yield Fault(node.where, f"nothing here runs it: {reason}")
