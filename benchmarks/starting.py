#!/usr/bin/env python3
"""Measure what comes before the second run: importing, reading and compiling, the first run; beside onnxruntime.

    python benchmarks/starting.py                      the models of benchmarks/run.py, and chains of small Adds
    python benchmarks/starting.py --only real/ --rounds 20
    python benchmarks/starting.py --only chain         chains alone

Engines take turns, each time in a new process, and the least time of each stage counts: whatever else happens only adds
to it. The ratio is that of reading and compiling to making a session, which does both. Where the machine is not quiet,
`--clock process_time` counts the time on processors, of all threads of a process.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper
from run import Model, chosen_models

import onnxeval
from onnxeval.random_feeds import make_feeds
from onnxeval.threads import environment

ENGINES = ("onnxeval", "onnxruntime")
LENGTHS = (1_000, 10_000, 100_000)

#: Prints the seconds of each stage. Arguments: engine, model, pickled feeds, threads, clock.
STAGES = """
import sys, time
from onnxeval.benchmark import engines
_, engine, model, feeds, threads, engines_clock = sys.argv
engines.perf_counter = getattr(time, engines_clock)
start = engines.ENGINES[engine]().start(model, open(feeds, "rb").read(), int(threads))
print(start.imports, start.load, start.first_run)
"""


def chain(length: int) -> bytes:
    """A model of so many Adds, each of the one before and a constant."""
    nodes = [helper.make_node("Add", [f"v{place}", "one"], [f"v{place + 1}"]) for place in range(length)]
    inputs, outputs = (helper.make_tensor_value_info(name, 1, [4]) for name in ("v0", f"v{length}"))
    graph = helper.make_graph(nodes, "chain", [inputs], [outputs], [helper.make_tensor("one", 1, [1], [1.0])])
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString())


def chain_line(length: int, options: argparse.Namespace) -> str:
    """Microseconds a node of each stage of a chain, and seconds in all, in this process, which has run one before."""
    clock = getattr(time, options.clock)
    data, feeds = chain(length), {"v0": np.zeros(4, np.float32)}
    onnxeval.load(chain(10)).run(feeds)
    times = []
    for _ in range(max(2, 20_000 // length)):
        begin = clock()
        model = onnxeval.load(data)
        loaded = clock()
        model.plan()
        compiled = clock()
        model.run(feeds)
        times.append((loaded - begin, compiled - loaded, clock() - compiled))
    stages = "".join(f"{min(stage) / length * 1e6:10.2f}" for stage in zip(*times, strict=True))
    return f"{length:9,}{stages}{min(map(sum, times)):10.3f} s"


def stages_of(engine: str, model: Model, feeds: str, options: argparse.Namespace) -> list[float] | None:
    """Milliseconds of importing, loading and the first run in a new process; None where the engine fails."""
    command = [sys.executable, "-c", STAGES, engine, str(model.path), feeds, str(options.threads), options.clock]
    # Packages are installed with their bytecode; one that runs from its source tree writes it at its first run
    surroundings = {**os.environ, **environment(options.threads), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    return None if done.returncode else [1e3 * float(seconds) for seconds in done.stdout.split()]


def model_line(model: Model, options: argparse.Namespace) -> str:
    """Milliseconds of each stage of each engine, and the ratio."""
    times: dict[str, list[list[float]]] = {engine: [] for engine in ENGINES}
    with tempfile.TemporaryDirectory() as folder:
        feeds = Path(folder, "feeds")
        feeds.write_bytes(pickle.dumps(given(model)))
        for _ in range(options.rounds):
            for engine, found in times.items():
                if (stages := stages_of(engine, model, str(feeds), options)) is not None:
                    found.append(stages)
    least = [[min(stage) for stage in zip(*found, strict=True)] for found in times.values()]
    texts = ["".join(f"{stage:8.1f}" for stage in stages) or f"{'-':>8}" * 3 for stages in least]
    ratio = f"{least[0][1] / least[1][1]:8.2f}" if all(least) else ""
    return f"{model.name[-44:]:44}{model.path.stat().st_size / 1e6:8.2f}  {'  '.join(texts)}{ratio}"


def given(model: Model) -> dict[str, Any]:
    """The inputs of a model; made up where it comes without."""
    loaded = onnxeval.load(model.path)
    feeds: dict[str, Any] = {}
    if model.inputs is not None:
        content = np.load(model.inputs, allow_pickle=False)
        feeds = {loaded.inputs[0].name: content} if isinstance(content, np.ndarray) else dict(content)
    return make_feeds(loaded, feeds, {}, seed=0).feeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PART", help="models whose group/name holds this")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="for each engine")
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="processes of each engine and model")
    parser.add_argument("--clock", choices=("perf_counter", "process_time"), default="perf_counter")
    options = parser.parse_args()
    stages = "".join(f"{stage:>8}" for stage in ("import", "load", "first"))
    print(f"{'':52}  {ENGINES[0]:>24}  {ENGINES[1]:>24}")
    print(f"{'milliseconds':44}{'MB':>8}  {stages}  {stages}{'ratio':>8}")
    for model in chosen_models(options.only):
        print(model_line(model, options), flush=True)
    if options.only in "chain":
        print(f"\n{'Adds':>9}{'load':>10}{'compile':>10}{'first run':>10}{'in all':>12}   microseconds each")
        for length in LENGTHS:
            print(chain_line(length, options), flush=True)


if __name__ == "__main__":
    main()
