"""A build in this process: its objects linked in memory, all on one runtime.

A shared library of its own, which costs a run of the linker, is made where it is wanted as a file.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farbench.errors import LoadRefused
from farbench_rpc.manifest import Machine, ManifestError, check_runnable

if TYPE_CHECKING:
    from farbench_compiler.artifact import Artifact
    from farbench_compiler.target import Target
    from farbench_device_runtime.library import Library, Runtime


@dataclass(frozen=True)
class _Base:
    """What every build links with: the runtime, and helpers that LLVM's code may call."""

    runtime: Runtime
    builtins: bytes


_lock = threading.Lock()
_base: _Base | None = None


def link(artifact: Artifact, machine: Machine) -> Library | None:
    """Link what was built for this machine; None where it takes a linker.

    LoadRefused says what the machine lacks.
    """
    from farbench_compiler.errors import LinkError
    from farbench_compiler.llvm.jit import link_in_memory
    from farbench_device_runtime.library import Library

    manifest = artifact.manifest
    try:
        check_runnable(manifest, machine)
    except ManifestError as cause:
        raise LoadRefused(f"cannot load the library: {cause}") from cause
    base = _made(artifact.target)
    symbols = [entry.symbol for entry in manifest.entries]
    try:
        code = link_in_memory((*artifact.objects, base.builtins), symbols, artifact.target)
    except LinkError:
        return None  # what this machine's memory does not allow; a library may
    return Library(manifest, b"", code, base.runtime)


def _after_fork() -> None:
    """Take a new lock in a forked process: the thread that holds the old one may not exist here."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # which Windows has not
    os.register_at_fork(after_in_child=_after_fork)


def _made(target: Target) -> _Base:
    """Load the runtime, which stays: the first build's target serves all, the machine is one."""
    global _base
    from farbench_compiler.toolchain import link_runtime, runtime_objects
    from farbench_device_runtime.library import Runtime

    with _lock:
        if _base is None:
            helpers = next(p for p in runtime_objects(target) if p.stem == "builtins")
            _base = _Base(Runtime(link_runtime(target)), helpers.read_bytes())
        return _base
