"""Threads: what is set before NumPy is imported, and what can be told afterwards."""

import os
import subprocess
import sys

import pytest

from onnxeval import threads
from onnxeval.errors import InputError

#: Prints the threads of NumPy's BLAS as its own library counts them, or nothing where it is not the wheel's OpenBLAS.
COUNT = """
import ctypes, pathlib, numpy
package = pathlib.Path(numpy.__file__).parent
for path in (*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")):
    library = ctypes.CDLL(str(path))
    print(library.scipy_openblas_get_num_threads64_())
"""


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in threads.environment(1):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, "")  # so that what a test sets is taken away again
        os.environ.pop(name)


def blas_threads_after(code: str, **environment: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", code + COUNT],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, **environment},
    )
    if not done.stdout:
        pytest.skip("NumPy's BLAS is not the OpenBLAS of its wheel")
    return int(done.stdout)


LOAD = """
import onnx.parser, onnxeval
text = '<ir_version: 10, opset_import: ["": 21]> g (float x) => (float y) { y = Neg (x) }'
onnxeval.load(onnx.parser.parse_model(text))
"""


@pytest.mark.skipif(threads.available() < 2, reason="one processor has one thread")
class TestOpenBlas:
    def test_set_before_numpy_is_imported(self) -> None:
        assert blas_threads_after("import onnxeval; onnxeval.set_num_threads(1)") == 1

    def test_told_after_numpy_is_imported(self) -> None:
        assert blas_threads_after("import numpy, onnxeval; onnxeval.set_num_threads(1)") == 1

    def test_told_without_threadpoolctl(self) -> None:
        without = "import sys; sys.modules['threadpoolctl'] = None"
        assert blas_threads_after(f"{without}; import numpy, onnxeval; onnxeval.set_num_threads(1)") == 1

    def test_load_heeds_the_environment(self) -> None:
        assert blas_threads_after(LOAD, ONNXEVAL_NUM_THREADS="1") == 1

    def test_nothing_is_touched_unasked(self) -> None:
        assert blas_threads_after(LOAD) == blas_threads_after("") > 1


def test_what_is_set_reaches_processes_started_later() -> None:
    threads.set_num_threads(threads.available())
    assert os.environ["ONNXEVAL_NUM_THREADS"] == os.environ["OPENBLAS_NUM_THREADS"] == str(threads.available())


def test_a_blas_that_cannot_be_told_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_tell_blas", lambda count: False)
    with pytest.warns(RuntimeWarning, match="set ONNXEVAL_NUM_THREADS before Python starts"):
        threads.set_num_threads(3)
    threads.heed_environment()  # it is what was asked for: no second warning


@pytest.mark.parametrize("count", [0, -1])
def test_less_than_one(count: int) -> None:
    with pytest.raises(InputError, match=f"is {count}, expected at least 1"):
        threads.set_num_threads(count)
    with pytest.raises(TypeError):
        threads.set_num_threads(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["many", "-1", "1.5", "0"])
def test_an_environment_that_is_no_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXEVAL_NUM_THREADS", text)
    with pytest.raises(InputError, match=text):
        threads.heed_environment()
