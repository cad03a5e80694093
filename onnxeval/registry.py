"""The table of kernels, keyed by (domain, op_type, since_version)."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias, TypeVar

from onnxeval.dtypes import DType

Kernel: TypeAlias = Callable[..., Any]
K = TypeVar("K", bound=Kernel)

#: Parameters that the executor supplies to kernels that name them; they are not attributes.
INJECTED = frozenset({"n_outputs", "rng", "allocate", "surroundings", "neighbours", "prepared"})

#: Those of them that are decided when a step is made.
DECIDED = frozenset({"n_outputs", "surroundings", "neighbours", "prepared"})


class OpKey(NamedTuple):
    """What a kernel is registered under. The domain ``ai.onnx`` is ""."""

    domain: str
    op_type: str
    since_version: int

    def __str__(self) -> str:
        name = f"{self.op_type}-{self.since_version}"
        return f"{self.domain}.{name}" if self.domain else name


class InputTypes(NamedTuple):
    """The element types that a kernel takes, as its attribute ``input_types`` tells: no schema does.

    ``letters`` has one type variable for each input, the last of them for all further ones; inputs of one letter have
    one type, which is among those that are ``allowed`` for it.
    """

    letters: str
    allowed: Mapping[str, Collection[DType]]

    def letter(self, place: int) -> str:
        """The type variable of an input."""
        return self.letters[min(place, len(self.letters) - 1)]


class Signature(NamedTuple):
    """How a kernel wants to be called."""

    positional: tuple[str, ...]  # tensors, in schema order
    variadic: bool  # more tensors may follow
    attributes: Mapping[str, Any]  # keyword-only, name -> default or inspect.Parameter.empty
    injected: frozenset[str]
    types: InputTypes | None  # None where they are not told
    most_outputs: int | None  # None where that is not told either


@cache
def signature_of(kernel: Kernel) -> Signature:
    """Read a kernel's Python signature: tensors positional, attributes keyword-only."""
    positional, keywords, variadic = _parameters(kernel)
    attributes = {name: default for name, default in keywords.items() if name not in INJECTED}
    told = getattr(kernel, "input_types", None), getattr(kernel, "most_outputs", None)
    return Signature(positional, variadic, attributes, INJECTED & keywords.keys(), *told)


def _parameters(kernel: Kernel) -> tuple[tuple[str, ...], dict[str, Any], bool]:
    """The positional parameters, the keyword-only ones with their defaults, and whether more positional ones follow."""
    function = inspect.unwrap(kernel, stop=lambda inner: hasattr(inner, "__signature__"))
    if isinstance(function, FunctionType) and not hasattr(function, "__signature__"):  # inspect takes ten times as long
        code, defaults = function.__code__, function.__kwdefaults__ or {}
        count, names = code.co_argcount, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        keywords = {name: defaults.get(name, inspect.Parameter.empty) for name in names[count:]}
        return names[:count], keywords, bool(code.co_flags & inspect.CO_VARARGS)
    parameters = inspect.signature(kernel).parameters.values()
    kinds = inspect.Parameter
    return (
        tuple([p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]),
        {p.name: p.default for p in parameters if p.kind is kinds.KEYWORD_ONLY},
        any(p.kind is kinds.VAR_POSITIONAL for p in parameters),
    )


class Registry(Mapping[OpKey, Kernel]):
    """{(domain, op_type, since_version): kernel}; iterating yields the keys."""

    def __init__(self) -> None:
        self._kernels: dict[OpKey, Kernel] = {}
        self._versions: dict[tuple[str, str], list[int]] = {}
        self._loaded: set[str] = set()

    def __getitem__(self, key: OpKey) -> Kernel:
        return self._kernels[key]

    def __iter__(self) -> Iterator[OpKey]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def add(self, key: OpKey, kernel: Kernel) -> None:
        """Register a kernel. A key that is taken is a ValueError that names both functions."""
        if (other := self._kernels.get(key)) is not None:
            raise ValueError(f"{key} is registered twice: {_location(other)} and {_location(kernel)}")
        self._kernels[key] = kernel
        self._versions.setdefault((key.domain, key.op_type), []).append(key.since_version)

    def versions(self, domain: str, op_type: str) -> list[int]:
        """The versions there are of an operator, oldest first."""
        return sorted(self._versions.get((domain, op_type), ()))

    def newest(self, domain: str) -> int:
        """The newest version that an operator of a domain is registered for; 0 where there is none."""
        return max((key.since_version for key in self._kernels if key.domain == domain), default=0)

    def find(self, key: OpKey, section: str) -> Kernel | None:
        """The kernel of a key, None where there is none; of its section only what names the operator is imported."""
        kernel = self.get(key)
        for load in (partial(self.load_operator, key.op_type), self.load_section) if kernel is None else ():
            if kernel is None:
                load(section)
                kernel = self.get(key)
        return kernel

    def require(self, key: OpKey, section: str) -> Kernel:
        """The kernel of a key, found as `find` does. Raises KeyError where there is none."""
        if (kernel := self.find(key, section)) is None:
            raise KeyError(str(key))
        return kernel

    def load_operator(self, op_type: str, section: str) -> None:
        """Import the kernel files of ``onnxeval.ops.SECTION`` that register an operator, as `KEPT` tells."""
        for module in _kept().get((section, op_type), ()):
            importlib.import_module(f"onnxeval.ops.{section}.{module}")

    def load_section(self, section: str) -> None:
        """Import every kernel file of ``onnxeval.ops.SECTION``; nothing happens where there is none."""
        if section in self._loaded:
            return
        self._loaded.add(section)
        for module in _modules(section):
            importlib.import_module(f"onnxeval.ops.{section}.{module}")

    @classmethod
    def standard(cls) -> Registry:
        """The table of onnxeval's own and all registered custom kernels, every section loaded."""
        for section in _sections():
            STANDARD.load_section(section)
        return STANDARD


#: The one table that `op` fills; sections appear in it as they are needed.
STANDARD = Registry()


def op(op_type: str, *, versions: tuple[int, ...], domain: str = "") -> Callable[[K], K]:
    """Register a kernel for each since_version whose text it was read against.

    The function takes tensors positionally and attributes as keyword-only parameters under ONNX's names.

        @op("Resample", domain="com.acme", versions=(1,))
        def resample(x: Tensor, *, factor: int) -> Tensor: ...
    """

    def register(kernel: K) -> K:
        for version in versions:
            STANDARD.add(OpKey("" if domain == "ai.onnx" else domain, op_type, version), kernel)
        return kernel

    return register


def prepared_by(prepare: Callable[..., Any]) -> Callable[[K], K]:
    """Let a kernel that names the parameter ``prepared`` be given what ``prepare`` makes of its constants, once.

    The parameters of ``prepare`` are inputs and attributes of the kernel, under the names that they have there. Where
    any of these inputs is no constant, and where passes are off, ``prepared`` keeps its default, None.
    """

    def mark(kernel: K) -> K:
        kernel.prepare = prepare  # type: ignore[attr-defined]  # functools.wraps hands it on to what wraps the kernel
        return kernel

    return mark


def preparation_of(kernel: Kernel) -> Callable[..., Any] | None:
    """What `prepared_by` was given for a kernel."""
    return getattr(kernel, "prepare", None)


_OPS = Path(__file__).with_name("ops")


@cache
def _sections() -> tuple[str, ...]:
    return tuple(m.name for m in pkgutil.iter_modules([str(_OPS)]) if m.ispkg)


@cache
def _modules(section: str) -> tuple[str, ...]:
    """The kernel files of a section; none where there is no such section."""
    modules = pkgutil.iter_modules([str(_OPS / section)]) if section in _sections() else ()
    return tuple(m.name for m in modules if not m.name.startswith("_"))


#: A line for each kernel file: its section and name, and the operators that it registers. A plan imports only the files
#: of its operators.
KEPT = Path(__file__).with_name("kernels.txt")


@cache
def _kept() -> Mapping[tuple[str, str], Sequence[str]]:
    """{(section, operator): kernel files}."""
    files: dict[tuple[str, str], list[str]] = {}
    for line in KEPT.read_text("ascii").splitlines():
        place, *operators = line.split(" ")
        section, _, module = place.partition(".")
        for op_type in operators:
            files.setdefault((section, op_type), []).append(module)
    return files


def _location(kernel: Kernel) -> str:
    path, line = source_of(kernel)
    return f"{getattr(kernel, '__qualname__', repr(kernel))} ({Path(path).name}:{line})"


def source_of(kernel: Kernel) -> tuple[str, int]:
    """The file and the line where a kernel is written; ("unknown", 0) for functions without source."""
    function = inspect.unwrap(kernel)
    code = getattr(function, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("unknown", 0)
