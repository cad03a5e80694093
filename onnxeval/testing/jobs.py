"""What is tested, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from onnxeval.comparing import Comparison, Tolerance
from onnxeval.values import Value

#: ``passed``; ``failed``: another result; ``error``: no result; ``crashed``: the process is gone or was too slow;
#: ``known``: not passed, for a reason that lies in the data.
Status: TypeAlias = Literal["passed", "failed", "error", "crashed", "known"]


@dataclass(frozen=True, slots=True)
class Data:
    """Inputs and expected outputs in the order of the graph."""

    inputs: list[Value]
    expected: list[Value]


@dataclass(frozen=True, slots=True)
class Job:
    """A model with one or several sets of data.

    ``group`` is what it is counted under: the model's path, or an operator. ``model`` is a path or the bytes of a
    model, ``data`` the sets: folders or files, or their values. ``known`` says why the data is wrong, where it is;
    ``only_form`` asks for no more than types and shapes, where values are random.
    """

    name: str
    group: str
    model: str | bytes = field(repr=False)
    data: tuple[str | Data, ...] = field(repr=False)
    tolerance: Tolerance = field(default_factory=Tolerance)
    only_form: bool = False
    known: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job; ``comparisons`` are those of the first set of data that did not pass, or of the last."""

    job: Job
    status: Status
    seconds: float
    message: str = ""
    comparisons: tuple[Comparison, ...] = ()

    def __str__(self) -> str:
        return self.job.name
