"""Rules on tensors: a minimal tensor that breaks each, and a near miss."""

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, SparseTensorProto, TensorProto

import onnxeval


def check(model: object) -> list[onnxeval.Finding]:
    """The findings, but for what nobody reads: small models hold such things."""
    return onnxeval.check(model, ignore=["*/unused*"])


FLOAT, INT8, INT4, STRING, COMPLEX = (
    TensorProto.FLOAT,
    TensorProto.INT8,
    TensorProto.INT4,
    TensorProto.STRING,
    TensorProto.COMPLEX64,
)
EMPTY = onnx.parser.parse_model('<ir_version: 14, opset_import: ["": 21]> g (float[2] x) => (float[2] y) {y = Neg(x)}')


def holding(*tensors: TensorProto) -> ModelProto:
    proto = ModelProto()
    proto.CopyFrom(EMPTY)
    proto.graph.initializer.extend(tensors)
    return proto


def tensor(data_type: int, *dims: int, **fields: object) -> ModelProto:
    return holding(TensorProto(name="w", data_type=data_type, dims=dims, **fields))


def external(location: str, **entries: object) -> TensorProto:
    proto = TensorProto(name="w", data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        proto.external_data.add(key=key, value=str(value))
    return proto


def sparse(indices: list[int], *shape: int, dims: tuple[int, ...] = (2, 3), count: int | None = None) -> ModelProto:
    count = len(indices) if count is None else count
    values = onnx.helper.make_tensor("w", FLOAT, [count], [1.0] * count)
    places = onnx.helper.make_tensor("", TensorProto.INT64, shape, indices)
    proto = holding()
    proto.graph.sparse_initializer.append(SparseTensorProto(values=values, indices=places, dims=dims))
    return proto


EXAMPLES = {
    "tensor/element-type": (tensor(0, 2, float_data=[1, 2]), tensor(FLOAT, 2, float_data=[1, 2])),
    "tensor/dims": (tensor(FLOAT, -1, float_data=[1]), tensor(FLOAT, 0)),
    "tensor/data-field": (tensor(FLOAT, 2, int64_data=[1, 2]), tensor(INT8, 2, int32_data=[1, 2])),
    "tensor/data-length": (tensor(FLOAT, 2, float_data=[1]), tensor(INT4, 3, raw_data=b"12")),
    "tensor/text": (tensor(STRING, 1, string_data=[b"\xff"]), tensor(STRING, 1, string_data=["ü".encode()])),
    "tensor/external-location": (holding(external("../w.bin")), holding(external("a/w..bin"))),
    "tensor/external-range": (holding(external("w.bin", offset=-4)), holding(external("w.bin", offset=4))),
    "tensor/sparse-shape": (sparse([0, 1], 2, 1), sparse([0, 1, 1, 2], 2, 2, count=2)),
    "tensor/sparse-index": (sparse([0, 6], 2), sparse([0, 5], 2)),
    "tensor/sparse-order": (sparse([3, 2], 2), sparse([0, 2, 1, 0], 2, 2, count=2)),
}


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_model_that_breaks_it(rule: str) -> None:
    assert [finding.rule for finding in check(EXAMPLES[rule][0])] == [rule]


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_near_miss(rule: str) -> None:
    assert check(EXAMPLES[rule][1]) == []


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (tensor(77, 1), "element type 77 is unknown"),
        (tensor(FLOAT, 2**40, 2**40), "make more than 9223372036854775807 elements"),
        (tensor(FLOAT, 2, float_data=[1, 2], raw_data=b"12345678"), "several fields: float_data, raw_data"),
        (tensor(STRING, 1, raw_data=b"a"), "strings cannot stand in raw_data"),
        (tensor(FLOAT, 2, raw_data=b"1234"), "2 elements of float32 take 8 bytes, raw_data has 4"),
        (tensor(FLOAT, 2, raw_data=b"1234567890"), "take 8 bytes, raw_data has 10"),
        (tensor(FLOAT, 2), "take 2 entries, there is no data"),
        (tensor(FLOAT, 0, float_data=[1]), "0 elements of float32 take 0 entries, float_data has 1"),
        (tensor(COMPLEX, 2, float_data=[1, 2]), "take 4 entries, float_data has 2"),
        (tensor(INT4, 5, int32_data=[1, 2]), "take 3 entries, int32_data has 2"),
        (sparse([0, 1], 2, dims=()), "dims [] must be there and positive"),
        (sparse([0, 0, 0, 3], 2, 2, count=2), "index 1 is [0, 3], dims are [2, 3]"),
        (sparse([0, 1, 0, 1], 2, 2, count=2), "index 1 [0, 1] does not follow [0, 1]"),
    ],
)
def test_messages_hold_the_values(proto: ModelProto, message: str) -> None:
    assert message in check(proto)[0].message


@pytest.mark.parametrize(
    ("data_type", "fields"),
    [
        (TensorProto.FLOAT6E2M3, {"int32_data": [1] * 3}),
        (TensorProto.FLOAT6E2M3, {"raw_data": b"123"}),
        (TensorProto.UINT2, {"raw_data": b"1"}),
        (TensorProto.UINT2, {"int32_data": [1]}),
        (TensorProto.BFLOAT16, {"int32_data": [1] * 3}),
        (TensorProto.UINT32, {"uint64_data": [1] * 3}),
        (TensorProto.DOUBLE, {"double_data": [1] * 3}),
        (TensorProto.BOOL, {"raw_data": b"\0\1\0"}),
        (TensorProto.COMPLEX128, {"double_data": [1] * 6}),
    ],
)
def test_every_layout_of_three_elements(data_type: int, fields: dict[str, object]) -> None:
    assert check(tensor(data_type, 3, **fields)) == []


def test_tensors_in_attributes() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g () => (float[2] y) {y = Constant<value = float[2] {1, 2}>()}'
    )
    model.graph.node[0].attribute[0].t.float_data.append(3)
    (finding,) = check(model)
    assert (finding.rule, finding.where) == ("tensor/data-length", 'graph/node[0] (Constant) attribute "value"')


# External data


def beside(folder: Path, proto: TensorProto, data: bytes | None = b"12345678") -> list[onnxeval.Finding]:
    """The findings of a model saved in a folder with a file w.bin."""
    if data is not None:
        (folder / "w.bin").write_bytes(data)
    (folder / "m.onnx").write_bytes(holding(proto).SerializeToString())
    return check(folder / "m.onnx")


@pytest.mark.parametrize(
    ("proto", "rule"),
    [
        (external("w.bin"), None),
        (external("w.bin", offset=0, length=8), None),
        (external("w.bin", offset=4, length=8), "tensor/external-range"),
        (external("w.bin", offset=4), "tensor/external-range"),
        (external("w.bin", offset=-4), "tensor/external-range"),
        (external("w.bin", length="eight"), "tensor/external-range"),
        (external("w.bin", length=4), "tensor/data-length"),
        (external(""), "tensor/external-location"),
        (external("/etc/passwd"), "tensor/external-location"),
        (external("../w.bin"), "tensor/external-location"),
        (external("a/../../w.bin"), "tensor/external-location"),
        (external("nul\0"), "tensor/external-location"),
        (external("v.bin"), "tensor/external-missing"),
    ],
)
def test_external_data(tmp_path: Path, proto: TensorProto, rule: str | None) -> None:
    assert [f.rule for f in beside(tmp_path, proto)] == ([rule] if rule else [])


def test_external_data_behind_a_link_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"12345678")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").symlink_to(tmp_path / "secret")
    assert [f.rule for f in beside(folder, external("w.bin"), None)] == ["tensor/external-location"]


def test_external_data_is_not_looked_for_where_the_model_comes_from_no_file() -> None:
    assert check(holding(external("w.bin"))) == []
    assert [f.rule for f in check(holding(external("../w.bin")))] == ["tensor/external-location"]


def test_data_inside_and_outside(tmp_path: Path) -> None:
    proto = external("w.bin")
    proto.float_data.extend([1, 2])
    assert [f.rule for f in beside(tmp_path, proto)] == ["tensor/data-field"]
