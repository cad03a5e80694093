"""Gradients held against central differences, in float64 and along random directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

import onnxeval

DOMAIN = "ai.onnx.preview.training"
NEWEST = 28


def gradient(xs: Sequence[str], y: str, outputs: Sequence[str], zs: Sequence[str] = (), inputs=None) -> NodeProto:
    """A node that differentiates ``y`` at the values of the same names, or at ``inputs``."""
    attributes: dict[str, Any] = {"zs": list(zs)} if zs else {}
    given = [*xs, *zs] if inputs is None else inputs
    return helper.make_node("Gradient", given, outputs, "gradient", domain=DOMAIN, xs=list(xs), y=y, **attributes)


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Sequence[str],
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = NEWEST,
    functions: Sequence[Any] = (),
) -> onnxeval.Model:
    """A model whose inputs and outputs are of any type."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [onnx.ValueInfoProto(name=name) for name in inputs],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1), helper.make_opsetid("local", 1)]
    return onnxeval.load(helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10))


@dataclass(frozen=True)
class Case:
    """One node: arrays by position, None where absent; float64 inputs are differentiated with respect to."""

    op_type: str
    inputs: Sequence[np.ndarray | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = NEWEST
    outputs: int = 1
    fixed: tuple[int, ...] = ()
    #: Which outputs the target is made of; all that are float64, by default.
    counted: tuple[int, ...] | None = None
    rtol: float = 1e-6
    step: float = 1e-5

    def __str__(self) -> str:
        attributes = ",".join(f"{name}={value}" for name, value in self.attributes.items())
        return f"{self.op_type}@{self.opset}({attributes})"


def check(case: Case) -> None:
    """First and second derivatives of a weighted sum of the node's outputs."""
    rng = np.random.default_rng(0)
    feeds = {f"i{place}": value for place, value in enumerate(case.inputs) if value is not None}
    xs = [
        f"i{place}"
        for place, value in enumerate(case.inputs)
        if value is not None and value.dtype == np.float64 and place not in case.fixed
    ]
    names = ["" if value is None else f"i{place}" for place, value in enumerate(case.inputs)]
    outputs = [f"o{place}" for place in range(case.outputs)]
    node = helper.make_node(case.op_type, names, outputs, "node", **case.attributes)
    results = model_of([node], [*feeds], outputs, opset=case.opset).run(feeds)
    counted = [
        f"o{place}"
        for place in (range(case.outputs) if case.counted is None else case.counted)
        if results[f"o{place}"].dtype == np.float64
    ]
    weights = {f"w_{name}": rng.normal(size=results[name].shape) for name in counted}
    for x in xs:
        weights[f"v_{x}"] = rng.normal(size=feeds[x].shape)
    firsts, seconds = [f"g_{x}" for x in xs], [f"h_{x}" for x in xs]
    nodes = [node, *_weighted_sum("y", counted, "w"), gradient(xs, "y", firsts)]
    nodes += _weighted_sum("z", xs, "v", of="g_")
    nodes += [gradient(xs, "z", seconds)]
    model = model_of(nodes, [*feeds], ["y", *firsts, "z", *seconds], weights, case.opset)

    got = model.run(feeds)
    for x in xs:
        for name in (f"g_{x}", f"h_{x}"):
            assert got[name].shape == feeds[x].shape
            assert got[name].dtype == np.float64
    for _ in range(2):
        direction = {x: rng.normal(size=feeds[x].shape) for x in xs}
        for target, prefix in (("y", "g"), ("z", "h")):
            ahead, behind = (
                model.run({**feeds, **{x: feeds[x] + side * case.step * direction[x] for x in xs}}, [target])[target]
                for side in (1, -1)
            )
            slope = (ahead - behind) / (2 * case.step)
            along = sum(np.sum(got[f"{prefix}_{x}"] * direction[x]) for x in xs)
            np.testing.assert_allclose(along, slope, rtol=case.rtol, atol=case.rtol, err_msg=f"d{target}")


def in_16_bits(cases: Sequence[Case]) -> list[Case]:
    """The cases of the newest versions that do not ask for float64 by an attribute."""
    return [case for case in cases if case.opset == NEWEST and TensorProto.DOUBLE not in case.attributes.values()]


def check_in_16_bits(case: Case) -> None:
    """The gradients of float16 tensors are near those of the same numbers in float64."""
    half, exact = (_gradients(case, dtype) for dtype in (np.float16, np.float64))
    for name, expected in exact.items():
        assert half[name].dtype == np.float16
        assert half[name].shape == expected.shape
        scale = np.abs(expected).max(initial=1)
        np.testing.assert_allclose(half[name].astype(float), expected, rtol=0, atol=0.01 * scale, err_msg=name)


def _gradients(case: Case, dtype: type) -> dict[str, np.ndarray]:
    given = {f"i{place}": value for place, value in enumerate(case.inputs) if value is not None}
    feeds = {
        name: value.astype(np.float16).astype(dtype) if value.dtype == np.float64 else value
        for name, value in given.items()
    }
    xs = [name for name in given if feeds[name].dtype == dtype and int(name[1:]) not in case.fixed]
    names = ["" if value is None else f"i{place}" for place, value in enumerate(case.inputs)]
    outputs = [f"o{place}" for place in range(case.outputs)]
    node = helper.make_node(case.op_type, names, outputs, **case.attributes)
    results = model_of([node], [*feeds], outputs).run(feeds)
    rng = np.random.default_rng(0)
    counted = [name for name, value in results.items() if value.dtype == dtype]
    weights = {f"w_{name}": rng.normal(size=results[name].shape).astype(np.float16).astype(dtype) for name in counted}
    slopes = [f"g_{x}" for x in xs]
    nodes = [node, *_weighted_sum("y", counted, "w"), gradient(xs, "y", slopes)]
    return model_of(nodes, [*feeds], slopes, weights).run(feeds)


def differences(model: onnxeval.Model, feeds: Mapping[str, np.ndarray], name: str, target: str) -> np.ndarray:
    """The slopes of the sum of ``target`` along each element of an input."""
    step = 1e-6
    slopes = np.empty_like(feeds[name])
    for place in np.ndindex(slopes.shape):
        shift = np.zeros_like(slopes)
        shift[place] = step
        ahead, behind = (
            model.run({**feeds, name: feeds[name] + side * shift}, [target])[target].sum() for side in (1, -1)
        )
        slopes[place] = (ahead - behind) / (2 * step)
    return slopes


def _weighted_sum(target: str, names: Sequence[str], weight: str, of: str = "") -> list[NodeProto]:
    """target = the sum of all of_name * weight_name, of rank 0, in nodes that mean the same in every opset."""
    nodes = []
    for name in names:
        nodes.append(helper.make_node("Mul", [of + name, f"{weight}_{name}"], [f"{target}_{name}"]))
        nodes.append(helper.make_node("ReduceSum", [f"{target}_{name}"], [f"{target}_sum_{name}"], keepdims=0))
    return [*nodes, helper.make_node("Sum", [f"{target}_sum_{name}" for name in names], [target])]
