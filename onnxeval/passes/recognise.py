"""Operators that a model spells out in smaller ones become one step: activations, normalisations, attention."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from onnxeval.ops._attention import attend
from onnxeval.passes._kernels import (
    OverLastAxis,
    layer_normalisation,
    rms_normalisation,
    rotate_halves,
)
from onnxeval.passes._patterns import Match, Matcher, operators_of, parsed
from onnxeval.passes._rewrite import Known, count_readers, op_type, producers_of, rebuilt, standard_step, without_dead
from onnxeval.plan import Plan, Step
from onnxeval.registry import Kernel

#: The step that an expression becomes, its label aside; None where an attribute or a constant is not as it must be.
Build: TypeAlias = Callable[[Match, Matcher], Step | None]


def recognise(plan: Plan, _: Known) -> Plan:
    """The plan with the expressions of `RULES` as one step each; a step inside that others read keeps it from it."""
    there = {op_type(step) for step in plan.steps}
    by_root: dict[str, list[tuple[str, Build]]] = {}
    for text, build, operators in _rules():
        if operators <= there:
            for op in _roots(text):
                by_root.setdefault(op, []).append((text, build))
    if not by_root:
        return plan
    steps: list[Step | None] = list(plan.steps)
    places = {id(step): place for place, step in enumerate(plan.steps)}
    matcher = Matcher(plan.constants, producers_of(plan.steps), count_readers(plan))
    # From the end, so that the widest expression is found before those inside it
    for place in range(len(steps) - 1, -1, -1):
        step = steps[place]
        if step is None or step is not plan.steps[place]:
            continue
        for text, build in by_root.get(op_type(step), ()):
            match = matcher.find(text, step)
            if match is None or any(steps[places[id(part)]] is not part for part in match.steps):
                continue
            whole = build(match, matcher)
            if whole is not None:
                parts = sorted((*match.steps, *match.further), key=lambda part: places[id(part)])
                for part in parts:
                    steps[places[id(part)]] = None
                steps[place] = whole._replace(label=" + ".join(part.label for part in parts))
                break
    found = [step for step in steps if step is not None]
    if len(found) == len(steps):
        return plan
    return rebuilt(plan, without_dead(found, plan.outputs), plan.constants)


@cache
def _rules() -> list[tuple[str, Build, frozenset[str]]]:
    """The rules, with the operators that each is not without."""
    return [(text, build, operators_of(text)) for text, build in RULES]


def _roots(text: str) -> tuple[str, ...]:
    """The operators that the last step of an expression may have."""
    tree = parsed(text)
    assert not isinstance(tree, str | float)
    return ("Mul", "Div") if tree.op in ("Mul", "Div") else (tree.op,)


def _standard(match: Match, op: str, *names: str, **attributes: Any) -> Step:
    """An operator of the standard on values of the expression."""
    inputs = tuple(match.names[name] for name in names)
    return standard_step(match.steps[0], op, inputs, match.steps[0].outputs[0], **attributes)


def _own(match: Match, kernel: Kernel, *names: str, **attributes: Any) -> Step:
    """A kernel that no operator is, on values of the expression."""
    inputs = tuple(match.names[name] for name in names)
    root = match.steps[0]
    return root._replace(
        kernel=kernel,
        inputs=inputs,
        outputs=root.outputs[:1],
        attributes=attributes,
        injected=frozenset(),
        schema=None,
        fused=tuple(op_type(step) for step in (*match.steps, *match.further)),
        spelled_out=None,
    )


# Activations


def _unary(op: str, **attributes: Any) -> Build:
    return lambda match, _: _standard(match, op, "x", **attributes)


# Normalisations: over the last axis, in float32, where the standard's operators compute as the expression does


def _last_axis(step: Step, matcher: Matcher) -> bool:
    """Whether a reduction is over the last axis alone and keeps it."""
    if len(step.inputs) > 1:
        given = matcher.constants.get(step.inputs[1])
        axes = None if given is None else given.tolist()
    else:
        axes = step.attributes.get("axes")
    return axes is not None and list(axes) == [-1] and step.attributes["keepdims"] == 1


def _epsilon(match: Match, matcher: Matcher) -> float | None:
    value = matcher.constants.get(match.names["epsilon"])
    return None if value is None or value.size != 1 or value.dtype != np.float32 else float(value.item())


def _is_vector(name: str, matcher: Matcher) -> bool:
    value = matcher.constants.get(name)
    return value is not None and value.dtype == np.float32 and value.ndim == 1 and value.size > 1


def _reductions_fit(match: Match, matcher: Matcher) -> bool:
    return all(_last_axis(step, matcher) for step in match.steps if op_type(step).startswith("Reduce"))


def _layer_normalization(match: Match, matcher: Matcher) -> Step | None:
    names, epsilon = match.names, _epsilon(match, matcher)
    if epsilon is None or not _reductions_fit(match, matcher):
        return None
    if not (_is_vector(names["scale"], matcher) and _is_vector(names["bias"], matcher)):
        return None
    step = _standard(match, "LayerNormalization", "x", "scale", "bias", axis=-1, epsilon=epsilon, stash_type=1)
    return step.running(OverLastAxis(step.kernel, layer_normalisation))


def _rms_normalization(match: Match, matcher: Matcher) -> Step | None:
    epsilon = _epsilon(match, matcher)
    if epsilon is None or not _reductions_fit(match, matcher) or not _is_vector(match.names["scale"], matcher):
        return None
    step = _standard(match, "RMSNormalization", "x", "scale", axis=-1, epsilon=epsilon, stash_type=1)
    return step.running(OverLastAxis(step.kernel, rms_normalisation))


def _softmax(match: Match, matcher: Matcher) -> Step | None:
    return _standard(match, "Softmax", "x", axis=-1) if _reductions_fit(match, matcher) else None


# Attention


def _attention(match: Match, matcher: Matcher) -> Step | None:
    guarded = any(op_type(step) == "IsNaN" for step in match.steps)
    softmax = match.only("Softmax")
    if softmax.schema is None or softmax.schema.key.since_version < 13 or softmax.attributes["axis"] != -1:
        return None
    scale = 1.0
    for name, inverse in (("scale", False), ("divisor", True)):
        if name in match.names:
            value = matcher.constants.get(match.names[name])
            if value is None or value.size != 1 or value.ndim > 1 or value.dtype.kind != "f" or not value.item():
                return None
            scale = 1 / float(value.item()) if inverse else float(value.item())
    names = ("query", "key", "value", *(("mask",) if "mask" in match.names else ()))
    return _own(match, attend, *names, scale=scale, nan_to_zero=guarded)


def _rotation(match: Match, matcher: Matcher) -> Step | None:
    """Both slices over the last axis, from and to the half of it: of a size that the angles' last axis has."""
    bounds = []
    for half in ("second", "first"):
        for what in ("start", "end", "axis", "step"):
            value = matcher.constants.get(match.names[f"{half}_{what}"])
            if value is None or value.size != 1:
                return None
            bounds.append(int(value.item()))
    second, end, second_axis, second_step, first, half_size, first_axis, first_step = bounds
    angles = matcher.constants.get(match.names["cos"])
    concat = match.only("Concat")
    fits = second == half_size > 0 == first and second_axis == first_axis == concat.attributes["axis"] == -1
    if not fits or second_step != 1 or first_step != 1 or end < 2 * half_size:
        return None
    if angles is None or angles.shape[-1:] != (2 * half_size,):
        return None
    return _own(match, rotate_halves, "x", "cos", "sin")


# Dynamic quantisation


def _dynamic_product(match: Match, matcher: Matcher) -> Step | None:
    """A product of a quantised value with constant weights, as floats; quantised in it where nobody else needs that."""
    from onnxeval.ops.contrib.dynamic_quantize import (
        dynamic_quantize_matmul,
        dynamic_quantize_matmul_of_tanh,
        matmul_integer_to_float,
    )

    names = match.names
    quantise = matcher.producers.get(names["a"])
    if quantise is None or op_type(quantise) != "DynamicQuantizeLinear":
        return None
    if quantise.outputs != (names["a"], names["a_scale"], names["a_zero"]):
        return None
    weights, scale, zero, bias = (matcher.constants.get(names.get(n, "")) for n in ("b", "b_scale", "b_zero", "bias"))
    if weights is None or weights.ndim != 2 or scale is None or scale.dtype != np.float32:
        return None
    columns = weights.shape[1:]
    if any(p is not None and p.shape not in ((), (1,), columns) for p in (scale, zero)):
        return None
    if ("b_zero" in names and zero is None) or ("bias" in names and (bias is None or bias.shape != columns)):
        return None
    rest = (names.get("b_zero", ""), names.get("bias", ""))
    if all(matcher.readers[name] == 1 for name in quantise.outputs):
        constant = (names["b"], names["b_scale"], *rest)
        match.further.append(quantise)
        curve = _lone(quantise.inputs[0], "Tanh", matcher)
        if curve is None:
            return _own(match, dynamic_quantize_matmul)._replace(inputs=(quantise.inputs[0], *constant))
        total = _lone(curve.inputs[0], "Add", matcher)
        terms = (curve.inputs[0], "") if total is None else total.inputs
        match.further.extend(step for step in (curve, total) if step is not None)
        return _own(match, dynamic_quantize_matmul_of_tanh)._replace(inputs=(*terms, *constant))
    own = ("a", "b", "a_scale", "b_scale", "a_zero")
    whole = _own(match, matmul_integer_to_float, *own)
    return whole._replace(inputs=(*whole.inputs, *rest))


def _lone(name: str, op: str, matcher: Matcher) -> Step | None:
    """The step that makes a value which nobody else reads, where it is of this operator."""
    step = matcher.producers.get(name)
    return step if step is not None and op_type(step) == op and matcher.readers[name] == 1 else None


_GELU = _unary("Gelu", approximate="none")
_GELU_TANH = _unary("Gelu", approximate="tanh")
_SQRT_2 = "1.4142135623730951"
_INNER_TANH = "Tanh(0.7978845608028654 * (x + 0.044715 * {cube}))"
_DEVIATION = "(x - ReduceMean(x))"

#: Expressions and what they become, wider ones before those inside them.
RULES: tuple[tuple[str, Build], ...] = (
    *(
        (text, _GELU)
        for text in (
            f"x * (Erf(x / {_SQRT_2}) + 1) * 0.5",
            f"x * ((Erf(x / {_SQRT_2}) + 1) * 0.5)",
            f"x * 0.5 * (Erf(x / {_SQRT_2}) + 1)",
        )
    ),
    *(
        (text.format(_INNER_TANH.format(cube=cube)), _GELU_TANH)
        for text in ("x * 0.5 * ({} + 1)", "x * ({} + 1) * 0.5", "x * (({} + 1) * 0.5)")
        for cube in ("x ** 3", "x * x * x", "(x * (x * x))")
    ),
    ("x * Sigmoid(x)", _unary("Swish", alpha=1.0)),
    *(
        (text, _unary("HardSwish"))
        for text in ("x * Clip(x + 3, 0, 6) / 6", "x * (Clip(x + 3, 0, 6) / 6)", "x / 6 * Clip(x + 3, 0, 6)")
    ),
    ("x * HardSigmoid(x)", lambda match, _: _hard_swish(match)),
    *(
        (f"{deviation_over_root} * scale + bias", _layer_normalization)
        for deviation_over_root in (
            f"{_DEVIATION} / Sqrt(ReduceMean({_DEVIATION} ** 2) + epsilon)",
            f"{_DEVIATION} * (1 / Sqrt(ReduceMean({_DEVIATION} ** 2) + epsilon))",
        )
    ),
    ("x / Sqrt(ReduceMean(x ** 2) + epsilon) * scale", _rms_normalization),
    ("x * (1 / Sqrt(ReduceMean(x ** 2) + epsilon)) * scale", _rms_normalization),
    ("Exp(x - ReduceMax(x)) / ReduceSum(Exp(x - ReduceMax(x)))", _softmax),
    *(
        (f"MatMul({weights.format(scores)}, value)", _attention)
        for weights in ("Where(IsNaN(Softmax({0})), 0, Softmax({0}))", "Softmax({0})")
        for scores in (
            "MatMul(query, key) * scale + mask",
            "MatMul(query, key) / divisor + mask",
            "MatMul(query, key) * scale",
            "MatMul(query, key) / divisor",
            "MatMul(query, key) + mask",
            "MatMul(query, key)",
        )
    ),
    *(
        (f"Cast(MatMulInteger({factors})) * (a_scale * b_scale){bias}", _dynamic_product)
        for bias in (" + bias", "")
        for factors in ("a, b, a_zero, b_zero", "a, b, a_zero")
    ),
    (
        "x * cos + Concat(Neg(Slice(x, second_start, second_end, second_axis, second_step)), "
        "Slice(x, first_start, first_end, first_axis, first_step)) * sin",
        _rotation,
    ),
)


def _hard_swish(match: Match) -> Step | None:
    """HardSwish, but of the sixth that is stored as a float32: float64 tells them apart."""
    from onnxeval.ops.math.rectifiers import times_hard_sigmoid

    curve = match.only("HardSigmoid").attributes
    fits = abs(curve["alpha"] - 1 / 6) < 1e-7 and curve["beta"] == 0.5
    return _standard(match, "HardSwish", "x", **curve).running(times_hard_sigmoid) if fits else None
