"""Models against the outputs that come with them: test data sets beside models, and the conformance cases of onnx."""
