"""What `onnxeval bench` prints. The engines are in this process, so that it is quick; no time is asserted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import onnxeval
from onnxeval import threads
from onnxeval.benchmark import measuring
from onnxeval.benchmark.engines import ENGINES, ProfileReport, StepTime
from onnxeval.benchmark.serve import peak_memory
from onnxeval.benchmark.workers import EngineFailed, Worker
from onnxeval_cli.benchpages import memory_text, seconds_between, shares, time_text

SAMPLES = Path(__file__).parents[2] / "sample_models"
QUICK = ("--seconds", "0.02", "--cold", "0", "--threads", "2")


class Here:
    """A worker that is no process."""

    def __init__(self, engine, n_threads):
        self.engine = ENGINES[engine]()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def call(self, method, *arguments):
        return peak_memory() if method == "peak_memory" else getattr(self.engine, method)(*arguments)


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.setattr(measuring, "Worker", Here)
    monkeypatch.setattr(measuring, "_PAUSE", 0)
    monkeypatch.setattr(measuring.Bystanders, "processors", lambda self: 0.0)
    monkeypatch.setattr(threads, "_tell_blas", lambda count: True)  # the other tests keep their threads
    for name in threads.environment(1):
        monkeypatch.setenv(name, "2")


def json_of(result, code=0):
    assert result.exit_code == code, result.stderr
    return json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


SEVEN = (SAMPLES / "digits" / "model.onnx", "-i", SAMPLES / "digits" / "digit_7.npy")


@pytest.mark.parametrize(
    ("folder", "value"),
    [
        ("digits", "digit_7.npy"),
        ("collatz", "start_6.npy"),
        ("max_pool_12", "x.npy"),
        ("depth_to_space_13", "packed.npy"),
    ],
)
def test_text(shell, folder, value):
    result = shell("bench", SAMPLES / folder / "model.onnx", "-i", SAMPLES / folder / value, *QUICK)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    first, _, blank, head, *rows = result.stdout.splitlines()
    assert first == f"{SAMPLES / folder / 'model.onnx'}  2 threads"
    assert blank == ""
    assert head.split()[0] == "onnxeval"
    labels = [row.strip().rpartition("  ")[0].strip() for row in rows]
    wanted = "import, load, compiling, first run, runs, fastest, median, 90 %, 99 %, a second, peak memory"
    assert labels == wanted.split(", ")


def test_beside_another_engine(shell):
    result = shell("bench", *SEVEN, "--vs", "reference", *QUICK)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "ReferenceEvaluator" in lines[3]
    (ratio,) = [line for line in lines if line.startswith("a run takes")]
    assert ratio.split(" times ReferenceEvaluator's time  (")[1].endswith(" turns)")
    assert lines[-3].startswith("outputs beside ReferenceEvaluator's")
    assert lines[-2].split() == ["class", "the", "same"]


def test_json(shell):
    content = json_of(shell("bench", *SEVEN, "--vs", "reference", "--profile", "--format", "json", *QUICK))
    assert content["inputs"] == [{"name": "picture", "type": "float32[1, 1, 8, 8]"}]
    assert content["threads"] == 2
    assert content["machine"]["others"] == 0
    ours, theirs = content["engines"]
    assert (ours["engine"], theirs["engine"]) == ("onnxeval", "reference")
    for engine in content["engines"]:
        assert engine["failure"] is None
        assert 0 < engine["fastest"] <= engine["median"] <= engine["percentile_90"] <= engine["slowest"]
        assert len(engine["turns"]) >= 3
        assert engine["cold"] == {"seconds": [], "peak_memory": None}
    assert theirs["ratio"]["lowest"] <= theirs["ratio"]["median"] <= theirs["ratio"]["highest"]
    assert theirs["cold_ratio"] is None
    assert [output["name"] for output in theirs["outputs"]] == ["class", "probabilities"]
    profile = content["profile"]
    labels = " ".join(node["node"] for node in profile["nodes"])
    assert "conv1 (Conv-11)" in labels
    assert "dense (Gemm-13)" in labels
    assert sum(node["seconds"] for node in profile["nodes"]) + profile["between_steps"] == pytest.approx(
        profile["seconds"]
    )
    assert sum(o["calls"] for o in profile["operators"] if o["operator"].startswith("Conv-11")) == 2


def test_json_of_infinite_differences_is_strict(shell, model, monkeypatch):
    monkeypatch.setattr(ENGINES["reference"], "run", lambda self: {"y": -next(iter(self._feeds.values()))})
    content = json_of(
        shell("bench", model("double"), "-i", "[[[[1e308]]]]", "--vs", "reference", "--format", "json", *QUICK)
    )
    assert content["engines"][1]["outputs"][0]["largest_difference"] == "Infinity"


def test_profile_as_text(shell):
    result = shell("bench", SAMPLES / "collatz" / "model.onnx", "-i", "6", "--profile", *QUICK)
    assert "where the time goes, by operator" in result.stdout
    assert "loop (Loop-21) > step (If-21)" in result.stdout
    assert "between the steps" in result.stdout


def test_a_profile_shows_ten_nodes_and_how_many_more(shell):
    nodes = "  ".join(f"t{place + 1} = StringConcat(t{place}, t0)" for place in range(12))
    Path("long.onnxtxt").write_text(
        f'<ir_version: 10, opset_import: ["": 21]> g (string[1] t0) => (string[1] t12) {{ {nodes} }}'
    )
    result = shell("bench", "long.onnxtxt", "-i", '["a"]', "--profile", *QUICK)
    assert "… 2 more" in result.stdout


def test_shares_add_up_and_leave_out_what_is_inside():
    steps = (
        StepTime(("a (Loop-21)",), "Loop-21", 2, 0.2),
        StepTime(("a (Loop-21)", "b (Add-14)"), "Add-14", 20, 0.4),
        StepTime(("c (Add-14)",), "Add-14", 2, 0.2),
    )
    profile = ProfileReport(2, 1.0, steps)
    assert [(s.name, s.seconds, s.calls) for s in shares(profile, by_operator=True)] == [
        ("Add-14", pytest.approx(0.3), 11),
        ("Loop-21", pytest.approx(0.1), 1),
    ]
    assert shares(profile, by_operator=False)[0].name == "a (Loop-21) > b (Add-14)"
    assert seconds_between(profile) == pytest.approx(0.1)


def test_inputs_are_made_up_where_every_size_is_declared(shell, model):
    result = shell("bench", model("mismatch"), "-i", "w=[1, 2, 3]", *QUICK)
    assert result.exit_code == 6  # the model cannot run, whatever its inputs
    assert "note: made up x float32[" in result.stderr
    assert shell("bench", model("scalar"), *QUICK).exit_code == 0
    result = shell("bench", model("two"), "-i", "b=[1, 2, 3]", *QUICK)
    assert result.exit_code == 5
    assert "the model leaves sizes open: N (of x)\nhint: --dim gives them, as in --dim N=1" in result.stderr
    result = shell("bench", model("two"), "--dim", "N=2", *QUICK)
    assert result.exit_code == 0
    assert "note: made up x float32[2, 3]\nnote: made up b float32[3]\n" in result.stderr
    result = shell("bench", model("two"), "-i", "x=rand:", "--dim", "N=2", *QUICK)
    assert "x  float32[2, 3]" in result.stdout
    assert shell("bench", model("two"), "--dim", "M=2", *QUICK).exit_code == 5


def test_made_up_inputs_are_those_of_run(shell, monkeypatch):
    text = "g (float[N, 4] table, int64[M] rows) => (float[M, 4] y) { y = Gather(table, rows) }"
    onnx.save(onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 21]>' + text), "gather.onnx")
    sizes = ("--seed", "5", "--dim", "N=3,M=100")
    shell("run", "gather.onnx", "--random", *sizes, "--save-inputs", "feeds.npz")
    measured = []
    monkeypatch.setattr(measuring, "measure", lambda _model, feeds, *_, **__: measured.append(feeds))
    shell("bench", "gather.onnx", *sizes)
    with np.load("feeds.npz") as saved:
        assert {name: value.tolist() for name, value in saved.items()} == {
            name: value.tolist() for name, value in measured[0].items()
        }


def test_another_engine_that_cannot(shell, monkeypatch):
    def broken(self):
        raise EngineFailed("no such operator")

    monkeypatch.setattr(ENGINES["reference"], "run", broken)
    result = shell("bench", *SEVEN, "--vs", "reference", *QUICK)
    assert result.exit_code == 1
    assert "a second" in result.stdout
    assert result.stdout.endswith("\nReferenceEvaluator cannot run the model\n")
    assert "warning: ReferenceEvaluator cannot run the model: no such operator" in result.stderr
    content = json_of(shell("bench", *SEVEN, "--vs", "reference", "--format", "json", *QUICK), code=1)
    assert content["engines"][1]["failure"] == "no such operator"
    assert content["engines"][1]["ratio"] is None


def test_an_engine_that_is_not_installed(shell, monkeypatch):
    monkeypatch.setattr(measuring, "find_spec", lambda name: None)
    result = shell("bench", *SEVEN, "--vs", "onnxruntime", *QUICK)
    assert result.exit_code == 9
    assert "the engine onnxruntime needs the extra `compare`" in result.stderr
    assert "pip install 'onnxeval[compare]'" in result.stderr


def test_a_model_that_is_a_text_is_read_by_others_too(shell, tmp_path):
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
    (tmp_path / "neg.onnxtxt").write_text(text)
    result = shell("bench", "neg.onnxtxt", "--vs", "reference", *QUICK)
    assert result.exit_code == 0
    assert "the same" in result.stdout


def test_operators_of_ones_own_reach_every_process(shell, monkeypatch):
    Path("mine.py").write_text(
        'import onnxeval\n@onnxeval.op("Twice", domain="test.bench", versions=(1,))\ndef twice(x):\n    return x + x\n'
    )
    imports = 'opset_import: ["": 21, "test.bench": 1]'
    Path("m.onnxtxt").write_text(
        f"<ir_version: 10, {imports}> g (float[2] x) => (float[2] y) {{ y = test.bench.Twice (x) }}"
    )
    monkeypatch.setattr(measuring, "Worker", Worker)  # one that is a process
    content = json_of(
        shell("bench", "m.onnxtxt", "--ops", "mine.py", "--seconds", "0.01", "--cold", "1", "--format", "json")
    )
    assert content["engines"][0]["turns"]
    assert content["engines"][0]["cold"]["seconds"]


def test_a_busy_machine_is_said(shell, monkeypatch):
    monkeypatch.setattr(measuring.Bystanders, "processors", lambda self: 1.5)
    result = shell("bench", *SEVEN, *QUICK)
    assert "note: other processes kept 1.5 processors busy" in result.stderr


def test_whole_processes_take_the_inputs_of_any_type(shell, model):
    for name, given in (
        ("bfloat16", ("-i", "[1, 2]")),
        ("sequence", ("-i", "[[1], [2, 3]]")),
        ("optional", ("--dim", "N=2")),
    ):
        cold = ("--seconds", "0.01", "--cold", "1", "--format", "json")
        content = json_of(shell("bench", model(name), *given, *cold))
        assert len(content["engines"][0]["cold"]["seconds"]) == 1, name


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (12.345, "12.3 s"),
        (1, "1.00 s"),
        (0.1234, "123 ms"),
        (0.00123, "1.23 ms"),
        (4.56e-5, "45.6 µs"),
        (2e-7, "0.20 µs"),
    ],
)
def test_times_have_three_digits_and_a_unit(seconds, text):
    assert time_text(seconds) == text


def test_memory():
    assert memory_text(1_234_567_890) == "1,235 MB"
    assert memory_text(None) == ""


class TestThreads:
    CODE = """if True:
        import os, sys
        from onnxeval_cli.main import main
        try:
            main(sys.argv[1:])
        finally:
            print("threads", os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("MKL_NUM_THREADS"))
        """

    def process(self, *arguments, **environment):
        names = threads.environment(1)
        clean = {name: value for name, value in os.environ.items() if name not in names}
        started = [sys.executable, "-c", self.CODE, *map(str, arguments)]
        return subprocess.run(
            started, capture_output=True, text=True, timeout=60, check=False, env={**clean, **environment}
        )

    def test_option_and_environment(self, model):
        given = ("run", model("scalar"), "-i", "1")
        for arguments, environment, count in (
            ((), {}, None),
            (("--threads", "1"), {}, 1),
            ((), {"ONNXEVAL_NUM_THREADS": "3"}, 3),
            (("--threads", "1"), {"ONNXEVAL_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "8"}, 1),
        ):
            done = self.process(*given, *arguments, **environment)
            assert done.returncode == 0, done.stderr
            assert done.stderr == ""
            assert f"threads {count} {count}" in done.stdout

    def test_wrong_numbers_are_wrong_usage(self, model, shell):
        assert shell("run", model("scalar"), "-i", "1", "--threads", "0").exit_code == 2
        done = self.process("run", model("scalar"), "-i", "1", ONNXEVAL_NUM_THREADS="many")
        assert done.returncode == 2
        assert "ONNXEVAL_NUM_THREADS" in done.stderr
        assert "many" in done.stderr


def test_fast_math_is_told(shell, monkeypatch):
    asked = []
    load = onnxeval.load
    monkeypatch.setattr(onnxeval, "load", lambda model, fast_math=False: asked.append(fast_math) or load(model))
    result = shell("bench", *SEVEN, "--vs", "reference", "--fast-math", *QUICK)
    assert f"onnxeval --fast-math {onnxeval.__version__}  ReferenceEvaluator" in result.stdout
    assert True in asked
    content = json_of(shell("bench", *SEVEN, "--fast-math", "--format", "json", *QUICK))
    assert content["fast_math"] is True
    assert json_of(shell("bench", *SEVEN, "--format", "json", *QUICK))["fast_math"] is False


def test_reference_runs_each_node_by_itself(shell, monkeypatch):
    plain = shell("run", *SEVEN)
    passes = []
    import onnxeval.model

    optimise = onnxeval.model.optimise
    monkeypatch.setattr(onnxeval.model, "optimise", lambda *a: passes.append(1) or optimise(*a))
    assert shell("run", *SEVEN, "--reference").stdout == plain.stdout
    assert not passes
    assert shell("run", *SEVEN).stdout == plain.stdout
    assert passes
