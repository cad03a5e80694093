"""Errors cross to other processes whole, whatever their constructors take."""

import pickle

import pytest

from onnxeval import errors

NODE = errors.NodeError(("loop (Loop-21)", "add (Add-14)"), ["x float32[2]"], ValueError("3 is not 2"))
ERRORS = [
    errors.ModelError("no model", hint="look again"),
    errors.UnsupportedOperators([("node 0 (Foo)", "no kernel")], hint="write one").located("call (F)"),
    NODE,
    errors.MissingExtra("reading pictures", "image"),
    *(kind("text") for kind in (errors.InputError, errors.ResourceLimitError, errors.OutputError)),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_pickled_and_back(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.hint == error.hint
    assert copy.exit_code == error.exit_code
    assert str(copy.located("outer")) == str(pickle.loads(pickle.dumps(error)).located("outer"))


def test_what_a_node_error_holds():
    copy = pickle.loads(pickle.dumps(NODE))
    assert copy.path == NODE.path
    assert copy.inputs == NODE.inputs
    assert repr(copy.cause) == repr(NODE.cause)
