"""The page that benchmarks/run.py writes."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "table.py"


@pytest.fixture(scope="module")
def table():
    spec = importlib.util.spec_from_file_location("benchmarks_table", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def engine(name, seconds, **more):
    ratio = {"median": 0.004 / seconds, "lowest": 1, "highest": 9}
    cold = {"seconds": [seconds * 100], "peak_memory": int(seconds * 1e10)}
    return {
        "engine": name,
        "version": "1.2",
        "median": seconds,
        "cold": cold,
        "ratio": ratio,
        "cold_ratio": ratio,
    } | more


def result(*engines, others=0.0):
    machine = {
        "processor": "Z80",
        "processors": 2,
        "system": "CP/M",
        "python": "3.11",
        "numpy": "2.4",
        "others": others,
    }
    return {"date": "2030-01-02", "threads": 2, "machine": machine, "engines": list(engines)}


OURS = engine("onnxeval", 0.004)
SAME = {"name": "y", "largest_difference": 0.5, "largest_element": 5.0, "unlike": 0, "elements": 2, "reason": None}


def test_rows_and_means(table):
    page = table.page(
        {
            "real/b": result(OURS, engine("onnxruntime", 0.001, outputs=[SAME]), engine("reference", 0.04)),
            "real/a": result(OURS, engine("onnxruntime", 0.004, outputs=[SAME, SAME | {"largest_difference": 0}])),
            "light/c": result(
                OURS, {"engine": "onnxruntime", "failure": "no", "cold": {}, "ratio": None, "outputs": []}
            ),
        }
    )
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    a, b, mean = rows[1:4]
    assert a[:5] == ["a", "4 ms", "4 ms", "**1** (1 to 9)", ""]
    assert b[:5] == ["b", "4 ms", "1 ms", "**4** (1 to 9)", "0.1"]
    assert b[5:] == ["400 ms", "**4** (1 to 9)", "40 MB", "4", "1.0e-01"]
    assert (mean[0], mean[3], mean[4], mean[6]) == ("**geometric mean**", "**2**", "**0.1**", "**2**")
    assert rows[5][:4] == ["c", "4 ms", "cannot", ""]
    assert "Measured 2030-01-02 with onnxeval 1.2, onnxruntime 1.2, the ReferenceEvaluator of onnx 1.2" in page
    assert "2 processors Z80, CP/M; threads for each engine: 2." in page
    assert "busy" not in page


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"reason": "float32[2] and float32[3]"}, "other types or shapes"),
        ({"unlike": 2}, "2 elements unlike"),
        ({"largest_difference": 0.0}, "none"),
        ({"largest_difference": "Infinity"}, "inf"),
        ({"largest_element": 0.0}, "5.0e-01"),
    ],
)
def test_differences(table, change, text):
    page = table.page({"real/a": result(OURS, engine("onnxruntime", 0.001, outputs=[SAME, SAME | change]))})
    expected = text if change != {"largest_difference": 0.0} else "1.0e-01"
    assert expected in page


def test_figures_of_a_busy_machine_say_so(table):
    for others, disturbed in ((0.1, False), (1.5, True), (None, True)):
        one = result(OURS, others=others)
        assert table.disturbed(one) is disturbed
        assert ("take no figure for exact" in table.page({"real/a": one})) is disturbed
