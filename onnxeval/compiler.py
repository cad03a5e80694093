"""Compile a model: its nodes ordered, bound to kernels and gathered in a `Plan`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from onnxeval.attributes import resolved
from onnxeval.constants import Constants
from onnxeval.errors import ModelError, UnsupportedOperators
from onnxeval.external import NO_FILES, Files
from onnxeval.fitting import attribute_values, check_arity
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
from onnxeval.plan import NOTHING, Plan, Step, TypedBody, with_releases
from onnxeval.registry import STANDARD, Registry
from onnxeval.schema import STANDARD_DOMAINS, Schema, canonical_domain, released_opset
from onnxeval.serving import Served, serve, why_not_served
from onnxeval.tensors import type_from
from onnxeval.values import ValueType

if TYPE_CHECKING:
    from onnxeval.ops._neighbours import Neighbours

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
    #: By domain and operator.
    served: dict[tuple[str, str], Served] = field(default_factory=dict)


class _Node(NamedTuple):
    """A node, its place in the file, and its names: "" for outputs that nobody wants."""

    proto: NodeProto
    place: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    around: Order  # that of its graph

    def order_of(self, attribute: str, graph: GraphProto) -> Order:
        """The order of the graph that is this attribute; of one that a function was called with, it is new."""
        return self.around.bodies.get((self.place, attribute)) or order_graph(graph)


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
        self._neighbours = cache(self._find_neighbours)
        self._missing: dict[tuple[str, str], None] = {}

    def compile(self, outputs: Sequence[str] | None = None, fed: Collection[str] = ()) -> Plan:
        """The plan that computes ``outputs``, initializers in ``fed`` left open.

        Without ``outputs`` it is the graph's own, and initializers that nothing needs are looked at too. Raises
        ModelError where the model contradicts itself, UnsupportedOperators naming every missing kernel.
        """
        self._missing.clear()
        try:
            names = [value.name for value in self.model.graph.output if value.name] if outputs is None else outputs
            scope = _Scope(self.scope.imports)  # operators may have been registered since the last time
            plan = self._graph(self.model.graph, self.order, scope, self._constants, names, fed)
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
        return plan._replace(
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
        kept, wanted = needed_nodes(order, outputs, inputs)
        known = inputs if known is None else known

        def cut(names: Sequence[str], output: str) -> Plan:
            check_independent(nodes, order, names, {*known, *constants.read(names)})
            plan = self._plan(nodes, order, scope, names, [output], constants, {*fed, *names}, known)
            if output in plan.captures:
                raise ModelError(f'no node computes the value "{output}"')
            return plan

        steps = self._steps(nodes, order, kept, wanted, scope, cut)
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
        self,
        nodes: Sequence[NodeProto],
        order: Order,
        kept: Sequence[int],
        wanted: set[str],
        scope: _Scope,
        cut: Cut,
    ) -> list[Step]:
        steps = []
        for place in kept:
            outputs = order.outputs[place]
            if not wanted.issuperset(outputs):
                outputs = tuple([name if name in wanted else "" for name in outputs])
            node = _Node(nodes[place], place, order.inputs[place], outputs, order)
            try:
                step = self._bind(node, scope, cut)
            except ModelError as error:
                raise ModelError(f"{label_of(node.proto, place)}: {error}", hint=error.hint) from error
            if step is not None:
                steps.append(step)
        return steps

    # Nodes

    def _bind(self, node: _Node, scope: _Scope, cut: Cut) -> Step | None:
        """The step of a node; None, with a line in ``_missing``, where nothing serves it."""
        domain, op_type = canonical_domain(node.proto.domain), node.proto.op_type
        served = scope.served.get((domain, op_type))
        if served is None:
            served = serve(self.registry, domain, op_type, self._version_of(domain, scope))
            scope.served[domain, op_type] = served
        function = self._functions.get((domain, op_type, node.proto.overload)) if self._functions else None
        if served.kernel is not None and function is not None:
            self._note(f"the model's function {function_name(function)} is not used: onnxeval has the operator itself")
        if served.kernel is not None:
            return self._kernel_step(node, op_type, served, scope, cut)
        if function is not None:
            return self._function_step(node, function, scope)
        schema, version = served.schema, served.version
        if schema is not None and (step := self._body_step(node, schema, version, scope)) is not None:
            return step
        reason = why_not_served(self.registry, domain, op_type, version)
        self._missing[label_of(node.proto, node.place), reason] = None
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

    def _kernel_step(self, node: _Node, op_type: str, served: Served, scope: _Scope, cut: Cut) -> Step:
        kernel, signature, schema = served.kernel, served.signature, served.schema
        assert kernel is not None and signature is not None  # noqa: PT018  # one goes with the other
        proto, inputs = node.proto, node.inputs
        given = resolved(proto.attribute, scope.references)
        lacking = len(signature.positional) - len(inputs)
        spelled_out = None
        if schema is not None:
            check_arity(schema, inputs, node.outputs)
            attributes: Mapping[str, Any] = attribute_values(given, schema, self.files)
            if schema.has_body:
                spelled_out = partial(self._spelled_out, node, schema, served.version, scope)
        else:
            from onnxeval.custom import check_custom_arity, custom_attributes

            check_custom_arity(kernel, inputs, proto.output)
            attributes = custom_attributes(given, kernel, self.files)
        subgraphs: Mapping[str, Plan] = NOTHING
        if schema is None or schema.takes_graphs:
            graphs = {name: value for name, value in attributes.items() if isinstance(value, GraphProto)}
            attributes = {name: value for name, value in attributes.items() if name not in graphs}
            subgraphs = {
                name: self._graph(graph, node.order_of(name, graph), scope, Constants(graph, self.files))
                for name, graph in graphs.items()
            }
        if signature.injected:
            if "n_outputs" in signature.injected:
                attributes = {**attributes, "n_outputs": _count_listed(proto.output, schema)}
            if "neighbours" in signature.injected:
                attributes = {**attributes, "neighbours": self._neighbours(proto.domain)}
            if "surroundings" in signature.injected:
                around = cut([*attributes["xs"], *(attributes["zs"] or ())], attributes["y"])
                subgraphs = {**subgraphs, "surroundings": around}
        return Step(
            f"{proto.name or f'node {node.place}'} ({op_type}-{served.since})",
            kernel,
            inputs + ("",) * lacking if lacking > 0 else inputs,
            node.outputs,
            attributes,
            subgraphs,
            served.injected,
            schema,
            served.named,
            spelled_out,
        )

    # Functions

    def _function_step(self, node: _Node, function: FunctionProto, scope: _Scope) -> Step:
        name = function_name(function)
        references = call_references(function, node.proto, resolved(node.proto.attribute, scope.references))
        imports = import_versions(function.opset_import)
        return _call_step(node, self._function_plan(function, name, references, imports, scope))

    def _body_step(self, node: _Node, schema: Schema, opset: int, scope: _Scope) -> Step | None:
        """A step that runs the function body of the schema; None where the schema has none."""
        given = resolved(node.proto.attribute, scope.references)
        attribute_values(given, schema, self.files)
        check_arity(schema, node.inputs, node.outputs)
        defaults = {n: a.default_value for n, a in schema.definition.attributes.items() if a.default_value.type}
        references = {**defaults, **{a.name: a for a in given}}
        if (body := function_body(schema, opset)) is not None:
            imports = {**scope.imports, **import_versions(body.opset_import)}
            plan = self._function_plan(
                only_listed(body, node.proto), f"{schema.label} at {opset}", references, imports, scope
            )
            return _call_step(node, plan)._replace(schema=schema)
        if not has_typed_function_body(schema):
            return None

        def build(types: tuple[ValueType | None, ...]) -> Plan:
            built = typed_function_body(schema, opset, node.proto, types)
            if built is None:
                reason = f"the schema of {schema.label} builds no function body for these inputs"
                raise UnsupportedOperators([(label_of(node.proto, node.place), reason)])
            imports = {**scope.imports, **import_versions(built.opset_import)}
            plan = self._function_body(only_listed(built, node.proto), schema.label, references, imports, scope)
            if self._missing:
                raise UnsupportedOperators(list(self._missing))
            return plan

        body_inputs = tuple(slot.name for slot in schema.inputs if not slot.variadic)
        return _call_step(node, TypedBody(build, body_inputs))._replace(schema=schema)

    def _spelled_out(self, node: _Node, schema: Schema, opset: int, scope: _Scope) -> Step | None:
        """`_body_step`, once the model is compiled."""
        step = self._body_step(node, schema, opset, scope)
        if self._missing:
            raise UnsupportedOperators(list(self._missing))
        return step

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

    def _find_neighbours(self, domain: str) -> Neighbours:
        from onnxeval.ops._neighbours import neighbours_of

        return neighbours_of(self.model.graph.node, self._constants.read, domain)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _call_step(node: _Node, body: Plan | TypedBody) -> Step:
    return Step(
        label=label_of(node.proto, node.place),
        kernel=call_function,
        inputs=node.inputs + ("",) * (len(body.inputs) - len(node.inputs)),
        outputs=node.outputs,
        attributes=NOTHING,
        subgraphs={"body": body},
        injected=frozenset(),
        schema=None,
    )


def _declared_type(value: ValueInfoProto) -> ValueType | None:
    return type_from(value.type) if value.HasField("type") else None


def _count_listed(outputs: Sequence[str], schema: Schema | None) -> int:
    """How many outputs a node lists. Blank ones at the end are left out, unless they count as parts of a variadic."""
    if schema is not None and schema.outputs and schema.outputs[-1].variadic:
        return len(outputs)
    return max((place for place, name in enumerate(outputs, 1) if name), default=0)
