"""Freed memory stays with the process, unless the environment has set the allocator up."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
from onnxeval.memory import keep_freed_memory

keep_freed_memory()
for _ in range(3):
    np.ones(1 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(1 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(**environment: str) -> int:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep memory as they like")
def test_a_new_array_takes_the_memory_of_an_old_one() -> None:
    assert page_faults() < 100
    assert page_faults(MALLOC_TRIM_THRESHOLD_="0") > 1000  # an array is 2,048 pages
