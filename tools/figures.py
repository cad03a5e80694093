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
from onnxeval.fast.engine import native
start = time.process_time()
native()
print(time.process_time() - start)
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
        environment = {**os.environ, "PYTHONPATH": folder}
        command = [sys.executable, "-c", _IMPORT]
        runs = [subprocess.check_output(command, cwd=folder, env=environment, text=True) for _ in range(9)]
        print(f"import  {min(map(float, runs)) * 1e3:.1f} ms of processor time")


if __name__ == "__main__":
    main()
