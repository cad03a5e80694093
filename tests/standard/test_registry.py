"""Every kernel against every schema it claims: signature, defaults, the section it stands in, growth over versions."""

import inspect
import itertools
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from onnxeval.registry import OpKey, Registry, signature_of, source_of
from onnxeval.schema import STANDARD_DOMAINS, Schema, all_schemas

REGISTRY = Registry.standard()
SCHEMAS = {schema.key: schema for schema in all_schemas()}
CLAIMS = [key for key in sorted(REGISTRY) if key.domain in STANDARD_DOMAINS and key in SCHEMAS]
LEGACY = {"consumed_inputs"}


def attributes_of(schema: Schema) -> set[str]:
    return set(schema.attributes) - LEGACY


@pytest.mark.parametrize("key", CLAIMS, ids=str)
def test_kernel_fits_its_schema(key: OpKey) -> None:
    schema, signature = SCHEMAS[key], signature_of(REGISTRY[key])
    assert attributes_of(schema) <= set(signature.attributes), "attributes that the kernel does not take"
    fewest = len(schema.inputs) - bool(schema.inputs and schema.inputs[-1].variadic)
    variadic = bool(schema.inputs and schema.inputs[-1].variadic)
    assert signature.variadic or not variadic, "a variadic input needs *inputs"
    assert signature.variadic or len(signature.positional) >= fewest, "more inputs than the kernel takes"
    section = Path(source_of(REGISTRY[key])[0])
    if "ops" in section.parts and section.parts[-2] != "ops":
        registered_in = section.parts[section.parts.index("ops") + 1]
        assert registered_in == schema.section


def test_every_kernel_claims_versions_that_exist() -> None:
    strangers = [str(key) for key in REGISTRY if key.domain in STANDARD_DOMAINS - {""} and key not in SCHEMAS]
    assert not strangers


def versions_by_kernel() -> dict[object, list[OpKey]]:
    versions = defaultdict(list)
    for key in CLAIMS:
        versions[(REGISTRY[key], key.domain, key.op_type)].append(key)
    return versions


@pytest.mark.parametrize(
    ("kernel", "keys"),
    [(k[0], v) for k, v in versions_by_kernel().items()],
    ids=lambda x: str(x[0]) if isinstance(x, list) else "",
)
def test_python_defaults_mean_that_a_version_lacks_the_attribute(kernel, keys: list[OpKey]) -> None:
    """Over every schema, of any operator, that the kernel serves."""
    served = [SCHEMAS[key] for key in CLAIMS if REGISTRY[key] is kernel]
    for name, default in signature_of(kernel).attributes.items():
        lacking = [schema.label for schema in served if name not in attributes_of(schema)]
        if default is inspect.Parameter.empty:
            assert not lacking, f"{name} has no default, but {lacking} lack it"
        else:
            assert lacking, f"{name} has a default, though every version has the attribute"


@pytest.mark.parametrize(
    ("kernel", "keys"),
    [(k[0], v) for k, v in versions_by_kernel().items()],
    ids=lambda x: str(x[0]) if isinstance(x, list) else "",
)
def test_inside_one_kernel_the_schema_only_grows(kernel, keys: list[OpKey]) -> None:
    for older, newer in itertools.pairwise(keys):
        one, other = SCHEMAS[older], SCHEMAS[newer]
        assert attributes_of(one) <= attributes_of(other), f"{older} -> {newer} lost an attribute"
        assert len(one.inputs) <= len(other.inputs), f"{older} -> {newer} lost an input"
        for name in attributes_of(one):
            assert one.attributes[name].kind == other.attributes[name].kind, f"{name} was retyped"


#: Prints, for each kernel, its operator and the file whose import registered it.
HOMES = """
import sys
from onnxeval.registry import Registry
add = Registry.add
def recorded(self, key, kernel):
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>":
        frame = frame.f_back
    print(key.op_type, frame.f_code.co_filename)
    add(self, key, kernel)
Registry.add = recorded
Registry.standard()
"""


def test_every_kernel_file_holds_the_names_of_its_operators_in_quotes() -> None:
    """By them a run finds what it has to import."""
    said = subprocess.run([sys.executable, "-c", HOMES], capture_output=True, text=True, check=True).stdout
    homes = [line.split(" ", 1) for line in said.splitlines()]
    assert len(homes) > 700
    assert not [home for home in homes if f'"{home[0]}"' not in Path(home[1]).read_text("utf-8")]
