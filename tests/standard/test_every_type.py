"""Every version takes every element type that its schema lists for an input: some drawn node of each gives a result.

At most a dozen combinations of types are tried for a version, with every type of every variable among them.
"""

import random

import numpy as np
import pytest
from differential.drawing import Drawing, element_of, type_bindings
from standard.bodies import OWN, STRATEGIES

import onnxeval
from onnxeval.dtypes import BY_NAME
from onnxeval.schema import Schema, all_schemas

#: Forms that the strategies do not know, with examples of their own elsewhere.
OTHERWISE = {
    "BatchNormalization-1": "needs consumed_inputs",
    "Cast-1": "names its type",
    "Loop-1": "the body that is drawn holds a Cast of a later form",
    "Pad-1": "has paddings, not pads",
    "Reshape-1": "has the shape as an attribute",
    "Tile-1": "has a count and an axis",
    "Upsample-1": "has scales of its own for height and width",
}
SCHEMAS = {
    str(s.key): s
    for s in all_schemas()
    if (s.key.op_type in OWN or s.key[:2] in STRATEGIES) and str(s.key) not in OTHERWISE
}


def belongs(schema: Schema, types: dict[str, str]) -> bool:
    """Whether an operator can give anything for these types, which the schema does not tell."""
    if schema.key.op_type == "SequenceInsert":
        return element_of(types["S"]) == element_of(types["T"])
    return True


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_type_is_taken(name: str) -> None:
    schema = SCHEMAS[name]
    strategy = OWN.get(schema.key.op_type) or STRATEGIES[schema.key[:2]]
    for types in filter(lambda types: belongs(schema, types), type_bindings(schema, (), 12)):
        refusals = []
        for seed in range(12):
            node = strategy.draw(Drawing(random.Random(seed).randint, schema, types, strategy.palettes))
            if schema.key.op_type == "DequantizeLinear" and node.input(1).dtype == BY_NAME["float8e8m0"]:
                node.attributes["output_dtype"] = 1  # no version gives the type of this scale
            model = node.model()
            model.opset_import[0].version = schema.key.since_version
            try:
                with np.errstate(all="ignore"):
                    onnxeval.load(model).run(node.feeds, seed=1)
            except onnxeval.OnnxEvalError as error:
                refusals.append(str(error))
            else:
                break
        else:
            pytest.fail(f"{types}: {refusals[0]}")


def test_hardly_anything_is_left_out() -> None:
    assert {str(s.key) for s in all_schemas()} >= OTHERWISE.keys()
    assert len(SCHEMAS) >= 635
