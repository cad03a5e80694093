"""The process of one worker of a batch: ``python -m onnxeval.batches.serve batch``."""

from __future__ import annotations

import numpy as np

from onnxeval.batches.running import Here, Rows, Work
from onnxeval.benchmark.serve import serve_standard_streams
from onnxeval.model import load
from onnxeval.plugins import load_file


class Server:
    """Loads the model once, then runs blocks."""

    def open(self, work: Work) -> None:
        for path in work.kernels:
            load_file(path)
        self._runner = Here(load(work.model, fast_math=work.fast_math), work)

    def run(self, start: int, stop: int) -> Rows:
        with np.errstate(all="ignore"):
            return self._runner.run(start, stop)


if __name__ == "__main__":
    serve_standard_streams(Server())
