"""Run the tests of the compiled kernels under AddressSanitizer and UndefinedBehaviorSanitizer, or ThreadSanitizer.

    python tests/fast/sanitize.py [--threads] [PYTEST ARGUMENT ...]

A copy of the package is built with the sanitizers in a temporary folder; the first fault ends the run with a report.
Needs GCC with its sanitizers, on Linux.
"""

import os
import shlex
import subprocess
import sys
import tempfile

from copies import build_kernels, copy_package, run_tests

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
THREADS = ("thread", ("libtsan.so",), {"TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0"})


def library(name: str) -> str:
    """The path of one of the compiler's own libraries."""
    command = [*shlex.split(os.environ.get("CC", "gcc")), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    arguments = sys.argv[1:]
    checks, libraries, options = THREADS if "--threads" in arguments else MEMORY
    arguments = [argument for argument in arguments if argument != "--threads"]
    flags = f"-fsanitize={checks} -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1"
    with tempfile.TemporaryDirectory() as folder:
        copy_package(folder)
        build_kernels(folder, ONNXEVAL_CFLAGS=flags, ONNXEVAL_LDFLAGS=f"-fsanitize={checks}")
        options = {**options, "LD_PRELOAD": " ".join(map(library, libraries))}
        return run_tests(folder, [sys.executable], arguments, **options)


if __name__ == "__main__":
    sys.exit(main())
