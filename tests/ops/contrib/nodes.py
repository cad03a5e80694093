"""Models of one node, run by onnxeval and by onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from ops.contrib.repeating import assert_decided

import onnxeval
from onnxeval.dtypes import ELEMENT_TYPES

MICROSOFT = "com.microsoft"


def node_model(
    op_type, inputs, *, outputs=1, domain=MICROSOFT, opset=21, constants=(), declared=None, more=(), **attributes
):
    """A model of one node; absent inputs are None, attributes that are None are left out.

    ``outputs`` is how many there are, or which of them are named; ``constants`` are the places of inputs that are
    initializers, ``more`` attributes whose names this function takes itself, ``declared`` an element type that all
    outputs say they have.
    """
    names = ["" if x is None else f"x{place}" for place, x in enumerate(inputs)]
    listed = range(outputs) if isinstance(outputs, int) else outputs
    results = [f"y{place}" if place in listed else "" for place in range(max(listed) + 1)]
    given = {name: value for name, value in {**attributes, **dict(more)}.items() if value is not None}
    node = helper.make_node(op_type, names, results, domain=domain, **given)
    given_inputs = [
        helper.make_tensor_value_info(name, ELEMENT_TYPES[x.dtype], x.shape)
        for place, (name, x) in enumerate(zip(names, inputs, strict=True))
        if x is not None and place not in constants
    ]
    initializers = [numpy_helper.from_array(inputs[place], names[place]) for place in constants]
    wanted = [
        helper.make_tensor_value_info(name, declared, None) if declared else onnx.ValueInfoProto(name=name)
        for name in results
        if name
    ]
    graph = helper.make_graph([node], "one", given_inputs, wanted, initializers)
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def feeds_of(inputs, constants=()):
    return {f"x{place}": x for place, x in enumerate(inputs) if x is not None and place not in constants}


def ours(op_type, inputs, **how):
    """The outputs that are named, of onnxeval; a single one bare."""
    proto, feeds = node_model(op_type, inputs, **how), feeds_of(inputs, how.get("constants", ()))
    results = list(onnxeval.load(proto).run(feeds).values())
    assert_decided(proto, feeds)
    return results[0] if len(results) == 1 else results


def theirs(op_type, inputs, **how):
    """The outputs that are named, of onnxruntime; a single one bare."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # what it makes of a batch may depend on how many share it
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        node_model(op_type, inputs, **how).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    results = session.run(None, feeds_of(inputs, how.get("constants", ())))
    return results[0] if len(results) == 1 else results


def theirs_sharing(op_type, inputs, shared, **how):
    """As `theirs`, inputs being overwritten by outputs: ``shared`` is {place of the input: place of the output}."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    model = node_model(op_type, inputs, **how).SerializeToString()
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    held = {name: ort.OrtValue.ortvalue_from_numpy(x.copy()) for name, x in feeds_of(inputs).items()}
    for name, value in held.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        source = next((i for i, o in shared.items() if output.name == f"y{o}"), None)
        if source is None:
            binding.bind_output(output.name)
        else:
            binding.bind_ortvalue_output(output.name, held[f"x{source}"])
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


def assert_agree(op_type, inputs, *, rtol=1e-5, atol=1e-6, **how):
    """Both give the same, of the same type and shape."""
    expected, given = theirs(op_type, inputs, **how), ours(op_type, inputs, **how)
    pairs = zip(expected, given, strict=True) if isinstance(given, list) else [(expected, given)]
    for their, our in pairs:
        assert our.dtype == their.dtype
        assert our.shape == their.shape
        if our.dtype == object:
            assert our.tolist() == their.tolist()
        else:
            np.testing.assert_allclose(our, their, rtol=rtol, atol=atol)


FLOAT, FLOAT16, BFLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
