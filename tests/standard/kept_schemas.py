"""onnxeval/schemas.txt: what the schemas of one release of onnx say, for `onnxeval.schema` to read without onnx.

``python tests/standard/kept_schemas.py`` writes it anew from the installed onnx.
"""

import json

import onnx.defs
from onnx.defs import OpSchema

from onnxeval.schema import KEPT, STANDARD_DOMAINS, canonical_domain, row_of


def text() -> str:
    def line(definition: OpSchema) -> str:
        row = json.dumps(row_of(definition), separators=(",", ":"))
        return f"{canonical_domain(definition.domain)}:{definition.name} {definition.since_version:03} {row}"

    newest = {domain: versions[1] for domain, versions in sorted(onnx.defs.C.schema_version_map().items())}
    head = [onnx.__version__, json.dumps({domain: newest[domain] for domain in sorted(STANDARD_DOMAINS)})]
    return "\n".join([*head, *sorted(map(line, onnx.defs.get_all_schemas_with_history()))]) + "\n"


if __name__ == "__main__":
    KEPT.write_text(text(), "utf-8")
