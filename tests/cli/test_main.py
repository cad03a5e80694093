"""Help, versions, exit codes: what holds for every command."""

import os
import signal
import subprocess
import sys
from functools import partial

import onnx
import pytest

import onnxeval
from onnxeval_cli.main import COMMANDS

HEAVY = {"numpy", "onnx", "rich", "ml_dtypes", "onnxeval.registry", "importlib.metadata"}


def process(*arguments, **options):
    command = [sys.executable, "-m", "onnxeval", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


def imported_by(*arguments) -> set[str]:
    command = [sys.executable, "-X", "importtime", "-m", "onnxeval", *map(str, arguments)]
    report = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr
    return {line.rpartition("|")[2].strip() for line in report.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize("arguments", [(), *((name,) for name in COMMANDS)], ids=lambda a: a[0] if a else "onnxeval")
def test_help_is_complete_and_starts_from_examples(shell, arguments):
    result = shell(*arguments, "--help")
    assert result.exit_code == 0
    assert result.output == shell(*arguments, "-h").output
    assert f"onnxeval {arguments[0] if arguments else 'run'} " in result.output.partition("Options:")[0]
    assert "--help" in result.output
    assert "\\b" not in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_the_group_lists_every_command_with_the_line_that_it_has_itself(shell):
    from onnxeval_cli.main import main

    listed = shell("--help").output
    for name, (_, line) in COMMANDS.items():
        command = main.get_command(None, name)
        assert command.name == name
        assert command.get_short_help_str(200) == line
        assert line in listed


@pytest.mark.parametrize("arguments", [("--help",), *((name, "--help") for name in COMMANDS)], ids=" ".join)
def test_help_imports_nothing_heavy(arguments):
    assert not imported_by(*arguments) & HEAVY


def test_run_without_a_terminal_does_not_import_rich(model):
    imported = imported_by("run", model("scalar"), "-i", "1")
    assert "numpy" in imported
    assert not {name for name in imported if name.split(".")[0] == "rich"}


def test_version(shell):
    result = shell("--version")
    assert result.exit_code == 0
    assert f"onnxeval {onnxeval.__version__}\n" in result.output
    assert f"onnx {onnx.__version__} (opsets: ai.onnx {onnx.defs.onnx_opset_version()}, " in result.output
    assert f"IR {int(onnx.IR_VERSION)})" in result.output


@pytest.mark.parametrize("command", ["run", "bench"])
def test_an_input_without_its_option(shell, model, command):
    result = shell(command, model("relu"), "x.npy")
    assert result.exit_code == 2
    assert "An input is given as --input x.npy" in result.stderr


def test_wrong_usage(shell, model):
    for arguments in (("run",), ("run", "--wrong"), ("check",), ("run", model("relu"), "--format", "xml")):
        result = shell(*arguments)
        assert result.exit_code == 2
        assert "Usage: " in result.stderr
    assert shell().exit_code == 2


def test_a_misspelt_command(shell):
    result = shell("rum")
    assert result.exit_code == 2
    assert "Did you mean 'run'?" in result.stderr


def test_a_model_in_the_place_of_the_command(shell, model):
    path = model("relu")
    result = shell(path)
    assert result.exit_code == 2
    assert f"onnxeval run {path}" in result.stderr


@pytest.mark.parametrize(
    ("name", "arguments", "code", "parts"),
    [
        ("relu", ["-i", "[[1, 2]]"], 5, ['input "x"', "[1, 2]", "float32[N, 3]"]),
        ("relu", [], 5, ['"x"', "float32[N, 3]"]),
        ("unknown", ["-i", "[1, 2]"], 4, ["Relux"]),
        ("cycle", ["-i", "[1, 2]"], 3, ["cycle"]),
        ("mismatch", ["-i", "x=[1, 2]", "-i", "w=[1, 2, 3]"], 6, ["Add", "float32[2]", "float32[3]"]),
    ],
)
def test_errors_have_their_code_their_place_and_the_values(shell, model, name, arguments, code, parts):
    result = shell("run", model(name), *arguments)
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    for part in parts:
        assert part in result.stderr
    assert "Traceback" not in result.stderr


def test_models_that_cannot_be_read(shell, tmp_path):
    (tmp_path / "garbage.onnx").write_bytes(b"\xff" * 50)
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "garbage.json").write_text("{")
    for name in ("missing.onnx", ".", "garbage.onnx", "empty.onnx", "garbage.json"):
        result = shell("run", name)
        assert result.exit_code == 3, result.stderr
        assert "Traceback" not in result.stderr


def test_a_fault_of_ours_shows_its_traceback_and_asks_for_a_report(shell, model, monkeypatch):
    def broken(path, **_):
        raise KeyError("a bug")

    monkeypatch.setattr(onnxeval, "load", broken)
    result = shell("run", model("relu"))
    assert result.exit_code == 70
    assert "Traceback" in result.stderr
    assert "KeyError: 'a bug'" in result.stderr
    assert "please report it" in result.stderr


def test_an_interrupt(shell, model, monkeypatch):
    def interrupted(path, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr(onnxeval, "load", interrupted)
    result = shell("run", model("relu"))
    assert result.exit_code == 130
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals and /dev/full are POSIX")
class TestProcesses:
    def test_control_c_while_waiting_for_standard_input(self, model):
        command = [sys.executable, "-m", "onnxeval", "run", str(model("relu")), "-i", "-"]
        heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a job in the background ignores the signal
        pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        running = subprocess.Popen(command, preexec_fn=heeding, **pipes)
        running.stdin.write("x" * 2**18)  # more than a pipe holds: it is read by now
        running.stdin.flush()
        running.send_signal(signal.SIGINT)
        _, complaint = running.communicate(timeout=30)
        assert running.returncode == 130
        assert "Traceback" not in complaint

    def test_a_reader_that_leaves_is_no_noise(self):
        command = f"{sys.executable} -m onnxeval ops | true; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "8\n"
        assert done.stderr == ""

    def test_a_full_disk(self, model):
        with open("/dev/full", "w") as full:
            command = [sys.executable, "-m", "onnxeval", "run", str(model("scalar")), "-i", "1"]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        assert done.returncode == 8
        assert "error: cannot write to standard output" in done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr

    def test_an_encoding_that_lacks_the_letters(self, model):
        done = process("run", model("text"), "-i", '["é"]', env={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert done.returncode == 0, done.stderr
        assert r'"\xe9"' in done.stdout

    @pytest.mark.parametrize(
        ("words", "answers"),
        [
            ("onnxeval r", ["plain,run"]),
            ("onnxeval run mod", ["file,mod"]),
            ("onnxeval ops Depth", ["plain,DepthToSpace"]),
        ],
    )
    def test_completion(self, words, answers):
        place = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        environment = {**os.environ, "_ONNXEVAL_COMPLETE": "bash_complete", **place}
        done = subprocess.run(
            [sys.executable, "-c", "from onnxeval_cli.main import main; main(prog_name='onnxeval')"],
            capture_output=True,
            text=True,
            env=environment,
            timeout=60,
            check=False,
        )
        assert done.stdout.split() == answers
