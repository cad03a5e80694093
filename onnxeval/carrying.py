"""State that a model hands back to itself: outputs of one step are inputs of the next (KV caches, recurrent state)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from onnxeval.errors import InputError, OnnxEvalError
from onnxeval.values import EmptyOptional, Value

_STAR = re.compile(r"\*")


def pairs_of(patterns: Sequence[str], outputs: Sequence[str], inputs: Sequence[str]) -> dict[str, str]:
    """Input -> the output that it takes over, for patterns ``OUTPUT=INPUT`` in which each `*` stands for the same text.

    Raises InputError for a pattern that matches nothing, names no input, or gives an input twice.
    """
    pairs: dict[str, str] = {}
    for pattern in patterns:
        for source, sink in _matches(pattern, outputs, inputs).items():
            if pairs.setdefault(sink, source) != source:
                raise InputError(f"the input {sink!r} would be carried from {pairs[sink]!r} and from {source!r}")
    return pairs


def _matches(pattern: str, outputs: Sequence[str], inputs: Sequence[str]) -> dict[str, str]:
    """Output -> input. Names may hold `=`: the first one at which the left side matches outputs parts the two sides."""
    sides = [(pattern[:place], pattern[place + 1 :]) for place, sign in enumerate(pattern) if sign == "="]
    if not sides:
        raise InputError(f"{pattern!r} is not OUTPUT=INPUT", hint="for example present.*=past.*")
    for left, right in sides:
        found = {name: stars for name in outputs if (stars := _stars(left, name)) is not None}
        if not found:
            continue
        pairs = {name: _filled(right, stars) for name, stars in found.items()}
        if unknown := [(name, sink) for name, sink in pairs.items() if sink not in inputs]:
            name, sink = unknown[0]
            raise InputError(
                f"{pattern!r} carries {name!r} to {sink!r}, which is no input of the model",
                hint=f"its inputs: {', '.join(inputs)}",
            )
        return pairs
    raise InputError(f"{pattern!r} matches no output of the model", hint=f"its outputs: {', '.join(outputs)}")


def _stars(pattern: str, name: str) -> tuple[str, ...] | None:
    found = re.fullmatch("(.*)".join(map(re.escape, _STAR.split(pattern))), name, re.DOTALL)
    return found.groups() if found else None


def _filled(pattern: str, stars: tuple[str, ...]) -> str:
    rest = iter(stars)
    return _STAR.sub(lambda _: next(rest, ""), pattern)


def run_steps(
    run: Callable[[Mapping[str, Value]], Mapping[str, Value]],
    feeds: Mapping[str, Value],
    pairs: Mapping[str, str],
    steps: int,
) -> Iterator[Mapping[str, Value]]:
    """What ``run`` makes of the feeds in each step, after which the outputs in ``pairs`` replace inputs.

    An error says in which step it happened.
    """
    feeds = dict(feeds)
    for step in range(steps):
        try:
            results = run(feeds)
        except OnnxEvalError as error:
            raise error.located(f"step {step}") from None
        yield results
        for sink, source in pairs.items():
            value = results[source]
            feeds[sink] = EmptyOptional() if value is None else value
