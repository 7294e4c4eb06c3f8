"""Libraries loaded into the caller's own process, and the one context that they share.

What is built here is linked in memory. What was read from a file is loaded as a private copy of
its bytes: the loader knows libraries by their names, so that, given a path again, it would answer
with what the file held when it was loaded first; and a file that is written over changes under the
code that runs from it. Equal ones are loaded once, and unloaded when no module has them any more.

The thread pool that the first one brought serves them all for as long as the process lives; its
code stays, too. A kernel that crashes here takes the caller with it; `fb.local()` does not.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from farbench import linked
from farbench.errors import HostError, UsageError
from farbench_rpc.manifest import Machine, encode

if TYPE_CHECKING:
    from farbench_compiler.artifact import Artifact
    from farbench_device_runtime.library import Context, Library, Runtime


@dataclass(frozen=True)
class Threads:
    """A pool: `count` threads, on `cores` where any are given, `bound` of them bound."""

    count: int
    cores: tuple[int, ...]
    bound: int


_lock = threading.Lock()
_wanted = Threads(0, (), 0)  # a count of 0: one thread for each core
_libraries: WeakValueDictionary[bytes, Library] = WeakValueDictionary()
_shared: Context | None = None


def load(data: bytes) -> Library:
    """Load a library's bytes into this process; LoadRefused says why they do not fit this machine.

    HostError where libraries cannot be loaded at all.
    """
    return _once(hashlib.sha256(data).digest(), lambda machine: _map(data, machine))


def load_built(artifact: Artifact) -> Library:
    """Load what was built into this process, by its objects where that is possible; as `load`."""

    def make(machine: Machine) -> Library:
        return linked.link(artifact, machine) or _map(artifact.link(), machine)

    # A manifest holds the digest of the objects.
    return _once(encode(artifact.manifest), make)


def _once(key: bytes, make: Callable[[Machine], Library]) -> Library:
    from farbench_device_runtime import facts

    if not sys.platform.startswith("linux"):
        raise HostError("libraries run on Linux; use a session: fb.connect_tracker(...).request()")
    with _lock:
        library = _libraries.get(key)
        if library is None:
            library = _libraries[key] = make(facts.machine(facts.looks_emulated()))
        return library


def pool(library: Library) -> Context:
    """Give the pool that all libraries share, made by the first that asks."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = _pool(library.runtime)
        return _shared


def _pool(runtime: Runtime) -> Context:
    return runtime.context(_wanted.count or len(_usable()), _wanted.cores)


def set_threads(count: int | None = None, cores: Sequence[int] | None = None) -> Threads:
    """Choose how many threads parallel loops in this process use, and the cores they stay on.

    Without `count` one for each of the cores, which are all that the process may use without
    `cores`; given cores bind the threads, the caller's too. Holds for all libraries from now on;
    not to be called while a kernel runs. UsageError for what this machine has not.
    """
    global _shared, _wanted
    chosen = tuple(cores or ())
    beyond = sorted(set(chosen) - set(_usable()))
    if beyond:
        raise UsageError(f"core {beyond[0]} is none of this process's: {list(_usable())}")
    if count is not None and count < 1:
        raise UsageError(f"a pool has at least 1 thread, not {count}")
    with _lock:
        _wanted = Threads(count or len(chosen), chosen, 0)
        before, _shared = _shared, None
        if before is not None:
            _shared = _pool(before.runtime)
            before.close()
    return threads()


def threads() -> Threads:
    """Tell how parallel loops in this process run; `bound` counts the threads bound to a core."""
    with _lock:
        if _shared is None:
            return Threads(_wanted.count or len(_usable()), _wanted.cores, 0)
        return Threads(_shared.threads, _wanted.cores, _shared.bound())


def _usable() -> tuple[int, ...]:
    from farbench_device_runtime.settings import usable_cores

    return usable_cores()


def _map(data: bytes, machine: Machine) -> Library:
    from farbench_device_runtime.library import Library

    with tempfile.TemporaryDirectory(prefix="farbench-module-") as folder:
        path = Path(folder) / "module.so"
        path.write_bytes(data)
        # Once mapped, the file is needed no longer.
        return Library.load(path, machine)
