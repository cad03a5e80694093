#!/usr/bin/env python3
"""Measure onnxeval beside onnxruntime and onnx's ReferenceEvaluator, and write the table of docs/benchmarks.md.

    python benchmarks/run.py                          on one thread, then on all; keep the machine quiet meanwhile
    python benchmarks/run.py --only light --threads 1 --results one_thread.json
    python benchmarks/run.py --only resnet --vs onnxruntime
    python benchmarks/run.py --busy                   while another process keeps a processor busy
    python benchmarks/run.py --native v3 --threads 1  with the compiled kernels of another instruction set
    python benchmarks/run.py --table                  write the table anew from results.json

The models: the real ones of models.json, which are fetched, the nine light ones of the onnx wheel, sample_models, and
further ones that nothing was tuned for: those of further.json and networks.py. Each is measured by `onnxeval bench`, in
processes of its own that take turns; whole results go to a JSON file, one model after the other, so that a run which is
interrupted loses one. Results of other settings are kept beside: one table shows all. The table is written only from
figures of a machine on which nothing else was busy; others are in the JSON file.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bounds
from fetch import CACHE, HERE, feeds_of, fetch, load_list
from loops import Loop
from networks import NETWORKS, write
from table import Setting, disturbed, page

from onnxeval.threads import available

ROOT = HERE.parent
RESULTS = HERE / "results.json"
TABLE = ROOT / "docs" / "benchmarks.md"
ENGINES = ("onnxruntime", "reference")


@dataclass(frozen=True)
class Model:
    """A model to measure; without inputs they are made up."""

    group: str
    name: str
    path: Path
    inputs: Path | None = None


def real_models(part: str) -> Iterator[Model]:
    """Those of models.json whose names hold ``part``, fetched."""
    for entry in load_list():
        if part in f"real/{entry['name']}":
            yield Model("real", entry["name"], fetch(entry), feeds_of(entry))


def further_models(part: str) -> Iterator[Model]:
    """Those of further.json and of networks.py whose names hold ``part``, fetched or made."""
    for entry in load_list("further.json"):
        if part in f"further/{entry['name']}":
            yield Model("further", entry["name"], fetch(entry), feeds_of(entry))
    for name in NETWORKS:
        if part in f"further/{name}":
            yield Model("further", name, *write(name, CACHE))


def light_models() -> Iterator[Model]:
    """The onnx wheel's networks with made-up weights."""
    spec = importlib.util.find_spec("onnx")
    assert spec is not None
    assert spec.origin is not None
    for path in sorted((Path(spec.origin).parent / "backend/test/data/light").glob("*.onnx")):
        yield Model("light", path.stem.removeprefix("light_"), path)


def sample_models() -> Iterator[Model]:
    """The repository's own, each with the first of its inputs."""
    for path in sorted((ROOT / "sample_models").glob("*/model.onnx")):
        inputs = min(p for p in path.parent.glob("*.npy") if "." not in p.stem)
        yield Model("sample", path.parent.name, path, inputs)


def chosen_models(part: str) -> Iterator[Model]:
    yield from real_models(part)
    yield from further_models(part)
    for model in (*light_models(), *sample_models()):
        if part in f"{model.group}/{model.name}":
            yield model


def bench(model: Model, setting: Setting, options: argparse.Namespace) -> dict[str, Any]:
    """What `onnxeval bench --format json` says of a model. Raises CalledProcessError where onnxeval fails."""
    command = [sys.executable, "-m", "onnxeval", "bench", str(model.path), "--format", "json"]
    command += ["--seconds", str(options.seconds), "--cold", str(options.cold), "--profile"]
    command += [word for engine in options.vs or ENGINES for word in ("--vs", engine)]
    command += ["--input", str(model.inputs)] if model.inputs else []
    command += ["--threads", str(setting.threads)]
    # its note about busy processors would count the one that is kept busy
    quiet = subprocess.PIPE if setting.busy else None
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=quiet, text=True, check=False)
    if done.stderr and (said := [line for line in done.stderr.splitlines() if "processors busy" not in line]):
        print(*said, sep="\n", file=sys.stderr)
    if not done.stdout:
        raise subprocess.CalledProcessError(done.returncode, command)
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def measure(setting: Setting, options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Measure the models that the options choose in one setting, and keep each result at once."""
    peaks = bounds.measure(setting.threads)
    with contextlib.ExitStack() as stack:
        loop = stack.enter_context(Loop()) if setting.busy else None
        for model in chosen_models(options.only):
            print(f"{model.group}/{model.name}, {setting} ...", end=" ", file=sys.stderr, flush=True)
            if loop is not None:
                loop.processors()
            try:
                content = bench(model, setting, options)
            except subprocess.CalledProcessError as error:
                print(f"failed with exit code {error.returncode}", file=sys.stderr)
                continue
            results[f"{model.group}/{model.name} {setting}"] = {
                **content,
                "model": model.path.name,
                "date": datetime.now(UTC).strftime("%Y-%m-%d"),
                "busy": None if loop is None else loop.processors(),
                "native": setting.native,
                "peaks": peaks,
                "work": bounds.work_of(model.path, content["inputs"]),
            }
            partial = options.results.with_suffix(".partial")
            partial.write_text(json.dumps(results, indent=1) + "\n")
            os.replace(partial, options.results)
            ratios = [e["ratio"]["median"] for e in content["engines"] if e.get("ratio")]
            print(" ".join(f"{ratio:.3g}" for ratio in ratios) or "no other engine ran it", file=sys.stderr)


def settings(options: argparse.Namespace) -> list[Setting]:
    """Those that the options name: one thread and one for each processor, unless told otherwise."""
    counts = options.threads or ([available()] if options.busy else [1, available()])
    return [Setting(threads, options.busy, options.native) for threads in dict.fromkeys(counts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PART", help="models whose group/name holds this")
    parser.add_argument("--vs", action="append", choices=ENGINES, help="beside these engines only")
    parser.add_argument("--threads", type=int, action="append", metavar="N", help="for each engine; repeatable")
    parser.add_argument("--busy", action="store_true", help="keep a processor busy meanwhile")
    parser.add_argument("--native", metavar="TIER", help="with the compiled kernels for this instruction set")
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="for each engine and model")
    parser.add_argument("--cold", type=int, default=5, metavar="N", help="whole processes of each")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="where the results are kept")
    parser.add_argument("--table", action="store_true", help="measure nothing, write the table from the results")
    parser.add_argument("--noisy", action="store_true", help="write the table though the machine was busy")
    options = parser.parse_args()
    results: dict[str, Any] = json.loads(options.results.read_text()) if options.results.exists() else {}
    if options.native:
        os.environ["ONNXEVAL_NATIVE"] = options.native
    for setting in () if options.table else settings(options):
        measure(setting, options, results)
    noisy = sorted(name for name, content in results.items() if disturbed(content))
    if noisy and not options.noisy:
        sys.exit(f"no table: others were busy beside {', '.join(noisy)}; measure them again on a quiet machine")
    if results:
        TABLE.write_text(page(results))
        print(TABLE, file=sys.stderr)


if __name__ == "__main__":
    main()
