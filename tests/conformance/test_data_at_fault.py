"""For each known failure, the proof that the shipped values are further from the truth than ours."""

import numpy as np
from conformance.test_conformance import CASES
from onnx import ModelProto, TensorProto, helper

from onnxeval import backend


def test_attention_4d_causal_fp16_expanded() -> None:
    """Attention-23: softmax(Q·Kᵀ / sqrt(head size) + causal mask)·V, in float64."""
    case = CASES["test_attention_4d_causal_fp16_expanded"]
    ((inputs, (shipped,)),) = case.data_sets
    q, k, v = (x.astype(np.float64) for x in inputs)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores[..., np.triu(np.ones(scores.shape[-2:], bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    truth = weights / weights.sum(-1, keepdims=True) @ v
    (ours,) = backend.prepare(case.model).run(inputs)

    def worst(values: np.ndarray) -> float:
        return float(np.max(np.abs(values.astype(np.float64) / truth - 1)))

    assert worst(ours) < case.rtol
    assert worst(ours) < worst(shipped)


def test_maxunpool_export_with_output_shape() -> None:
    """MaxUnpool-11: the indices that MaxPool found lead back into an input of the shape that is given."""
    pooling = {"kernel_shape": [2, 2], "strides": [2, 2]}
    graph = helper.make_graph(
        [
            helper.make_node("MaxPool", ["x"], ["pooled", "indices"], **pooling),
            helper.make_node("MaxUnpool", ["pooled", "indices", "shape"], ["y"], **pooling),
        ],
        "there and back",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 5, 5])],
        [helper.make_empty_tensor_value_info(name) for name in ("indices", "y")],
        [helper.make_tensor("shape", TensorProto.INT64, [4], [1, 1, 5, 5])],
    )
    x = np.random.default_rng(0).permutation(25).reshape(1, 1, 5, 5).astype(np.float32)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    indices, y = backend.prepare(model).run([x])
    at = np.unravel_index(indices, x.shape)
    np.testing.assert_array_equal(y[at], x[at])
    assert np.count_nonzero(y) <= indices.size
    as_shipped = np.divmod(indices % 16, 4)
    assert (x[0, 0][as_shipped] != y[at]).any()


def test_roialign_mode_max() -> None:
    """RoiAlign-16: the maximum of a cell's points is at least their mean; of what is shipped not even that holds."""
    case = CASES["test_roialign_mode_max"]
    ((inputs, (shipped,)),) = case.data_sets
    (maxima,) = backend.prepare(case.model).run(inputs)
    mean_model = ModelProto.FromString(case.model.SerializeToString())
    for attribute in mean_model.graph.node[0].attribute:
        if attribute.name == "mode":
            attribute.s = b"avg"
    (means,) = backend.prepare(mean_model).run(inputs)
    assert (maxima >= means).all()
    assert (shipped < means).any()
