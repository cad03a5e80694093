"""Optional, OptionalGetElement and OptionalHasElement."""

import numpy as np
import pytest

from onnxeval.registry import OpKey, Registry
from onnxeval.values import EmptyOptional, Sequence, TensorType

FLOATS = TensorType(np.dtype(np.float32))
TENSOR = np.ones(2, np.float32)
VALUES = [TENSOR, Sequence([TENSOR]), Sequence((), FLOATS)]


def kernel(op_type, version):
    return Registry.standard()[OpKey("", op_type, version)]


@pytest.mark.parametrize("value", VALUES, ids=["tensor", "sequence", "empty sequence"])
def test_a_filled_optional_is_the_value(value):
    for version in (15, 28):
        assert kernel("Optional", version)(value, type=None) is value
    for version in (15, 18, 28):
        assert kernel("OptionalGetElement", version)(value) is value
        has = kernel("OptionalHasElement", version)(value)
        assert (has.dtype, has.shape, has.item()) == (np.bool_, (), True)


def test_an_empty_optional():
    empty = kernel("Optional", 15)(None, type=FLOATS)
    assert empty == EmptyOptional(FLOATS)
    for version in (15, 18, 28):
        assert kernel("OptionalHasElement", version)(empty).item() is False
        with pytest.raises(ValueError, match="empty"):
            kernel("OptionalGetElement", version)(empty)


def test_an_absent_input():
    assert kernel("OptionalHasElement", 18)(None).item() is False
    with pytest.raises(ValueError, match="neither"):
        kernel("Optional", 15)(None, type=None)
