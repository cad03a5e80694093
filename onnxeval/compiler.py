"""Compile a model: its nodes ordered, bound to kernels and gathered in a `Plan`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from onnxeval.attributes import resolved
from onnxeval.constants import Constants
from onnxeval.custom import check_custom_arity, custom_attributes
from onnxeval.errors import ModelError, UnsupportedOperators
from onnxeval.external import NO_FILES, Files
from onnxeval.functions import (
    call_references,
    function_body,
    function_name,
    has_typed_function_body,
    index_functions,
    only_listed,
    typed_function_body,
)
from onnxeval.graph import (
    Order,
    check_independent,
    constants_of,
    import_versions,
    label_of,
    needed_nodes,
    order_function,
    order_graph,
    undefined_capture,
)
from onnxeval.ops._body import call_function
from onnxeval.ops._neighbours import neighbours_of
from onnxeval.ops.contrib._refused import why_refused
from onnxeval.plan import NOTHING, Plan, Step, TypedBody, with_releases
from onnxeval.plugins import load_installed
from onnxeval.registry import DECIDED, STANDARD, Kernel, OpKey, Registry, signature_of
from onnxeval.schema import (
    STANDARD_DOMAINS,
    Schema,
    attribute_values,
    canonical_domain,
    check_arity,
    find_schema,
    newest_opset,
    released_opset,
    why_missing,
)
from onnxeval.tensors import type_from
from onnxeval.values import ValueType

#: Cuts a plan out of the graph being compiled: from the named values to one other.
Cut: TypeAlias = Callable[[Sequence[str], str], Plan]


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the nodes of one graph or function are bound by."""

    imports: Mapping[str, int]
    #: The attributes a function was called with; None outside functions.
    references: Mapping[str, AttributeProto] | None = None
    #: The functions being compiled around this one, outermost first.
    calls: tuple[str, ...] = ()


class Compiler:
    """Compiles the graphs and functions of one model; constants and functions are compiled once.

    ``notes`` collects what a user should be told though nothing is wrong with running.
    """

    def __init__(self, model: ModelProto, files: Files = NO_FILES, registry: Registry = STANDARD) -> None:
        self.model = model
        self.files = files
        self.registry = registry
        self.scope = _Scope(import_versions(model.opset_import, model.ir_version))
        self.notes: list[str] = []
        self.order = order_graph(model.graph)
        if self.order.captures:
            others = [*(value.name for value in model.graph.input), *constants_of(model.graph)]
            raise ModelError(undefined_capture(model.graph.node, self.order, others))
        self._functions = index_functions(model)
        self._function_plans: dict[Any, Plan] = {}
        self._constants = Constants(model.graph, files)
        self._neighbours = cache(partial(neighbours_of, model.graph.node, self._constants.read))
        self._missing: dict[tuple[str, str], None] = {}

    def compile(self, outputs: Sequence[str] | None = None, fed: Collection[str] = ()) -> Plan:
        """The plan that computes ``outputs``, initializers in ``fed`` left open.

        Without ``outputs`` it is the graph's own, and initializers that nothing needs are looked at too. Raises
        ModelError where the model contradicts itself, UnsupportedOperators naming every missing kernel.
        """
        self._missing.clear()
        try:
            names = [value.name for value in self.model.graph.output if value.name] if outputs is None else outputs
            plan = self._graph(self.model.graph, self.order, self.scope, self._constants, names, fed)
        except RecursionError:
            raise ModelError("the model's graphs and functions are nested too deeply") from None
        if self._missing:
            raise UnsupportedOperators(list(self._missing))
        if outputs is None:
            self._constants.look_at_the_rest()
        return plan

    # Graphs

    def _graph(
        self,
        graph: GraphProto,
        order: Order,
        scope: _Scope,
        constants: Constants,
        outputs: Sequence[str] | None = None,
        fed: Collection[str] = (),
    ) -> Plan:
        names = [value.name for value in graph.output] if outputs is None else list(outputs)
        types = {value.name: _declared_type(value) for value in graph.output}
        inputs = [value.name for value in graph.input]
        plan = self._plan(graph.node, order, scope, inputs, names, constants, fed)
        return replace(
            plan,
            inputs=tuple(name for name in inputs if name not in constants.names),  # a caller gives no others
            output_types=tuple(types.get(name) for name in names),
        )

    def _plan(
        self,
        nodes: Sequence[NodeProto],
        order: Order,
        scope: _Scope,
        inputs: Sequence[str],
        outputs: Sequence[str],
        constants: Constants,
        fed: Collection[str] = (),
        known: Collection[str] | None = None,
    ) -> Plan:
        """The plan that computes ``outputs`` from ``inputs``, constants (less those in ``fed``) and captured values.

        ``known`` are the inputs of the graph itself where the plan is a part cut out of it.
        """
        kept, wanted = needed_nodes(nodes, order, outputs, inputs)
        known = inputs if known is None else known

        def cut(names: Sequence[str], output: str) -> Plan:
            check_independent(nodes, order, names, {*known, *constants.read(names)})
            plan = self._plan(nodes, order, scope, names, [output], constants, {*fed, *names}, known)
            if output in plan.captures:
                raise ModelError(f'no node computes the value "{output}"')
            return plan

        steps = self._steps(nodes, kept, wanted, scope, cut)
        wanted.update(name for step in steps for body in step.subgraphs.values() for name in body.captures)
        values = constants.read(wanted.difference(fed))
        local = {*inputs, *values, *(name for step in steps for name in step.outputs)}
        return Plan(
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            output_types=(None,) * len(outputs),
            constants=MappingProxyType(values),
            captures=tuple(sorted(wanted.difference(local, ("",)))),
            steps=with_releases(steps, keep={*outputs, *values}),
        )

    def _steps(
        self, nodes: Sequence[NodeProto], kept: Sequence[int], wanted: set[str], scope: _Scope, cut: Cut
    ) -> list[Step]:
        steps = []
        for place in kept:
            node = nodes[place]
            try:
                step = self._bind(node, place, wanted, scope, cut)
            except ModelError as error:
                raise ModelError(f"{label_of(node, place)}: {error}", hint=error.hint) from error
            if step is not None:
                steps.append(step)
        return steps

    # Nodes

    def _bind(self, node: NodeProto, place: int, wanted: set[str], scope: _Scope, cut: Cut) -> Step | None:
        """The step of a node; None, with a line in ``_missing``, where nothing serves it."""
        domain, op_type = canonical_domain(node.domain), node.op_type
        version = self._version_of(domain, scope)
        schema = None
        if domain in STANDARD_DOMAINS:
            if version > newest_opset(domain):
                raise ModelError(
                    f'opset {version} of "{domain or "ai.onnx"}" is newer than the installed onnx package knows '
                    f"({newest_opset(domain)})",
                    hint="upgrade the onnx package, or export the model for an older opset",
                )
            schema = find_schema(domain, op_type, version)
        kernel, since = self._find_kernel(domain, op_type, version, schema)
        function = self._functions.get((domain, op_type, node.overload)) if self._functions else None
        if kernel is not None and function is not None:
            self._note(f"the model's function {function_name(function)} is not used: onnxeval has the operator itself")
        if kernel is not None:
            bound = self._kernel_step(node, place, kernel, since, schema, wanted, scope, cut)
            if schema is None or not schema.has_body:
                return bound
            return replace(bound, spelled_out=partial(self._spelled_out, node, place, schema, version, wanted, scope))
        if function is not None:
            return self._function_step(node, place, function, wanted, scope)
        if schema is not None and (step := self._body_step(node, place, schema, version, wanted, scope)) is not None:
            return step
        there = self.registry.versions(domain, node.op_type)
        reason = why_refused(domain, node.op_type) or why_missing(domain, node.op_type, version, there)
        self._missing[label_of(node, place), reason] = None
        return None

    def _version_of(self, domain: str, scope: _Scope) -> int:
        """The version of a domain that a node is bound by, with a note where it has to be assumed."""
        if domain in scope.imports:
            return scope.imports[domain]
        name = domain or "ai.onnx"
        self.registry.load_section("contrib")
        if domain in self.scope.imports:
            version, why = self.scope.imports[domain], "which the model imports"
        elif domain in STANDARD_DOMAINS:
            version, why = released_opset(domain, self.model.ir_version), "the newest for the model's IR version"
        elif newest := self.registry.newest(domain):
            version, why = newest, "the newest there is"
        else:
            raise ModelError(f'its domain "{name}" is not among the opset imports')
        importer = f"function {scope.calls[-1]}" if scope.calls else "the model"
        self._note(f'{importer} uses operators of "{name}" and does not import it: taken at version {version}, {why}')
        return version

    def _find_kernel(self, domain: str, op_type: str, version: int, schema: Schema | None) -> tuple[Kernel | None, int]:
        """In the standard the exact key serves, elsewhere the newest version not above the imported one."""
        if schema is not None:
            return self.registry.find(schema.key, schema.section), schema.key.since_version
        for load in (partial(self.registry.load_operator, op_type), self.registry.load_section):
            if not self.registry.versions(domain, op_type):
                load("contrib")
        if not self.registry.versions(domain, op_type):
            load_installed()
        since = max((v for v in self.registry.versions(domain, op_type) if v <= version), default=0)
        return self.registry.get(OpKey(domain, op_type, since)), since

    def _kernel_step(
        self,
        node: NodeProto,
        place: int,
        kernel: Kernel,
        since: int,
        schema: Schema | None,
        wanted: set[str],
        scope: _Scope,
        cut: Cut,
    ) -> Step:
        signature = signature_of(kernel)
        inputs = tuple(node.input)
        given = resolved(node.attribute, scope.references)
        if schema is not None:
            check_arity(schema, inputs, node.output)
            attributes: Mapping[str, Any] = attribute_values(given, schema, self.files)
        else:
            check_custom_arity(kernel, inputs, node.output)
            attributes = custom_attributes(given, kernel, self.files)
        graphs = {name: value for name, value in attributes.items() if isinstance(value, GraphProto)}
        if graphs or "n_outputs" in signature.injected:
            attributes = {name: value for name, value in attributes.items() if name not in graphs}
            if "n_outputs" in signature.injected:
                attributes["n_outputs"] = _count_listed(node.output, schema)
        if "neighbours" in signature.injected:
            attributes = {**attributes, "neighbours": self._neighbours(node.domain)}
        subgraphs = {
            name: self._graph(graph, order_graph(graph), scope, Constants(graph, self.files))
            for name, graph in graphs.items()
        }
        if "surroundings" in signature.injected:
            subgraphs["surroundings"] = cut([*attributes["xs"], *(attributes["zs"] or ())], attributes["y"])
        return Step(
            label=f"{node.name or f'node {place}'} ({node.op_type}-{since})",
            kernel=kernel,
            inputs=inputs + ("",) * (len(signature.positional) - len(inputs)),
            outputs=tuple([name if name in wanted else "" for name in node.output]),
            attributes=attributes,
            subgraphs=subgraphs,
            injected=signature.injected - DECIDED,
            schema=schema,
        )

    # Functions

    def _function_step(
        self, node: NodeProto, place: int, function: FunctionProto, wanted: set[str], scope: _Scope
    ) -> Step:
        name = function_name(function)
        references = call_references(function, node, resolved(node.attribute, scope.references))
        imports = import_versions(function.opset_import)
        return self._call_step(node, place, self._function_plan(function, name, references, imports, scope), wanted)

    def _body_step(
        self, node: NodeProto, place: int, schema: Schema, opset: int, wanted: set[str], scope: _Scope
    ) -> Step | None:
        """A step that runs the function body of the schema; None where the schema has none."""
        given = resolved(node.attribute, scope.references)
        attribute_values(given, schema, self.files)
        check_arity(schema, node.input, node.output)
        defaults = {n: a.default_value for n, a in schema.definition.attributes.items() if a.default_value.type}
        references = {**defaults, **{a.name: a for a in given}}
        if (body := function_body(schema, opset)) is not None:
            imports = {**scope.imports, **import_versions(body.opset_import)}
            plan = self._function_plan(
                only_listed(body, node), f"{schema.label} at {opset}", references, imports, scope
            )
            return replace(self._call_step(node, place, plan, wanted), schema=schema)
        if not has_typed_function_body(schema):
            return None

        def build(types: tuple[ValueType | None, ...]) -> Plan:
            built = typed_function_body(schema, opset, node, types)
            if built is None:
                reason = f"the schema of {schema.label} builds no function body for these inputs"
                raise UnsupportedOperators([(label_of(node, place), reason)])
            imports = {**scope.imports, **import_versions(built.opset_import)}
            plan = self._function_body(only_listed(built, node), schema.label, references, imports, scope)
            if self._missing:
                raise UnsupportedOperators(list(self._missing))
            return plan

        body_inputs = tuple(slot.name for slot in schema.inputs if not slot.variadic)
        return replace(self._call_step(node, place, TypedBody(build, body_inputs), wanted), schema=schema)

    def _spelled_out(
        self, node: NodeProto, place: int, schema: Schema, opset: int, wanted: set[str], scope: _Scope
    ) -> Step | None:
        """`_body_step`, once the model is compiled."""
        step = self._body_step(node, place, schema, opset, wanted, scope)
        if self._missing:
            raise UnsupportedOperators(list(self._missing))
        return step

    def _call_step(self, node: NodeProto, place: int, body: Plan | TypedBody, wanted: set[str]) -> Step:
        return Step(
            label=label_of(node, place),
            kernel=call_function,
            inputs=tuple(node.input) + ("",) * (len(body.inputs) - len(node.input)),
            outputs=tuple([name if name in wanted else "" for name in node.output]),
            attributes=NOTHING,
            subgraphs={"body": body},
            injected=frozenset(),
            schema=None,
        )

    def _function_plan(
        self,
        function: FunctionProto,
        name: str,
        references: Mapping[str, AttributeProto],
        imports: Mapping[str, int],
        scope: _Scope,
    ) -> Plan:
        values = tuple(sorted((key, a.SerializeToString(deterministic=True)) for key, a in references.items()))
        key = (name, function.overload, values, tuple(function.output))
        if name in scope.calls:
            raise ModelError(f"function {name} calls itself: {' > '.join([*scope.calls, name])}")
        if key not in self._function_plans:
            self._function_plans[key] = self._function_body(function, name, references, imports, scope)
        return self._function_plans[key]

    def _function_body(
        self,
        function: FunctionProto,
        name: str,
        references: Mapping[str, AttributeProto],
        imports: Mapping[str, int],
        scope: _Scope,
    ) -> Plan:
        inner = _Scope(imports, references, (*scope.calls, name))
        try:
            order = order_function(function, function.output)
        except ModelError as error:
            raise ModelError(f"function {name}: {error}") from error
        return self._plan(function.node, order, inner, function.input, function.output, Constants())

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _declared_type(value: ValueInfoProto) -> ValueType | None:
    return type_from(value.type) if value.HasField("type") else None


def _count_listed(outputs: Sequence[str], schema: Schema | None) -> int:
    """How many outputs a node lists. Blank ones at the end are left out, unless they count as parts of a variadic."""
    if schema is not None and schema.outputs and schema.outputs[-1].variadic:
        return len(outputs)
    return max((place for place, name in enumerate(outputs, 1) if name), default=0)
