"""onnxeval/schemas.txt says what onnx says."""

import dataclasses

import onnx.defs
import pytest
from standard.kept_schemas import KEPT, text

from onnxeval import schema as schemas

RELEASE = KEPT.read_text("utf-8").split("\n", 1)[0]


@pytest.mark.skipif(onnx.__version__ != RELEASE, reason="it is of another release, and not used with this one")
def test_the_file_is_up_to_date() -> None:
    assert KEPT.read_text("utf-8") == text(), "run python tests/standard/kept_schemas.py"


def test_what_is_read_from_the_file_is_what_is_read_from_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    """At every opset, for every operator, those before its first and after its last version included."""

    def described() -> dict[tuple[str, str, int], object]:
        for cached in (schemas.find_schema, schemas.newest_opset):
            cached.cache_clear()
        monkeypatch.setattr(schemas, "_READ", {})
        newest = {domain: schemas.newest_opset(domain) for domain in schemas.STANDARD_DOMAINS}
        names = {(schemas.canonical_domain(d.domain), d.name) for d in onnx.defs.get_all_schemas_with_history()}
        found = {
            (domain, name, opset): schemas.find_schema(domain, name, opset)
            for domain, name in sorted(names)
            for opset in (*range(newest[domain] + 2), 2**40)
        }
        fields = [field.name for field in dataclasses.fields(schemas.Schema)]
        return {key: schema and [getattr(schema, name) for name in fields] for key, schema in found.items()}

    kept = described()
    monkeypatch.setattr(schemas, "_kept", lambda: ({}, b""))
    assert described() == kept
    monkeypatch.undo()
    for cached in (schemas.find_schema, schemas.newest_opset):
        cached.cache_clear()


def test_another_release_is_not_taken_for_that_of_the_file() -> None:
    assert schemas.is_installed(onnx.__version__)
    assert not schemas.is_installed("1.0.0")
