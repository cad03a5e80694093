"""Which kernels are in use, and on how many threads: forks, exits and callers that run beside each other."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import onnxeval
from onnxeval.fast.activations import IDENTITY

MODEL = '<ir_version: 10, opset_import: ["": 21]> g (float[256, 256] x) => (float[256, 256] y) { y = MatMul(x, x) }'


def python(code, **environment):
    command = [sys.executable, "-P", "-c", code]
    environment = {**os.environ, "ONNXEVAL_NATIVE": "", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def test_turned_off():
    code = "from onnxeval.fast.engine import native, status; print(native(), status())"
    assert python(code, ONNXEVAL_NATIVE="0").stdout == "None off (ONNXEVAL_NATIVE is 0)\n"


def test_a_tier_that_is_not_there(kernels):
    result = python("from onnxeval.fast.engine import native; native()", ONNXEVAL_NATIVE="v99")
    assert "ONNXEVAL_NATIVE is 'v99', expected 0, 1, or what this processor has: " in result.stderr


def test_each_tier_can_be_chosen(kernels):
    for tier in kernels.tiers():
        code = "from onnxeval.fast.engine import native; print(native().active())"
        assert python(code, ONNXEVAL_NATIVE=tier).stdout == f"{tier}\n"


def test_the_number_of_threads(kernels):
    code = "from onnxeval.fast.engine import native\nimport onnxeval\nprint(native().threads())\n"
    code += "onnxeval.set_num_threads(5)\nprint(native().threads())"
    assert python(code, ONNXEVAL_NUM_THREADS="3").stdout == "3\n5\n"


def test_a_fork_has_threads_of_its_own(kernels):
    code = f"""
import os, numpy as np, onnxeval
model = onnxeval.load({MODEL!r}.encode())
x = np.eye(256, dtype=np.float32)
model.run({{"x": x}})
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        ok = (model.run({{"x": x}})["y"] == x).all()
        os._exit(0 if ok else 1)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children], (model.run({{"x": x}})["y"] == x).all())
"""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    code = code.replace(f"{MODEL!r}.encode()", f"onnx.parser.parse_model({MODEL!r})").replace(
        "import os,", "import onnx, os,"
    )
    result = python(code, ONNXEVAL_NUM_THREADS="4")
    assert result.stdout == "[0, 0, 0] True\n", result.stderr


def test_callers_beside_each_other(kernels):
    before = kernels.threads()
    kernels.set_threads(4)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((200, 100)).astype(np.float32), rng.standard_normal((100, 300)).astype(np.float32)
    wanted = np.empty((200, 300), np.float32)
    kernels.multiply(a, b, wanted, None, None, None, *IDENTITY)
    wrong = []

    def work() -> None:
        for _ in range(100):
            out = np.empty_like(wanted)
            kernels.multiply(a, b, out, None, None, None, *IDENTITY)
            if not np.array_equal(out, wanted):
                wrong.append(out)

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    kernels.set_threads(before)
    assert not wrong


def test_closed_and_started_again(kernels):
    a = np.eye(300, dtype=np.float32)
    for _ in range(5):
        out = np.empty_like(a)
        kernels.multiply(a, a, out, None, None, None, *IDENTITY)
        np.testing.assert_array_equal(out, a)
        kernels.close()


def test_reference_runs_readable_kernels(kernels):
    import onnx

    model = onnxeval.load(onnx.parser.parse_model(MODEL))
    assert "fast" in model.plan().steps[0].kernel.__module__
    assert "fast" not in model.plan(reference=True).steps[0].kernel.__module__


def test_an_extension_of_other_sources_is_not_used(kernels):
    code = "import onnxeval.fast.engine as engine\nengine.fingerprint = lambda: 'others'\n"
    code += "print(engine.native(), engine.status())"
    assert python(code).stdout == (
        "None not used: built from other sources; `python setup.py build_ext --inplace` builds them again\n"
    )


NOT_IMPORTED = """
import sys
class Refuses:
    def find_spec(self, name, *_):
        if name.endswith("._native"):
            raise {error}
sys.meta_path.insert(0, Refuses())
from onnxeval.fast.engine import native, status
print(native(), status())
"""


def test_a_processor_that_has_none_of_the_tiers():
    code = NOT_IMPORTED.format(error="ImportError('no such instructions')")
    assert python(code).stdout == "None not used: no such instructions\n"


def test_no_extension_was_built():
    code = NOT_IMPORTED.replace("raise {error}", "return None").replace(".insert(0, Refuses())", "[:] = [Refuses()]")
    code = code.replace("import sys", "import sys, onnxeval.fast.engine")
    assert python(code).stdout == "None not built, for want of a C compiler that builds them\n"


def test_another_interpreter_has_no_kernels_of_its_own(kernels):
    interpreters = pytest.importorskip("_xxsubinterpreters", reason="this Python has no such interpreters")
    other = interpreters.create()
    code = "import importlib.machinery as m, importlib.util as u\n"
    code += f"path = {kernels.__file__!r}\nloader = m.ExtensionFileLoader('onnxeval.fast._native', path)\n"
    code += "u.module_from_spec(u.spec_from_file_location('onnxeval.fast._native', path, loader=loader))\n"
    code += "loader.exec_module(u.module_from_spec(u.spec_from_file_location(loader.name, path, loader=loader)))"
    with pytest.raises(interpreters.RunFailedError, match=r"main interpreter alone|does not support loading"):
        interpreters.run_string(other, code)
    interpreters.destroy(other)
