"""Run attempts that may hang, crash or eat all memory: in forks, many to each, every attempt with its own alarm."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from typing import Any

#: What one attempt may take, in seconds and in bytes above what the process has when it starts.
SECONDS = 10
MEMORY = 3 << 29


def outcomes(attempt: Callable[[int], Any], places: range, seconds: int = SECONDS) -> Iterator[tuple[int, Any]]:
    """(place, what ``attempt(place)`` returns) for each place; where it dies, the text of how.

    What an attempt returns must be picklable. The attempts of one fork see one another's caches, so an answer may
    depend on the places before it, but not on whether one of them died.
    """
    place = places.start
    while place < places.stop:
        reader, writer = os.pipe()
        if (pid := os.fork()) == 0:
            _work(attempt, range(place, places.stop), writer, seconds)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            while (answer := _read(pipe)) is not None:
                yield place, answer
                place += 1
        _, status = os.waitpid(pid, 0)
        if place < places.stop:
            yield place, _death(status)
            place += 1


def _work(attempt: Callable[[int], Any], places: range, writer: int, seconds: int) -> None:
    try:
        allowed = _address_space() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        with os.fdopen(writer, "wb") as pipe:
            for place in places:
                signal.alarm(seconds)
                data = pickle.dumps(attempt(place))
                signal.alarm(0)
                pipe.write(len(data).to_bytes(4, "little") + data)
                pipe.flush()
    except BaseException:
        traceback.print_exc()  # of the test itself
    finally:
        os._exit(0)


def _read(pipe: Any) -> Any:
    length = pipe.read(4)
    return pickle.loads(pipe.read(int.from_bytes(length, "little"))) if len(length) == 4 else None


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _death(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "takes too long" if number == signal.SIGALRM else f"dies of {signal.Signals(number).name}"
    return "dies without a word"
