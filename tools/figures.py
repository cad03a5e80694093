"""What the compiled kernels cost: to build, on disk, and when a process starts.

    python tools/figures.py

Builds a copy in a temporary folder with the compiler that CC names, without a compiler cache.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "fast"))
from copies import build_kernels, copy_package

_IMPORT = """
import time
import onnxeval, onnxeval.threads, numpy
start = time.perf_counter()
from onnxeval.fast.engine import native
native()
print(time.perf_counter() - start)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy_package(folder)
        start = time.perf_counter()
        build_kernels(folder)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"build   {time.perf_counter() - start:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time")
        (built,) = Path(folder, "onnxeval/fast").glob("_native.*.so")
        print(f"size    {built.stat().st_size / 1e6:.2f} MB")
        for kernels in ("1", "0"):
            environment = {**os.environ, "PYTHONPATH": folder, "ONNXEVAL_NATIVE": kernels}
            command = [sys.executable, "-c", _IMPORT]
            runs = [subprocess.check_output(command, cwd=folder, env=environment, text=True) for _ in range(15)]
            name = "import" if kernels == "1" else "       (turned off)"
            print(f"{name}  {min(map(float, runs)) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
