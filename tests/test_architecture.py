"""The floors: a module imports only from lower ones, and only some may import onnx, click or rich."""

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: Module or package of onnxeval -> its floor. Modules on one floor do not import each other.
FLOORS = {
    "errors": 0,
    "dtypes": 0,
    "values": 1,
    "threads": 1,
    "arena": 1,
    "memory": 1,
    "results": 2,
    "comparing": 2,
    "carrying": 2,
    "summary": 3,
    "external": 1,
    "bulk": 1,
    "lookalikes": 0,
    "wire": 0,
    "tensors": 2,
    "registry": 2,
    "plugins": 2,
    "attributes": 3,
    "constants": 3,
    "custom": 4,
    "schema": 4,
    "saving": 7,
    "extracting": 13,
    "ops": 5,
    "functions": 5,
    "graph": 5,
    "loader": 5,
    "feeding": 6,
    "opdocs": 6,
    "opdiff": 7,
    "serving": 6,
    "fitting": 5,
    "plan": 5,
    "fast": 6,
    "passes": 7,
    "compiler": 7,
    "observe": 6,
    "limits": 7,
    "executor": 8,
    "checks": 9,
    "sizes": 6,
    "inspection": 14,
    "random_feeds": 15,
    "applying": 7,
    "testing": 16,
    "batches": 16,
    "tape": 9,
    "watching": 8,
    "replay": 10,
    "growing": 11,
    "adaptive": 12,
    "model": 13,
    "backend": 14,
    "suite": 14,
    "files": 6,
    "benchmark": 14,
    "versus": 17,
}
ONNX_READERS = {
    "applying",
    "testing",
    "random_feeds",
    "bulk",
    "lookalikes",
    "wire",
    "constants",
    "functions",
    "fitting",
    "attributes",
    "custom",
    "dtypes",
    "tensors",
    "schema",
    "opdocs",
    "graph",
    "loader",
    "compiler",
    "model",
    "checks",
    "backend",
    "suite",
    "files",
    "versus",
    "saving",
    "extracting",
}
OPS_MAY_USE = {"errors", "dtypes", "values", "registry", "ops"}

MODULES = sorted(path for path in (ROOT / "onnxeval").rglob("*.py") if path.name not in ("__init__.py", "__main__.py"))
COMMANDS = sorted((ROOT / "cli").glob("*.py"))


def room_of(path: Path) -> str:
    first = path.relative_to(ROOT / "onnxeval").parts[0]
    return first.removesuffix(".py")


@functools.cache
def imports_of(path: Path) -> frozenset[str]:
    """Every module a file imports at run time, relative ones resolved; typing-only imports do not count."""
    found = set()
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    todo: list[ast.AST] = [ast.parse(path.read_text())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = f"{base}.{node.module}" if base and node.module else base or str(node.module)
            found.update({module, *(f"{module}.{alias.name}" for alias in node.names)})
        todo.extend(ast.iter_child_nodes(node))
    return frozenset(found)


def rooms_imported(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports_of(path) if name.startswith("onnxeval.")} & FLOORS.keys()


def imports_package(path: Path, package: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for name in imports_of(path))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    room = room_of(path)
    assert room in FLOORS, f"{room} has no floor"
    for other in rooms_imported(path) - {room}:
        assert FLOORS[other] < FLOORS[room], f"{room} (floor {FLOORS[room]}) imports {other} (floor {FLOORS[other]})"
    if room == "ops":
        assert rooms_imported(path) <= OPS_MAY_USE
    if imports_package(path, "onnx"):
        assert room in ONNX_READERS, f"{room} imports onnx"
    assert not imports_package(path, "click")
    assert not imports_package(path, "rich")


def test_kernels_share_code_through_underscore_modules_only() -> None:
    for path in MODULES:
        if room_of(path) != "ops":
            continue
        for name in imports_of(path):
            parts = name.split(".")
            if parts[:2] == ["onnxeval", "ops"] and (ROOT / Path(*parts)).with_suffix(".py").exists():
                same_section = parts[2] == path.parent.name
                assert parts[-1].startswith("_") or same_section, f"{path} imports {name}"


@pytest.mark.parametrize("path", COMMANDS, ids=lambda p: p.name)
def test_the_command_line_stands_on_the_library(path: Path) -> None:
    assert not imports_package(path, "onnx"), "commands go through onnxeval"


@pytest.mark.parametrize(
    "path",
    [
        p
        for folder in ("onnxeval", "cli", "tests", "sample_models", "benchmarks")
        for p in sorted((ROOT / folder).rglob("*.py"))
    ],
    ids=str,
)
def test_no_file_is_longer_than_400_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def test_operator_names_stand_only_where_operators_are_known() -> None:
    """No operator name is spelled outside ops, fast and passes: behaviour hangs on the registry alone."""
    from onnxeval.schema import all_schemas

    names = {schema.key.op_type for schema in all_schemas()} - {"Optional", "Sequence"}
    free = {"ops", "fast", "passes", "checks", "inspection", "random_feeds"}
    for path in MODULES:
        if room_of(path) in free:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert node.value not in names, f"{path.name} names the operator {node.value}"
