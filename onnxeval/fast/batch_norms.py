"""BatchNormalization in inference by itself."""

from onnxeval.fast import replaces
from onnxeval.fast.elementwise import by_itself
from onnxeval.ops.nn.batch_norm import (
    batch_normalization,
    batch_normalization_by_outputs,
    batch_normalization_by_outputs_and_features,
    batch_normalization_is_test,
)

for _kernel in (
    batch_normalization,
    batch_normalization_by_outputs,
    batch_normalization_by_outputs_and_features,
    batch_normalization_is_test,
):
    replaces(_kernel, rounded=1)(by_itself(_kernel))
