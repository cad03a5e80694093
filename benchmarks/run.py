#!/usr/bin/env python3
"""Measure onnxeval beside onnxruntime and onnx's ReferenceEvaluator, and write the table of docs/benchmarks.md.

    python benchmarks/run.py                          everything; keep the machine quiet meanwhile
    python benchmarks/run.py --only light --threads 1 --results one_thread.json
    python benchmarks/run.py --only resnet --vs onnxruntime
    python benchmarks/run.py --table                  write the table anew from results.json

The models: the real ones of models.json, which are fetched, the nine light ones of the onnx wheel, and sample_models.
Each is measured by `onnxeval bench`, in processes of its own that take turns; whole results go to a JSON file, one
model after the other, so that a run which is interrupted loses one. The table is written only from figures of a quiet
machine; others are in the JSON file.
"""

from __future__ import annotations

import argparse
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

from fetch import HERE, fetch, load_list
from table import disturbed, page

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
            yield Model("real", entry["name"], fetch(entry), HERE / "feeds" / f"{entry['name']}.npz")


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
    for model in (*light_models(), *sample_models()):
        if part in f"{model.group}/{model.name}":
            yield model


def bench(model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """What `onnxeval bench --format json` says of a model. Raises CalledProcessError where onnxeval fails."""
    command = [sys.executable, "-m", "onnxeval", "bench", str(model.path), "--format", "json"]
    command += ["--seconds", str(options.seconds), "--cold", str(options.cold), "--profile"]
    command += [word for engine in options.vs or ENGINES for word in ("--vs", engine)]
    command += ["--input", str(model.inputs)] if model.inputs else []
    command += ["--threads", str(options.threads)] if options.threads else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        raise subprocess.CalledProcessError(done.returncode, command)
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def measure(options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Measure the models that the options choose, and keep each result at once."""
    for model in chosen_models(options.only):
        print(f"{model.group}/{model.name} ...", end=" ", file=sys.stderr, flush=True)
        try:
            content = bench(model, options)
        except subprocess.CalledProcessError as error:
            print(f"failed with exit code {error.returncode}", file=sys.stderr)
            continue
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        results[f"{model.group}/{model.name}"] = {**content, "model": model.path.name, "date": date}
        partial = options.results.with_suffix(".partial")
        partial.write_text(json.dumps(results, indent=1) + "\n")
        os.replace(partial, options.results)
        ratios = [e["ratio"]["median"] for e in content["engines"] if e.get("ratio")]
        print(" ".join(f"{ratio:.3g}" for ratio in ratios) or "no other engine ran it", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PART", help="models whose group/name holds this")
    parser.add_argument("--vs", action="append", choices=ENGINES, help="beside these engines only")
    parser.add_argument("--threads", type=int, metavar="N", help="for each engine; one for each processor otherwise")
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="for each engine and model")
    parser.add_argument("--cold", type=int, default=5, metavar="N", help="whole processes of each")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="where the results are kept")
    parser.add_argument("--table", action="store_true", help="measure nothing, write the table from the results")
    parser.add_argument("--noisy", action="store_true", help="write the table though the machine was busy")
    options = parser.parse_args()
    results: dict[str, Any] = json.loads(options.results.read_text()) if options.results.exists() else {}
    if not options.table:
        measure(options, results)
    noisy = sorted(name for name, content in results.items() if disturbed(content))
    if noisy and not options.noisy:
        sys.exit(f"no table: others were busy beside {', '.join(noisy)}; measure them again on a quiet machine")
    if results:
        TABLE.write_text(page(results))
        print(TABLE, file=sys.stderr)


if __name__ == "__main__":
    main()
