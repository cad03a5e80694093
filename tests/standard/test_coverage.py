"""docs/coverage.md says exactly what is registered, and every key of the standard is."""

from collections import Counter

from standard.coverage_page import PAGE, element_types, page, without_kernel

from onnxeval.dtypes import BY_NAME, name_of
from onnxeval.schema import all_schemas


def test_the_standard_that_is_counted() -> None:
    by_domain = Counter(schema.key.domain for schema in all_schemas())
    assert by_domain == {"": 629, "ai.onnx.ml": 25, "ai.onnx.preview": 1, "ai.onnx.preview.training": 4}


def test_every_version_has_a_kernel() -> None:
    assert [schema.label for schema in without_kernel()] == []


def test_every_element_type_is_taken_by_some_operator() -> None:
    taken = set[str]().union(*map(element_types, all_schemas()))
    assert taken == {name_of(dtype) for dtype in BY_NAME.values()}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run python tests/standard/coverage_page.py"
    assert "Every one of them has a kernel" in page()
