"""The conformance cases of the installed onnx as jobs."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from onnx import ModelProto

from onnxeval.comparing import Tolerance
from onnxeval.suite import Case, load_cases
from onnxeval.testing.jobs import Data, Job

#: Their numbers are random by definition.
RANDOM = "test_bernoulli"
_EXPANDED = "_expanded"


@cache
def data_at_fault() -> dict[str, str]:
    """The cases that cannot pass, each with the reason: what they expect is wrong."""
    return tomllib.loads(Path(__file__).with_name("data_at_fault.toml").read_text())


def suite_jobs(engine: str, patterns: Sequence[str] = ()) -> list[Job]:
    """A job for each case that one of the patterns matches, for each case without any."""
    chosen = [case for case in load_cases() if not patterns or any(fnmatchcase(case.name, p) for p in patterns)]
    groups = {case.name: _operator(case.model) for case in load_cases() if case.kind == "node"}
    return [_job(case, groups, engine) for case in chosen]


def _job(case: Case, groups: dict[str, str], engine: str) -> Job:
    base = case.name.partition(_EXPANDED)[0]
    return Job(
        name=case.name,
        group=groups.get(base, groups.get(case.name, "")) if case.kind == "node" else case.kind,
        model=case.model.SerializeToString(),
        data=tuple(Data(list(inputs), list(outputs)) for inputs, outputs in case.data_sets),
        tolerance=Tolerance(case.rtol, case.atol),
        only_form=case.name.startswith(RANDOM),
        known=data_at_fault().get(case.name, "") if engine == "onnxeval" else "",
    )


def _operator(model: ModelProto) -> str:
    """The operator that a case is about: the only one, or the last."""
    node = model.graph.node[-1]
    return f"{node.domain}.{node.op_type}" if node.domain else str(node.op_type)
