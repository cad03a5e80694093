"""`onnxeval apply`."""

import json

import numpy as np
import pytest


def values_of(result):
    assert result.exit_code == 0, result.stderr
    return {o["name"]: (o.get("dtype"), o["data"]) for o in json.loads(result.stdout)["outputs"]}


@pytest.mark.parametrize(
    ("words", "outputs"),
    [
        ("Add -i 1.5 -i [1,2]", {"C": ("float32", [2.5, 3.5])}),
        ("Add -i 1 -i 2", {"C": ("int64", 3)}),
        ("Sqrt -i 4", {"Y": ("float32", 2)}),
        ("Relu --opset 6 -i [-1,2]", {"Y": ("float32", [0, 2])}),
        ("Not -i [true,false]", {"Y": ("bool", [False, True])}),
        ("Clip -i [1,2,3] -i max=2", {"output": ("int64", [1, 2, 2])}),
        ("Cast -i [1.5,-2] -a to=int8", {"output": ("int8", [1, -2])}),
        ("Cast -i [1.5,-2] -a to=6", {"output": ("int32", [1, -2])}),
        ("Concat --opset 13 -i [1] -i [2] -i [3] -a axis=0", {"concat_result": ("int64", [1, 2, 3])}),
        (
            "Split -i [1,2,3,4] --outputs 2 -a num_outputs=2",
            {"outputs_0": ("int64", [1, 2]), "outputs_1": ("int64", [3, 4])},
        ),
        ("TopK -i [3.5,1,2] -i K=[2] --outputs 2", {"Values": ("float32", [3.5, 2]), "Indices": ("int64", [0, 2])}),
        ("ConstantOfShape -i [2] -a value=[7]", {"output": ("int64", [7, 7])}),
        ("Transpose -i [[1,2]] -a perm=1,0", {"transposed": ("int64", [[1], [2]])}),
        ("Transpose -i [[1,2]] -a perm=[1,0]", {"transposed": ("int64", [[1], [2]])}),
        ("SequenceAt -i [[1],[2]] -i 1", {"tensor": ("int64", [2])}),
        ('StringConcat -i ["a"] -i ["b"]', {"Z": ("string", ["ab"])}),
        ("Scaler -i [[1,2]] -a offset=0,1 -a scale=1,1", {"Y": ("float32", [[1, 1]])}),
        ("BiasGelu --domain com.microsoft -i [[0.0]] -i [0.0]", {"output_0": ("float32", [[0]])}),
    ],
)
def test_values_typed_in_place(shell, words, outputs):
    assert values_of(shell("apply", *words.split(), "--format", "json")) == outputs


def test_the_version_counts(shell):
    new = values_of(shell("apply", "Softmax", "-i", "[[[1, 2], [3, 4.5]]]", "--format", "json"))
    old = values_of(shell("apply", "Softmax", "--opset", "11", "-i", "[[[1, 2], [3, 4.5]]]", "--format", "json"))
    assert np.sum(new["output"][1], axis=-1) == pytest.approx(np.ones((1, 2)))
    assert np.sum(old["output"][1]) == pytest.approx(1)


def test_files_in_and_out(shell):
    np.save("x.npy", np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1))
    words = "DepthToSpace --opset 28 --input x.npy --attr blocksize=2 --attr mode=CRD --save y.npy"
    result = shell("apply", *words.split())
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "saved output to y.npy\n"
    np.testing.assert_array_equal(np.load("y.npy"), np.arange(8).reshape(1, 2, 2, 2))


def test_what_is_typed_takes_a_type_that_the_kernel_takes(shell):
    result = shell("apply", "Gelu", "--domain", "com.microsoft", "-i", "1")
    assert result.exit_code == 0, result.stderr
    assert "float32[]" in result.stdout
    result = shell("apply", "BiasGelu", "-i", "[1, 2]", "-i", "[0.5, 0.5]")
    assert result.exit_code == 0, result.stderr


def test_what_is_typed_takes_the_type_of_a_file(shell):
    np.save("x.npy", np.array([1, 2], np.float64))
    assert values_of(shell("apply", "Add", "-i", "x.npy", "-i", "1", "--format", "json")) == {"C": ("float64", [2, 3])}


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("Foo", 2, "There is no operator 'Foo'"),
        ("Relu", 5, "needs a value for the input X"),
        ("Conv -i rand:[1,1,2,2]", 5, "needs a value for the input W"),
        ("Sum", 5, "needs a value for the input data_0"),
        ("Where -i Y=1", 5, "needs a value for the inputs condition, X"),
        ("Relu -i 1 -i 2", 5, "takes 1 inputs"),
        ("Relu --opset 99 -i 1", 5, "the newest opset"),
        ("DepthToSpace -i 1 -a size=2", 5, "no attribute 'size'"),
        ("DepthToSpace -i 1 -a blocksize=x", 5, "INT is wanted"),
        ("DepthToSpace -i 1 -a blocksize", 2, "is not NAME=VALUE"),
        ("Softmax -i [1] -a axis=Infinity", 5, "INT is wanted"),
        ("Softmax -i [1] -a axis=NaN", 5, "INT is wanted"),
        ("Softmax -i [1] -a axis=9223372036854775808", 5, "more than INT can hold"),
        ("Transpose -i [1] -a perm=[9223372036854775808]", 5, "more than INTS can hold"),
        ("Cast -i 1 -a to=flot16", 5, "did you mean float16?"),
        ("If -i true", 3, "needs the attributes else_branch, then_branch"),
        ("If -i true -a then_branch=x", 5, "is a graph"),
        ("Add -i A=1 -i A=2", 5, "given twice"),
        ("Add -i nowhere.npy -i 1", 5, "no such file"),
        ("TopK --opset 24 -i [1.5] -i K=[1] --outputs 3", 5, "TopK-24 has 2 outputs, not 3"),
        ("MatMul -i [1.5,2] -i [1.5]", 6, "MatMul"),
        ("BatchNormalization --opset 13 -i x", 5, "neither a file nor a value"),
        ("Upsample -i 1", 5, "deprecated"),
    ],
)
def test_errors(shell, words, code, text):
    result = shell("apply", *words.split())
    assert result.exit_code == code, result.stderr
    assert text in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (("--expect", "[-1, 2]"), 0, "agrees"),
        (("--expect", "Y=[-1, 2]"), 0, "Y  agrees"),
        (("--expect", "[-1, 3]"), 1, "Y[1]  2, expected 3"),
        (("--expect", "[-1, 3]", "--atol", "1"), 0, "agrees"),
        (("--expect", "[-1, 2.0000002]", "--max-ulp", "1"), 0, "max ulp 1"),
        (("--stats",), 0, "mean"),
        (("--hash",), 0, "float32[2]"),
        (("--reference",), 0, "-1  2"),
        (("--stats", "--format", "json"), 0, '"mean": 0.5'),
        (("--format", "json", "--expect", "[-1, 3]"), 1, '"agrees": false'),
        (("--rtol", "1"), 2, "for what is compared"),
        (("--expect", "Z=[-1, 2]"), 5, "Z"),
        (("--show", "--format", "json"), 2, "both write to standard output"),
    ],
)
def test_what_comes_out_is_told_and_compared_as_by_run(shell, more, code, words):
    result = shell("apply", "Neg", "-i", "[1.0, -2]", *more)
    assert result.exit_code == code, result.output
    assert words in result.output
