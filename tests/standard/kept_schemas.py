"""onnxeval/schemas.txt: what the schemas of one release of onnx say, for `onnxeval.schema` to read without onnx.

``python tests/standard/kept_schemas.py`` writes it anew from the installed onnx.
"""

import json
from itertools import groupby

import onnx.defs
from onnx.defs import OpSchema

from onnxeval.schema import KEPT, STANDARD_DOMAINS, canonical_domain, row_of


def text() -> str:
    def operator(definition: OpSchema) -> tuple[str, str]:
        return canonical_domain(definition.domain), definition.name

    schemas = sorted(onnx.defs.get_all_schemas_with_history(), key=lambda s: (operator(s), s.since_version))
    newest = {domain: versions[1] for domain, versions in sorted(onnx.defs.C.schema_version_map().items())}
    lines = [onnx.__version__, json.dumps({domain: newest[domain] for domain in sorted(STANDARD_DOMAINS)})]
    for (domain, name), versions in groupby(schemas, operator):
        lines.append(f"{domain}:{name} {json.dumps([row_of(s) for s in versions], separators=(',', ':'))}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    KEPT.write_text(text(), "utf-8")
