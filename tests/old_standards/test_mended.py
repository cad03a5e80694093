"""What is wrong with a known failure is what its reason says: with that mended and nothing else, the case passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import onnx
import pytest
from conformance.test_conformance import assert_same
from old_standards.known_failures import KNOWN_FAILURES
from old_standards.wheels import load_old_cases, read_data_sets
from onnx import ModelProto

import onnxeval

pytestmark = pytest.mark.slow


@dataclass
class Data:
    """A case to be mended in place."""

    model: ModelProto
    feeds: dict[str, Any]
    wanted: list[Any]

    @property
    def attributes(self) -> dict[str, Any]:
        (node,) = self.model.graph.node
        return {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}

    def set_attribute(self, name: str, value: Any) -> None:
        (node,) = self.model.graph.node
        kept = [entry for entry in node.attribute if entry.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])

    def feed(self, name: str, value: Any) -> None:
        (declared,) = (entry for entry in self.model.graph.input if entry.name == name)
        for dim, size in zip(declared.type.tensor_type.shape.dim, value.shape, strict=True):
            dim.dim_value = size
        self.feeds[name] = np.asarray(value, self.feeds[name].dtype)


def add_attribute(name: str, value: Any) -> Callable[[Data], None]:
    return lambda data: data.set_attribute(name, value)


def take_the_indices_of_max_pool(data: Data) -> None:
    data.feed("xI", np.flatnonzero(data.wanted[0]).reshape(data.feeds["xI"].shape))


def take_the_order_of_the_indices(data: Data) -> None:
    data.wanted[0] = data.feeds["X"][data.wanted[1]]


def feed_the_declared_shape(data: Data) -> None:
    data.feed("like", np.broadcast_to(data.feeds["like"], data.feeds["input"].shape))


def feed_what_is_in_range(data: Data) -> None:
    x, numbers = data.feeds["input"], data.wanted[0].astype(int)
    data.feed("input", np.where(abs(x - numbers) < 1, x, numbers))


def feed_six_for_nan(data: Data) -> None:
    data.feed("input", np.nan_to_num(data.feeds["input"], nan=6, posinf=np.inf, neginf=-np.inf))


def saturate(data: Data) -> None:
    a, b, y = data.feeds["a"], data.feeds["b"], data.wanted[0]
    feeds = {name: value.astype(float) for name, value in data.feeds.items()}
    product = (a - feeds["a_zero_point"]) * feeds["a_scale"] @ ((b - feeds["b_zero_point"]) * feeds["b_scale"])
    exact = np.rint(product / feeds["y_scale"]) + feeds["y_zero_point"]
    data.wanted[0] = np.where(abs(exact - y) < 2, y, np.clip(exact, -128, 127)).astype(y.dtype)


def cut_the_caches(data: Data) -> None:
    for name in ("cos_cache", "sin_cache"):
        data.feed(name, data.feeds[name][..., : data.attributes["rotary_embedding_dim"] // 2])


def move_the_heads_inwards(data: Data) -> None:
    for name in ("Q", "K", "V"):
        x, heads = data.feeds[name], data.attributes["q_num_heads" if name == "Q" else "kv_num_heads"]
        batch, length, size = x.shape
        data.feed(name, x.reshape(batch, heads, length, size // heads).swapaxes(1, 2).reshape(x.shape))


def bring_query_heads_together(data: Data) -> None:
    """The query heads of a key head become neighbours."""
    kv_heads, heads = data.feeds["K"].shape[1], data.feeds["Q"].shape[1]
    order = np.arange(heads).reshape(-1, kv_heads).T.ravel()
    data.feed("Q", data.feeds["Q"][:, order])
    data.wanted[0] = data.wanted[0][:, order]


def bring_query_heads_together_3d(data: Data) -> None:
    move_the_heads_inwards(data)
    kv_heads, heads = data.attributes["kv_num_heads"], data.attributes["q_num_heads"]
    order = np.arange(heads).reshape(-1, kv_heads).T.ravel()

    def reordered(x: Any) -> Any:
        return x.reshape(*x.shape[:2], heads, -1)[:, :, order].reshape(x.shape)

    data.feed("Q", reordered(data.feeds["Q"]))
    data.wanted[0] = reordered(data.wanted[0])


def number_the_modes_anew(data: Data) -> None:
    data.set_attribute("qk_matmul_output_mode", {0: 0, 1: 2, 2: 1, 3: 3}[data.attributes["qk_matmul_output_mode"]])
    if data.feeds["Q"].ndim == 3:
        move_the_heads_inwards(data)


#: The first pattern that fits a case tells how to mend it; None where only other outputs would do.
MENDS: dict[str, Callable[[Data], None] | None] = {
    "*_maxunpool_*": take_the_indices_of_max_pool,
    "*_nearest_ceil_half_pixel": add_attribute("nearest_mode", "ceil"),
    "*_nearest_floor_align_corners": add_attribute("nearest_mode", "floor"),
    "*_nearest_round_prefer_ceil_asymmetric": add_attribute("nearest_mode", "round_prefer_ceil"),
    "*_unique_not_sorted_without_axis": take_the_order_of_the_indices,
    "*_adam_multiple": add_attribute("epsilon", 0.01),
    "*_castlike_*": feed_the_declared_shape,
    "*_qlinearmatmul_*": saturate,
    "*_cast_*INT4": feed_what_is_in_range,
    "*_cast_*FLOAT4E2M1": feed_six_for_nan,
    "*_rotary_embedding_*": cut_the_caches,
    "*_attention_*_qk_matmul_softcap": None,
    "*_attention_*_qk_matmul_bias": number_the_modes_anew,
    "*_attention_3d_gqa*": bring_query_heads_together_3d,
    "*_attention_3d*": move_the_heads_inwards,
    "*_attention_4d_gqa*": bring_query_heads_together,
    "*_dft_inverse*": None,
    "*_roialign_mode_max": None,
}


def find_mend(failure: str) -> Callable[[Data], None] | None:
    return next(mend for pattern, mend in MENDS.items() if fnmatchcase(failure, pattern))


@pytest.mark.parametrize("failure", [failure for failure in KNOWN_FAILURES if find_mend(failure)])
def test_the_mended_case_passes(failure: str) -> None:
    version, _, name = failure.partition("/")
    case = load_old_cases(version)[name]
    for feeds, wanted in read_data_sets(case):
        data = Data(ModelProto.FromString(case.model.SerializeToString()), dict(feeds), list(wanted))
        find_mend(failure)(data)
        got = onnxeval.load(data.model).run(data.feeds)
        for one, other in zip(got.values(), data.wanted, strict=True):
            assert_same(one, other, case)
