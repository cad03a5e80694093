"""The opset imports of a model or function, and what they make of a node's operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onnxeval.registry import STANDARD, Kernel, OpKey
from onnxeval.schema import STANDARD_DOMAINS, Schema, canonical_domain, find_schema, newest_opset


class Imports:
    """What the nodes of a graph or function are bound by: a version for each domain."""

    def __init__(self, entries: Iterable[Any], importer: str, implied: dict[str, int] | None = None) -> None:
        self.entries = list(entries)
        self.importer = importer
        self.versions: dict[str, int] = {}
        for entry in self.entries:
            self.versions.setdefault(canonical_domain(entry.domain), entry.version)
        if not self.versions and implied:
            self.versions.update(implied)
        self._schemas: dict[tuple[str, str], Schema | None] = {}
        self._kernels: dict[tuple[str, str], Kernel | None] = {}
        #: Signatures of nodes in which the rules found nothing.
        self.clean: set[Any] = set()
        #: Signature and input types -> output types, where nothing was found.
        self.inferred: dict[Any, Any] = {}

    def where(self, place: int) -> str:
        return f"{self.importer}/opset_import[{place}]"

    def schema(self, domain: str, op_type: str) -> Schema | None:
        """The schema in force; where the version is newer than any known, that of the newest known."""
        key = (domain, op_type)
        if key not in self._schemas:
            version = self.versions.get(domain, 0)
            known = domain in STANDARD_DOMAINS and isinstance(op_type, str) and version > 0
            self._schemas[key] = find_schema(domain, op_type, min(version, newest_opset(domain))) if known else None
        return self._schemas[key]

    def kernel(self, domain: str, op_type: str) -> Kernel | None:
        """The kernel here of an operator without a schema: the newest version not above the imported one."""
        key = (domain, op_type)
        if key not in self._kernels:
            kernel = None
            if domain in self.versions and self.schema(domain, op_type) is None:
                STANDARD.load_section("contrib")
                there = [v for v in STANDARD.versions(domain, op_type) if v <= self.versions[domain]]
                kernel = STANDARD.get(OpKey(domain, op_type, max(there))) if there else None
            self._kernels[key] = kernel
        return self._kernels[key]
