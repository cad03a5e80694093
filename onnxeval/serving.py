"""Which kernel serves an operator at the version that a model imports."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from onnxeval.errors import ModelError
from onnxeval.ops.contrib._refused import why_refused
from onnxeval.plugins import load_installed
from onnxeval.registry import DECIDED, Kernel, OpKey, Registry, Signature, signature_of
from onnxeval.schema import STANDARD_DOMAINS, Schema, find_schema, newest_opset, why_missing

#: The domains of onnxruntime's operators, some of which stand in the standard's, and where their kernels are.
_DOMAINS = ("", "com.microsoft", "com.microsoft.nchwc")
_OWN = "onnxeval.ops.contrib."


class Served(NamedTuple):
    """An operator at a version: its schema, which those outside the standard lack, and what serves it.

    ``since`` is the version of the operator itself.
    """

    version: int
    schema: Schema | None
    since: int
    kernel: Kernel | None
    signature: Signature | None
    injected: frozenset[str]  # what the executor supplies the kernel with
    named: tuple[str, ...]  # for `Step.fused`: an operator of onnxruntime, which has no schema


def serve(registry: Registry, domain: str, op_type: str, version: int) -> Served:
    """What serves an operator. Raises ModelError where the version is newer than what the installed onnx knows."""
    schema = None
    if domain in STANDARD_DOMAINS:
        if version > newest_opset(domain):
            raise ModelError(
                f'opset {version} of "{domain or "ai.onnx"}" is newer than the installed onnx package knows '
                f"({newest_opset(domain)})",
                hint="upgrade the onnx package, or export the model for an older opset",
            )
        schema = find_schema(domain, op_type, version)
    kernel, since = _find_kernel(registry, domain, op_type, version, schema)
    signature = None if kernel is None else signature_of(kernel)
    injected = frozenset() if signature is None else signature.injected - DECIDED
    is_own = schema is None and domain in _DOMAINS and str(getattr(kernel, "__module__", "")).startswith(_OWN)
    named = (f"{domain}.{op_type}" if domain else op_type,) if is_own else ()
    return Served(version, schema, since, kernel, signature, injected, named)


def why_not_served(registry: Registry, domain: str, op_type: str, version: int) -> str:
    """What there is instead of an operator that nothing serves."""
    there = registry.versions(domain, op_type)
    return why_refused(domain, op_type) or why_missing(domain, op_type, version, there)


def _find_kernel(
    registry: Registry, domain: str, op_type: str, version: int, schema: Schema | None
) -> tuple[Kernel | None, int]:
    """In the standard the exact key serves, elsewhere the newest version not above the imported one."""
    if schema is not None:
        return registry.find(schema.key, schema.section), schema.key.since_version
    for load in (partial(registry.load_operator, op_type), registry.load_section):
        if not registry.versions(domain, op_type):
            load("contrib")
    if not registry.versions(domain, op_type):
        load_installed()
    since = max((v for v in registry.versions(domain, op_type) if v <= version), default=0)
    return registry.get(OpKey(domain, op_type, since)), since
