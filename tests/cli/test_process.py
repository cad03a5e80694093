"""The command line as a process of its own: what it imports, and how it ends."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

#: Runs the command line, and tells last which modules there are.
TELLING = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from onnxeval_cli.process import process
process()
"""


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_run_imports_what_it_needs(model: object) -> None:
    done = python(TELLING, "run", model("relu"), "--input", "[[1, -2, 3]]")
    assert done.returncode == 0, done.stderr
    assert "1" in done.stdout
    there = {*done.stderr.split()}
    assert {"onnx.onnx_ml_pb2", "onnxeval.ops.math.rectifiers"} <= there
    assert not {name for name in there if name.partition(".")[0] in {"rich", "email", "tarfile", "subprocess"}}
    unwanted = {"onnx.helper", "onnx.checker", "onnx.serialization", "importlib.metadata", "difflib"}
    assert not sorted(unwanted & there)
    kernels = {name for name in there if name.startswith("onnxeval.ops.")}
    assert not {name for name in kernels if name.startswith(("onnxeval.ops.nn", "onnxeval.ops.traditionalml"))}
    assert (
        not {"onnxeval.ops.math.einsum", "onnxeval.ops.math.fourier", "onnxeval.comparing", "onnxeval.checks"} & there
    )


ON_DEMAND = "from onnxeval_cli.process import import_onnx_on_demand as ask; ask(); "


@pytest.mark.parametrize(
    "use",
    [
        "import onnx; print(onnx.TensorProto.FLOAT, onnx.MapProto.DESCRIPTOR.name, 'onnx.helper' in sys.modules)",
        "import onnx.defs; print(onnx.defs.get_schema('Relu').since_version > 0, 'onnx.helper' in sys.modules)",
        "from onnx import ModelProto; print(ModelProto().ir_version, 'onnx.checker' in sys.modules)",
    ],
)
def test_messages_and_schemas_do_not_import_the_rest_of_onnx(use: str) -> None:
    done = python(f"import sys; {ON_DEMAND}{use}")
    assert done.stdout.endswith("False\n"), done.stderr


@pytest.mark.parametrize(
    "use",
    [
        "import onnx; print(onnx.__version__)",
        "import onnx; print(onnx.helper.make_node('Relu', ['x'], ['y']).op_type)",
        "import onnx.checker, onnx; print(onnx.checker is sys.modules['onnx.checker'], onnx.load.__name__)",
        "from onnx import *; print(checker.__name__)",
        "from onnx import helper, numpy_helper, TensorProto; print(helper.__name__, TensorProto.FLOAT)",
        "import onnx.reference as r, onnx; print(r.ReferenceEvaluator, onnx.NodeProto is onnx.onnx_pb.NodeProto)",
        "import onnx; print(onnx.nothing)",
    ],
)
def test_the_rest_of_onnx_is_there_when_asked_for(use: str) -> None:
    ours, plain = python(f"import sys; {ON_DEMAND}{use}"), python(f"import sys; {use}")
    assert (ours.stdout, ours.returncode) == (plain.stdout, plain.returncode)
    assert ours.stderr.splitlines()[-1:] == plain.stderr.splitlines()[-1:]


def test_operators_of_ones_own_use_all_of_onnx_and_end_as_they_like(tmp_path: Path, model: object) -> None:
    kernels = tmp_path / "mine.py"
    kernels.write_text(
        "import atexit, threading, onnx\n"
        "assert onnx.helper.make_node('Relu', [], []).op_type == 'Relu'\n"
        "atexit.register(print, 'at exit')\n"
        "threading.Thread(target=lambda: (threading.main_thread().join(), print('thread ends'))).start()\n"
    )
    done = python(TELLING, "run", model("relu"), "-i", "[[1, -2, 3]]", "--ops", kernels)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("thread ends\nat exit\n")


def test_an_interrupt_while_it_is_being_imported() -> None:
    code = """
import sys
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "onnxeval_cli.main":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from onnxeval_cli.process import process
process()
"""
    done = python(code)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


@pytest.mark.parametrize(("arguments", "code"), [(["ops"], 0), (["--nonsense"], 2), (["run", "nothing.onnx"], 3)])
def test_a_process_ends_with_the_exit_code(arguments: list[str], code: int) -> None:
    assert python(TELLING, *arguments).returncode == code


#: Ends the process while it writes a file.
ENDING = """
import os, signal
os.chmod = lambda *_, **__: signal.raise_signal(signal.SIGTERM)
"""


@pytest.mark.parametrize("place", ["y.npy", "folder/", "test_data_set_0"])
def test_who_is_ended_leaves_nothing_half_written(tmp_path: Path, model: Callable[[str], Path], place: str) -> None:
    (tmp_path / "end.py").write_text(ENDING)
    relu = model("relu")
    before = {*tmp_path.iterdir()}
    code = "from onnxeval_cli.process import process; process()"
    done = python(code, "run", relu, "-i", "[[1, -2, 3]]", "--ops", "end.py", "--save", place)
    assert done.returncode == 130, done.stderr
    assert done.stderr.strip() == "error: interrupted"
    assert {path for path in tmp_path.iterdir() if path.name != "__pycache__"} == before
