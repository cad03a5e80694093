"""Other engines, each in a process of its own (`serve`): a model and feeds to its values, one by one."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from onnxeval.testing.engines import from_ort_value, is_foreign, is_foreign_name, ort_value, plain
from onnxeval.values import Value
from onnxeval.versus.messages import Message


class Engine(ABC):
    """One engine that ran one model; what it gave is kept until it ends."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        #: Why there is no value, by name.
        self._reasons: dict[str, str] = {}

    def start(self, model: str | bytes, names: Sequence[str], feeds: bytes, threads: int) -> str:
        """Run the model at this path, or of these bytes, on the pickled feeds; the engine's version."""
        module, version = self._import()
        self._run(module, Message(model, names), names, pickle.loads(feeds), threads)
        return version

    def value(self, name: str) -> tuple[Value, str]:
        """A value of those asked for, and "", or why there is none."""
        if reason := self._reasons.get(name):
            return None, reason
        try:
            return self._given(self._values[name]), ""
        except TypeError as error:
            return None, str(error)

    def _given(self, value: Any) -> Value:
        return plain(value)

    @abstractmethod
    def _import(self) -> tuple[Any, str]:
        """The engine's module, and its version."""

    @abstractmethod
    def _run(self, module: Any, message: Message, names: Sequence[str], feeds: dict[str, Value], threads: int) -> None:
        """Compute the values of these names."""


class Reference(Engine):
    """The ReferenceEvaluator that comes with onnx."""

    def _import(self) -> tuple[Any, str]:
        return import_module("onnx.reference"), str(import_module("onnx").__version__)

    def _run(self, module: Any, message: Message, names: Sequence[str], feeds: dict[str, Value], _threads: int) -> None:
        message.take_external()
        session = module.ReferenceEvaluator(message.proto)
        self._values.update(zip(names, session.run(list(names), feeds), strict=True))


class OnnxRuntime(Engine):
    """onnxruntime on the CPU, with its own defaults."""

    def _import(self) -> tuple[Any, str]:
        module = import_module("onnxruntime")
        return module, str(module.__version__)

    def _run(self, module: Any, message: Message, names: Sequence[str], feeds: dict[str, Value], threads: int) -> None:
        foreign_feeds = {name: value for name, value in feeds.items() if is_foreign(value)}
        message.fix(foreign_feeds)
        feeds = {name: value for name, value in feeds.items() if name not in foreign_feeds}
        options = module.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        if (folder := message.gather_external()) is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
        session = module.InferenceSession(
            message.proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        message.proto.Clear()
        types = {output.name: output.type for output in session.get_outputs()}
        self._compute(module, session, {name: types[name] for name in names}, feeds)

    def _compute(self, module: Any, session: Any, types: Mapping[str, str], feeds: dict[str, Value]) -> None:
        """Tensors as OrtValues where there are some of types that NumPy lacks, all else as NumPy's."""
        foreign = {name for name, type_name in types.items() if is_foreign_name(type_name)}
        nested = {name for name, type_name in types.items() if not type_name.startswith("tensor(")}
        self._reasons = {name: f"onnxruntime's Python interface gives no {types[name]}" for name in foreign & nested}
        held = [name for name in types if name not in nested] if foreign - nested else []
        usual = [name for name in types if name not in {*held, *self._reasons}]
        if held:
            try:
                given = {name: ort_value(module, value) for name, value in feeds.items()}
            except TypeError as error:
                self._reasons |= dict.fromkeys(foreign, str(error))
                held, usual = [], [name for name in types if name not in self._reasons]
            else:
                self._values.update(zip(held, session.run_with_ort_values(held, given), strict=True))
        if usual:
            self._values.update(zip(usual, session.run(usual, feeds), strict=True))

    def _given(self, value: Any) -> Value:
        return from_ort_value(value) if hasattr(value, "is_tensor") else plain(value)


ENGINES: dict[str, type[Engine]] = {"onnxruntime": OnnxRuntime, "reference": Reference}
