"""Whole processes: what the shell waits for when a model is run once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from onnxeval.benchmark import stopwatch
from onnxeval.benchmark.workers import EngineFailed
from onnxeval.threads import environment

#: The shortest script that does what `onnxeval run` does, by engine. Arguments: model, pickled feeds, threads.
SCRIPTS = {
    "onnxruntime": """
import pickle, sys, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
results = session.run(None, pickle.load(open(sys.argv[2], "rb")))
for output, result in zip(session.get_outputs(), results):
    print(output.name, output.type, getattr(result, "shape", ""), result)
""",
    "reference": """
import pickle, sys
from onnx.reference import ReferenceEvaluator
session = ReferenceEvaluator(sys.argv[1])
results = session.run(None, pickle.load(open(sys.argv[2], "rb")))
for name, result in zip(session.output_names, results):
    print(name, getattr(result, "dtype", ""), getattr(result, "shape", ""), result)
""",
}


@dataclass(slots=True)
class Cold:
    """What whole processes of one engine took."""

    seconds: list[float] = field(default_factory=list)
    peak_memory: int | None = None


def own_command(model: str, feeds: str | None, kernels: Sequence[str] = (), *, fast_math: bool = False) -> list[str]:
    """The command that runs a model once; ``feeds`` is a path that `onnxeval run --input` reads, None for no inputs."""
    given = ["--input", feeds] if feeds is not None else []
    given += [word for path in kernels for word in ("--ops", path)]
    given += ["--fast-math"] * fast_math
    return [sys.executable, "-P", "-m", "onnxeval", "run", model, *given]


def others_command(engine: str, model: str, pickled: str, threads: int) -> list[str]:
    """The command by which another engine runs a model once on pickled feeds."""
    return [sys.executable, "-c", SCRIPTS[engine], model, pickled, str(threads)]


class Stopwatch:
    """A small process that times others. Use it in a ``with`` statement."""

    def __init__(self, threads: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(stopwatch.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Packages are installed with their bytecode; one that runs from its source tree writes it at its first run.
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment(threads)},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def time(self, command: list[str], into: Cold) -> float:
        """Run a command and add what it took; its seconds. Raises EngineFailed where it fails."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None  # noqa: PT018  # both are pipes
        print(json.dumps(command), file=requests, flush=True)
        answer = json.loads(answers.readline())
        if answer["code"]:
            said = answer["error"].strip()
            summary = said.rpartition("\n")[2] or f"exit code {answer['code']}"
            raise EngineFailed(f"as a process: {summary}", said)
        into.seconds.append(answer["seconds"])
        if answer["peak_memory"] is not None:
            into.peak_memory = max(into.peak_memory or 0, answer["peak_memory"])
        return into.seconds[-1]
