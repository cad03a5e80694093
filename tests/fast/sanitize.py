"""Run the tests of the compiled kernels under AddressSanitizer and UndefinedBehaviorSanitizer, or ThreadSanitizer.

    python tests/fast/sanitize.py [--threads] [PYTEST ARGUMENT ...]

A copy of the package is built with the sanitizers in a temporary folder; the first fault ends the run with a report.
Needs GCC with its sanitizers, on Linux.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What is compiled in, the libraries that come with it, and how they are told what to do.
MEMORY = (
    "address,undefined",
    ("libasan.so", "libubsan.so"),
    {
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",  # Python keeps much until it exits
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # else the small arrays of a test lie in arenas that are not watched
    },
)
THREADS = ("thread", ("libtsan.so",), {"TSAN_OPTIONS": "halt_on_error=1:report_signal_unsafe=0"})
IGNORED = shutil.ignore_patterns("*.so", "__pycache__", ".hypothesis")


def library(name: str) -> str:
    """The path of one of the compiler's own libraries."""
    command = [*shlex.split(os.environ.get("CC", "gcc")), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    arguments = sys.argv[1:]
    checks, libraries, options = THREADS if "--threads" in arguments else MEMORY
    if "--threads" in arguments:
        arguments.remove("--threads")
    with tempfile.TemporaryDirectory() as folder:
        for part in ("onnxeval", "cli", "tests/fast"):
            shutil.copytree(ROOT / part, Path(folder, part), ignore=IGNORED)
        for part in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "tests/conftest.py"):
            shutil.copy(ROOT / part, Path(folder, part))
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        flags = {
            "ONNXEVAL_CFLAGS": f"-fsanitize={checks} -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1",
            "ONNXEVAL_LDFLAGS": f"-fsanitize={checks}",
        }
        subprocess.run(build, cwd=folder, env={**os.environ, **flags}, check=True)
        if not list(Path(folder, "onnxeval/fast").glob("_native.*.so")):
            print("the extension was not built", file=sys.stderr)
            return 1
        environment = {"PYTHONPATH": folder, "LD_PRELOAD": " ".join(map(library, libraries)), **options}
        tests = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/fast", *arguments]
        return subprocess.run(tests, cwd=folder, env={**os.environ, **environment}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
