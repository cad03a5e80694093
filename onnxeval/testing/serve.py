"""The process of one engine under test: ``python -m onnxeval.testing.serve ENGINE``."""

from __future__ import annotations

import sys

from onnxeval.benchmark.serve import serve_standard_streams
from onnxeval.plugins import load_file
from onnxeval.testing.tester import Tester


def main() -> None:
    engine, *kernels = sys.argv[1:]
    for path in kernels:
        load_file(path)
    serve_standard_streams(Tester(engine))


if __name__ == "__main__":
    main()
