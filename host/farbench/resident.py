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
import os
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
from farbench.settings import default_threads
from farbench_rpc.manifest import Machine, encode

if TYPE_CHECKING:
    from farbench_compiler.artifact import Artifact
    from farbench_device_runtime.library import Context, Library, Runtime
    from farbench_device_runtime.pools import Pools


@dataclass(frozen=True)
class Threads:
    """A pool: `count` threads, on `cores` where any are given, `bound` of them bound."""

    count: int
    cores: tuple[int, ...]
    bound: int


_lock = threading.Lock()
_wanted = Threads(0, (), 0)  # a count of 0: the default
_libraries: WeakValueDictionary[bytes, Library] = WeakValueDictionary()
_pools: Pools | None = None


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


def pool(library: Library, threads: int = 0) -> Context:
    """Give the pool that all libraries share, or one of so many threads; made when asked for."""
    global _pools
    with _lock:
        if _pools is None:
            _pools = _made(library.runtime)
        return _pools.of(threads)


def _after_fork() -> None:
    """Start anew in a forked process: there are no threads here, and nobody to free the lock."""
    global _lock, _pools
    _lock, _pools = threading.Lock(), None


if hasattr(os, "register_at_fork"):  # which Windows has not
    os.register_at_fork(after_in_child=_after_fork)


def _made(runtime: Runtime) -> Pools:
    from farbench_device_runtime.pools import Pools

    return Pools(runtime, _wanted.count or _default(), _wanted.cores)


def _default() -> int:
    return default_threads() or len(_usable())


def set_threads(count: int | None = None, cores: Sequence[int] | None = None) -> Threads:
    """Choose how many threads parallel loops in this process use, and the cores they stay on.

    Without `count` one for each of the cores; without `cores` either, as many as TVM_NUM_THREADS
    or OMP_NUM_THREADS says, or one for each that the process may use. Given cores bind the threads,
    the caller's too. Holds for all libraries from now on. UsageError for what this machine has not.
    """
    global _pools, _wanted
    chosen = tuple(cores or ())
    beyond = sorted(set(chosen) - set(_usable()))
    if beyond:
        raise UsageError(f"core {beyond[0]} is none of this process's: {list(_usable())}")
    if count is not None and count < 1:
        raise UsageError(f"a pool has at least 1 thread, not {count}")
    with _lock:
        _wanted = Threads(count or len(chosen), chosen, 0)
        before, _pools = _pools, None
        if before is not None:
            # The pools from before end with the calls that still run on them.
            _pools = _made(before.runtime)
    return threads()


def threads() -> Threads:
    """Tell how parallel loops in this process run; `bound` counts the threads bound to a core."""
    with _lock:
        if _pools is None:
            return Threads(_wanted.count or _default(), _wanted.cores, 0)
        return Threads(_pools.usual.threads, _wanted.cores, _pools.usual.bound())


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
