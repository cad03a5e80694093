"""No false alarm and no miss on the models of the installed onnx wheel, held against onnx's own full check."""

import onnx

import onnxeval
from onnxeval.suite import load_cases

#: What onnx's full check refuses and this check does not, with the reason.
REFUSED_BY_ONNX_ALONE = {
    "test_mvn": "the function body in onnx's schema fails onnx's own inference; the node itself is right",
}


def test_errors_where_onnx_finds_them() -> None:
    wrong = []
    for case in load_cases():
        model = case.model
        errors = [f for f in onnxeval.check(model) if f.severity == "error"]
        try:
            onnx.checker.check_model(model, full_check=True)
            accepted = True
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            accepted = False
        if accepted == bool(errors) and (accepted or case.name not in REFUSED_BY_ONNX_ALONE):
            wrong.append((case.name, list(map(str, errors))))
    assert not wrong


def test_nothing_but_silence_on_the_conformance_models() -> None:
    """Many of them hold nodes, inputs and initializers that nobody reads: that is true, and all there is to tell."""
    told = {}
    for case in load_cases():
        if found := onnxeval.check(case.model, ignore=["graph/unused-*"]):
            told[case.name] = list(map(str, found))
    assert not told
