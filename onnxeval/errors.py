"""Every error a user can meet, each with the exit code of the command line.

    OnnxEvalError
    ├── ModelError             3   not a model, contradicts itself, missing or escaping external data
    ├── UnsupportedOperators   4   operators without a kernel, with the nearest version there is
    ├── InputError             5   a feed that is missing, unknown, unreadable or of the wrong dtype or shape
    ├── NodeError              6   a node that failed, with its place and its inputs
    ├── ResourceLimitError     7   more memory, steps or time than allowed
    ├── OutputError            8   cannot write
    ├── MissingExtra           9   an optional dependency is not installed
    └── EngineError           10   another engine cannot run the model

Kernels raise plain ``ValueError`` or ``TypeError``; the executor turns them into `NodeError`.
Anything else that escapes is a fault of onnxeval itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class OnnxEvalError(Exception):
    """The base of all errors that onnxeval raises on purpose.

    ``str(error)`` is the whole message; ``hint`` is what the user may try next, or "".
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(_readable(message))
        self.hint = hint

    def located(self, label: str) -> OnnxEvalError:
        """The same error, said of the node ``label``; called once for each graph around it."""
        self.args = (f"{label} > {self}" if self._has_place else f"{label}: {self}",)
        self._has_place = True
        return self

    _has_place = False

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickle keeps, so that errors cross to other processes; __init__ takes other arguments than ``args``."""
        return _restored, (type(self), self.args, self.__dict__)


#: Characters of a message: a list of a million axes tells nobody more than its beginning and its end.
_LONGEST = 4000


def _readable(message: str) -> str:
    """A message without the middle of what is too long to read."""
    left_out = len(message) - _LONGEST
    if left_out <= 0:
        return message
    half = _LONGEST // 2
    return f"{message[:half]} … {left_out:,} characters … {message[-half:]}"


def _restored(kind: type[OnnxEvalError], args: tuple[Any, ...], state: Mapping[str, Any]) -> OnnxEvalError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ModelError(OnnxEvalError):
    """The file is not a model, or the model contradicts itself or the standard."""

    exit_code = 3


class UnsupportedOperators(OnnxEvalError):  # noqa: N818  # what is wrong, in the plural
    """The model needs operators that have no kernel.

    ``missing`` holds a (node, reason) for each; the message gathers the nodes of one reason in a line.
    """

    exit_code = 4

    def __init__(self, missing: Sequence[tuple[str, str]], *, hint: str = "") -> None:
        self.missing = tuple(missing)
        nodes: dict[str, list[str]] = {}
        for node, reason in self.missing:
            nodes.setdefault(reason, []).append(node)
        lines = "\n".join(f"  {reason}: {_some(labels)}" for reason, labels in nodes.items())
        have = "has" if len(self.missing) == 1 else "have"
        super().__init__(f"{len(self.missing)} of the model's nodes {have} no kernel:\n{lines}", hint=hint)


def _some(labels: Sequence[str], most: int = 4) -> str:
    """The first few labels, and how many more there are."""
    rest = len(labels) - most
    return ", ".join(labels[:most]) + (f" and {rest} more" if rest > 0 else "")


class InputError(OnnxEvalError):
    """A feed is missing, unknown, unreadable, or not what the model declares."""

    exit_code = 5


class NodeError(OnnxEvalError):
    """A node failed while the model ran.

    ``path`` holds the labels of the nodes from the outermost graph to the one that failed, ``inputs``
    a description of each of its inputs, ``cause`` the exception that its kernel raised.
    """

    exit_code = 6

    def __init__(self, path: Sequence[str], inputs: Sequence[str], cause: Exception) -> None:
        self.path = tuple(path)
        self.inputs = tuple(inputs)
        self.cause = cause
        text = str(cause) or "no further detail"
        super().__init__(
            f"{' > '.join(self.path)}\n  inputs: {', '.join(self.inputs) or 'none'}\n  {type(cause).__name__}: {text}"
        )


class ResourceLimitError(OnnxEvalError):
    """Running on would take more memory, steps or time than allowed."""

    exit_code = 7


class OutputError(OnnxEvalError):
    """A result cannot be written."""

    exit_code = 8


class MissingExtra(OnnxEvalError):  # noqa: N818  # what is wrong
    """An optional dependency is needed and not installed."""

    exit_code = 9

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra `{extra}`", hint=f"pip install 'onnxeval[{extra}]'")


class EngineError(OnnxEvalError):
    """Another engine, that results are to be held against, cannot run the model."""

    exit_code = 10
