#!/usr/bin/env python3
"""Run the cases of this folder through onnxeval, one forked process each.

    python run_cases.py [-k PART] [--check] [--dir DIR]

A case that expects a value passes when `onnxeval.load(model).run(feeds)` gives it: dtype and shape exactly, floats
within the case's rtol/atol, NaN equal to NaN. One that expects an error passes when load or run raises an
`onnxeval.OnnxEvalError` (any other exception, a hang of 25 s or more than 6 GiB is a failure); where meta.json says
`"run": "either"`, refusing and running are both right. With --check, `onnxeval.check(model)` must also give
the verdict in meta.json: `valid` (no finding of severity error), `invalid` (one at least), `either`.
Prints each failure; the last line is `passed/total`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent


def read(folder: Path, entry: str | list[str]) -> Any:
    if isinstance(entry, list):
        return [read(folder, name) for name in entry]
    array = np.load(folder / entry, allow_pickle=False)
    return array.astype(object) if array.dtype.kind == "U" else array


def difference(got: Any, wanted: Any, case: dict[str, Any]) -> str | None:
    if isinstance(wanted, list):
        if not isinstance(got, (list, tuple)) or len(got) != len(wanted):
            return f"a sequence of {len(wanted)} was wanted, got {got!r}"
        return next((d for g, w in zip(got, wanted, strict=True) if (d := difference(g, w, case))), None)
    got = np.asarray(got)
    if got.shape != wanted.shape or (wanted.dtype != object and got.dtype != wanted.dtype):
        return f"wanted {wanted.dtype}{list(wanted.shape)}, got {got.dtype}{list(got.shape)}"
    if wanted.dtype == object:
        got = np.array([x.decode() if isinstance(x, bytes) else str(x) for x in got.ravel()], object).reshape(got.shape)
    if wanted.dtype.kind == "f":
        close = np.isclose(
            got.astype(float), wanted.astype(float), rtol=case["rtol"], atol=case["atol"], equal_nan=True
        )
    else:
        close = got == wanted
    if np.all(close):
        return None
    return f"{np.sum(~close)} of {close.size} differ: got {got[~close][:4]}, wanted {wanted[~close][:4]}"


def judge(folder: Path, with_check: bool) -> str:
    """What is wrong, or nothing."""
    import onnxeval

    case = json.loads((folder / "meta.json").read_text())
    model = str(folder / "model.onnx")
    if with_check and case["check"] != "either":
        errors = [f for f in onnxeval.check(model) if f.severity == "error"]
        if bool(errors) != (case["check"] == "invalid"):
            return f"check: wanted {case['check']}, got {errors[:2] or 'no error'}"
    feeds = {name: read(folder, entry) for name, entry in case["inputs"].items()}
    try:
        got = onnxeval.load(model).run(feeds)
    except onnxeval.OnnxEvalError as error:
        return "" if case["expect_error"] else f"refused: {error}"
    if case.get("run") == "either":
        return ""
    if case["expect_error"]:
        return f"no error, though: {case['expect_error']}"
    wanted = {name: read(folder, entry) for name, entry in case["outputs"].items()}
    if case["compare"] == "topk-set":  # any order is right
        got, wanted = ({name: np.sort(v) for name, v in values.items()} for values in (got, wanted))
    return "; ".join(f"{name}: {d}" for name, w in wanted.items() if (d := difference(got[name], w, case)))


def in_a_fork(folder: Path, with_check: bool) -> str:
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        signal.alarm(25)
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        try:
            verdict = judge(folder, with_check)
        except BaseException as error:  # anything that escapes is what we are looking for
            verdict = f"{type(error).__name__} escaped: {error}"
        os.write(writer, b"." + " ".join(verdict.split()).encode()[:500])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    return answer[1:].decode(errors="replace") if answer else f"died: status {status}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", default="", help="only cases whose name holds this")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--dir", type=Path, default=HERE)
    options = parser.parse_args()
    import onnx  # noqa: F401  so that every fork has it

    folders = sorted(p.parent for p in options.dir.glob("*/meta.json") if options.k in p.parent.name)
    passed = 0
    for folder in folders:
        verdict = in_a_fork(folder, options.check)
        passed += not verdict
        if verdict:
            print(f"{folder.name}: {verdict}", flush=True)
    print(f"{passed}/{len(folders)}")


if __name__ == "__main__":
    main()
