"""The initializers of a graph as arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from onnx import GraphProto

from onnxeval.dtypes import Tensor
from onnxeval.external import NO_FILES, Files
from onnxeval.tensors import array_from, dense_from


class Constants:
    """The initializers of one graph, sparse ones as dense arrays. Each is read when it is first wanted.

    Without a graph there are none. Reading raises ModelError where a tensor contradicts itself.
    """

    def __init__(self, graph: GraphProto | None = None, files: Files = NO_FILES) -> None:
        self._readers: dict[str, Callable[[], Tensor]] = {}
        self._arrays: dict[str, Tensor] = {}
        if graph is not None:
            self._readers.update((t.name, partial(array_from, t, files)) for t in graph.initializer if t.name)
            sparse = ((s.values.name, partial(dense_from, s, files)) for s in graph.sparse_initializer)
            self._readers.update((name, read) for name, read in sparse if name)

    @property
    def names(self) -> Collection[str]:
        return self._readers.keys()

    def read(self, wanted: Collection[str]) -> dict[str, Tensor]:
        """Those of the constants whose names are ``wanted``."""
        found = {}
        for name, read in self._readers.items():
            if name in wanted:
                if name not in self._arrays:
                    self._arrays[name] = read()
                found[name] = self._arrays[name]
        return found

    def look_at_the_rest(self) -> None:
        """Read what nobody wanted so far, for its faults."""
        for name, read in self._readers.items():
            if name not in self._arrays:
                read()
