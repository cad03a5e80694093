"""Models that run beside each other, forks in the midst of it, and exits that wait for nobody."""

import os
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest

import onnxeval

SETUP = '''
import os, sys, threading, time
import numpy as np, onnx, onnx.parser, onnx.numpy_helper, onnxeval
MODEL = """<ir_version: 10, opset_import: ["": 21]>
g (float[1, 8, 40, 40] x, float[8, 8, 3, 3] w) => (float[1, 8, 40, 40] y)
{ c = Conv <pads = [1, 1, 1, 1]> (x, w)  s = Sigmoid(c)  y = Softmax(s) }"""
def loaded():
    model = onnx.parser.parse_model(MODEL)
    w = np.random.default_rng(0).standard_normal((8, 8, 3, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    return onnxeval.load(model)
model = loaded()
x = np.random.default_rng(1).standard_normal((1, 8, 40, 40)).astype(np.float32)
wanted = model.run({"x": x})["y"]
def right(runs=1):
    return all((model.run({"x": x})["y"] == wanted).all() for _ in range(runs))
def forever():
    while True:
        right()
'''


def python(code):
    environment = {**os.environ, "ONNXEVAL_NUM_THREADS": "4"}
    command = [sys.executable, "-P", "-c", SETUP + code]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@needs_fork
def test_worker_processes_that_are_forked_after_use(kernels):
    code = "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n"
    code += "    print(pool.map(right, [3] * 6))"
    assert python(code) == f"{[True] * 6}\n"


@needs_fork
def test_forks_while_other_threads_work(kernels):
    code = """
for _ in range(2):
    threading.Thread(target=forever, daemon=True).start()
own = loaded()
states = []
for _ in range(12):
    child = os.fork()
    if not child:
        ok = (own.run({"x": x})["y"] == wanted).all()
        os._exit(0 if ok else 1)
    states.append(os.waitpid(child, 0)[1])
print(states)
sys.stdout.flush()
os._exit(0)
"""
    assert python(code) == f"{[0] * 12}\n"


def test_an_exit_while_threads_work(kernels):
    code = """
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.2)
print("done")
"""
    assert python(code) == "done\n"


def test_models_beside_each_other(kernels):
    texts = [
        "y = MatMul(x, x)",
        "t = MatMul(x, x)  s = Sigmoid(t)  y = Softmax(s)",
        "t = Mul(x, x)  s = Tanh(t)  u = Add(s, x)  y = MatMul(u, x)",
    ]
    head = '<ir_version: 10, opset_import: ["": 21]> g (float[96, 96] x) => (float[96, 96] y)'
    models = [onnxeval.load(onnx.parser.parse_model(f"{head} {{ {text} }}")) for text in texts]
    inputs = [np.random.default_rng(seed).standard_normal((96, 96)).astype(np.float32) for seed in range(6)]
    wanted = [[model.run({"x": x})["y"].copy() for x in inputs] for model in models]
    before = kernels.threads()
    kernels.set_threads(3)
    wrong = []

    def work(first: int) -> None:
        for turn in range(60):
            at, which = (first + turn) % len(models), (first * 5 + turn) % len(inputs)
            got = models[at].run({"x": inputs[which]})["y"]
            if not np.array_equal(got, wanted[at][which]):
                wrong.append((at, which))

    callers = [threading.Thread(target=work, args=(first,)) for first in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    kernels.set_threads(before)
    assert not wrong
