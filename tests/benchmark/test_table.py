"""The page that benchmarks/run.py writes."""

import bounds
import pytest
import table


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


def result(*engines, others=0.0, threads=2, **more):
    machine = {
        "processor": "Z80",
        "processors": 2,
        "system": "CP/M",
        "python": "3.11",
        "numpy": "2.4",
        "others": others,
    }
    return {"date": "2030-01-02", "threads": threads, "machine": machine, "engines": list(engines), **more}


OURS = engine("onnxeval", 0.004)
SAME = {"name": "y", "largest_difference": 0.5, "largest_element": 5.0, "unlike": 0, "elements": 2, "reason": None}


def test_rows_and_means():
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
    assert a[:7] == ["a", "4 ms", "4 ms", "**1** (1 to 9)", "", "", ""]
    assert b[:7] == ["b", "4 ms", "1 ms", "**4** (1 to 9)", "", "", "0.1"]
    assert b[7:] == ["400 ms", "**4** (1 to 9)", "40 MB", "4", "1.0e-01"]
    assert (mean[0], mean[3], mean[6], mean[8]) == ("**geometric mean**", "**2**", "**0.1**", "**2**")
    assert rows[5][:4] == ["c", "4 ms", "cannot", ""]
    assert "Measured 2030-01-02 with onnxeval 1.2, onnxruntime 1.2, the ReferenceEvaluator of onnx 1.2" in page
    assert "2 processors Z80, CP/M; each engine on 2 threads." in page
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
def test_differences(change, text):
    page = table.page({"real/a": result(OURS, engine("onnxruntime", 0.001, outputs=[SAME, SAME | change]))})
    expected = text if change != {"largest_difference": 0.0} else "1.0e-01"
    assert expected in page


def test_figures_of_a_busy_machine_say_so():
    for others, disturbed in ((0.1, False), (1.5, True), (None, True)):
        one = result(OURS, others=others)
        assert table.disturbed(one) is disturbed
        assert ("take no figure for exact" in table.page({"real/a": one})) is disturbed


def test_a_processor_kept_busy_on_purpose_is_none_of_the_others():
    for others, busy, disturbed in ((1.0, 0.95, False), (1.3, 0.95, True), (1.0, None, True)):
        assert table.disturbed(result(OURS, others=others, busy=busy)) is disturbed
    page = table.page({"real/a 2 threads, one processor kept busy": result(OURS, others=1.0, busy=0.95)})
    assert "take no figure for exact" not in page
    assert "each engine on 2 threads, one processor kept busy." in page
    assert "an endless loop, on purpose" in page


PEAKS = {"float32": 1e9, "int8": 4e9, "bandwidth": {"1000": 2e9, "1000000": 1e9}}
WORK = {"float32": 500_000, "int8": 0, "bytes": 2000, "unknown": 0}


def test_settings_are_columns_and_times_stand_beside_their_bounds():
    slow, fast = engine("onnxruntime", 0.001), engine("onnxruntime", 0.002)
    page = table.page(
        {
            "further/b 2 threads": result(OURS, slow, peaks=PEAKS, work=WORK),
            "further/a 2 threads": result(OURS, slow, peaks=PEAKS, work=WORK | {"unknown": 1}),
            "further/a 1 thread": result(OURS, fast, threads=1, peaks=PEAKS, work=WORK),
            "further/a 1 thread, kernels for v3": result(OURS, OURS, threads=1, native="v3"),
            "further/c 1 thread": result(OURS, fast, threads=1),
            "real/a 2 threads": result(OURS, slow, peaks=PEAKS, work=WORK | {"float32": 1, "bytes": 9}),
        }
    )
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    assert rows[1][4:6] == ["", ""]
    heading, a, b, c, mean = rows[3:]
    assert heading[3:8] == ["ratio", "1 thread", "1 thread, kernels for v3", "of the bound", "onnxruntime of it"]
    assert a[3:8] == ["**4** (1 to 9)", "2", "", "at most 4", "at most 1"]
    assert b[3:8] == ["**4** (1 to 9)", "", "", "4", "1"]
    assert c[:5] == ["c", "", "", "", "2"]
    assert mean[3:8] == ["**4**", "**2**", "", "**4**", "**1**"]
    assert "Ratios to onnxruntime's time also for 1 thread; 1 thread, kernels for v3" in page
    assert "1 GFLOP/s" in page


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (WORK, 1e-3),
        (WORK | {"int8": 2_000_000}, 2e-3),
        (WORK | {"bytes": 999_999_000}, 0.999999),
        (WORK | {"float32": 0, "bytes": 2000}, 1e-6),
        (WORK | {"float32": 0, "bytes": 500}, 2.5e-7),
    ],
)
def test_bound(work, seconds):
    assert bounds.bound(work, PEAKS) == pytest.approx(seconds)
