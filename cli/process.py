"""The command line as a process of its own: what makes one start and end quickly.

Nothing of it is done where the commands run inside another program.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NoReturn

#: Objects made between two looks for cycles: what is made at the start stays, and looking for it takes a tenth of a
#: short run.
_FEW_COLLECTIONS = 50_000
_INTERRUPTED = 130
#: What `kill`, `timeout` and a terminal that closes send.
_ENDS = ("SIGTERM", "SIGHUP")


def process() -> NoReturn:
    """Run the command line and end the process."""
    gc.set_threshold(_FEW_COLLECTIONS)
    import_onnx_on_demand()
    code: Any = None
    try:
        _heed_ends()
        from .main import main

        main()
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:  # while modules are imported: later on `main` answers it
        print("error: interrupted", file=sys.stderr)
        code = _INTERRUPTED
    _leave(code)


def _heed_ends() -> None:
    """Let who ends the process interrupt it as Ctrl-C does: nothing half-written is left, and no other process."""
    for name in _ENDS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # `nohup` ignores one
            signal.signal(number, signal.default_int_handler)


def _leave(code: Any) -> NoReturn:
    """End the process as sys.exit does, but leave its memory to the operating system instead of freeing every object.

    Threads that other code started and that are to end by themselves are waited for, in the slow way.
    """
    if not (code is None or isinstance(code, int)) or threading.active_count() > 1:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            sys.exit(code)
    os._exit(code or 0)


def import_onnx_on_demand() -> None:
    """Let ``import onnx`` only do what is asked of it: a run needs the messages and the schemas.

    The whole package imports tarfile, subprocess, email and others, which takes longer than to run a small model.
    """
    spec = find_spec("onnx") if "onnx" not in sys.modules else None
    if spec is None or spec.loader is None or spec.submodule_search_locations is None:
        return
    package = _OnDemand("onnx")
    package.__spec__ = spec
    package.__loader__ = spec.loader
    package.__file__ = spec.origin
    package.__package__ = "onnx"
    package.__path__ = spec.submodule_search_locations
    sys.modules["onnx"] = package


_MESSAGES = ("onnx.onnx_pb", "onnx.onnx_data_pb")


class _OnDemand(ModuleType):
    """A package whose ``__init__`` runs when a name is wanted that is no message."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            for module in _MESSAGES:
                if hasattr(messages := import_module(module), name):
                    return getattr(messages, name)
        self.__class__ = ModuleType  # type: ignore[assignment]  # from here on it is a package like others
        assert self.__spec__ is not None and self.__spec__.loader is not None  # noqa: PT018  # set above
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)
