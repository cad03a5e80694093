"""The process of the other engine: ``python -m onnxeval.versus.serve ENGINE``."""

from __future__ import annotations

import sys

from onnxeval.benchmark.serve import serve_standard_streams
from onnxeval.versus.engines import ENGINES

if __name__ == "__main__":
    serve_standard_streams(ENGINES[sys.argv[1]]())
