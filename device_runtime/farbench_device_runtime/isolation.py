"""What a worker gives up before it sees code of users, and which of it held when tried.

Level 0 of the threat model: own session and process group, death with the parent, no new
privileges, closed descriptors, empty environment, private directory, resource limits. Each is
applied by trying; the names of those that held are facts of the device.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
import signal
import sys
from dataclasses import dataclass

from farbench_device_runtime import libc, procfs

OPEN_FILES = 64
_PROBE_BYTES = 256 << 20
# Room beside the data: thread stacks and malloc's arenas are reserved, not used.
ADDRESS_SLACK = (2 << 30) if sys.maxsize > 2**32 else (512 << 20)


@dataclass(frozen=True)
class Limits:
    """What a worker may use; bytes and seconds, 0 = no limit; `cores` empty = all."""

    memory_bytes: int = 0
    file_bytes: int = 0
    cpu_s: int = 0
    cores: tuple[int, ...] = ()


def apply_early(name: str, parent: int) -> tuple[str, ...]:
    """Shed what no worker needs, before it is handed out; give the names of what held.

    Ends the process when the parent is gone already, since its death signal would never come.
    """
    held = []
    with contextlib.suppress(OSError):
        os.setsid()
    if os.getpgrp() == os.getpid():
        held.append("process_group")
    if libc.die_with_parent(signal.SIGKILL):
        held.append("parent_death")
    if os.getppid() != parent:
        os._exit(0)
    if libc.no_new_privileges():
        held.append("no_new_privs")
    if libc.name_process(name):
        held.append("process_name")
    if _set_limit(resource.RLIMIT_CORE, 0):
        held.append("no_core_file")
    if _set_limit(resource.RLIMIT_NOFILE, OPEN_FILES):
        held.append("open_files")
    if _first_victim():
        held.append("oom_first")
    os.environ.clear()
    return tuple(held)


def apply_limits(limits: Limits) -> tuple[str, ...]:
    """Set the limits of one lease; give the names of those that were accepted."""
    held = []
    if limits.file_bytes and _set_limit(resource.RLIMIT_FSIZE, limits.file_bytes):
        held.append("file_size")
    if limits.cpu_s and _set_limit(resource.RLIMIT_CPU, limits.cpu_s):
        held.append("cpu_time")
    if limits.memory_bytes and _set_limit(resource.RLIMIT_AS, address_limit(limits.memory_bytes)):
        held.append("address_space")
    if limits.cores and pin(limits.cores):
        held.append("affinity")
    return tuple(held)


def address_limit(memory_bytes: int) -> int:
    """Give the address space that goes with a limit of memory: what is mapped already, and slack.

    0 (no limit) where it would not fit a pointer.
    """
    total = procfs.address_bytes(os.getpid()) + memory_bytes + ADDRESS_SLACK
    return total if total < sys.maxsize * 2 else 0


def pin(cores: tuple[int, ...]) -> bool:
    """Bind this process to cores; False where the system cannot."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    try:
        os.sched_setaffinity(0, cores)
    except OSError:
        return False
    return os.sched_getaffinity(0) == set(cores)


def close_others(keep: frozenset[int]) -> None:
    """Close every descriptor but the standard three and those to keep."""
    previous = 2
    for fd in sorted(keep):
        os.closerange(previous + 1, fd)
        previous = fd
    top = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    os.closerange(previous + 1, min(max(top, previous + 1), 1 << 16))


def probe() -> tuple[str, ...]:
    """Try in a child what cannot be undone here; give the names of what held."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            names = [*apply_early("fb-probe", os.getppid())]
            if _address_space_holds():
                names.append("address_space")
            os.write(writer, ",".join(names).encode())
        finally:
            os._exit(0)
    os.close(writer)
    try:
        text = os.read(reader, 4096).decode()
    finally:
        os.close(reader)
        os.waitpid(pid, 0)
    return tuple(text.split(",")) if text else ()


def _address_space_holds() -> bool:
    """Try whether RLIMIT_AS stops a mapping (an emulated board accepts and ignores it)."""
    limit = procfs.address_bytes(os.getpid()) + _PROBE_BYTES // 4
    if not _set_limit(resource.RLIMIT_AS, limit):
        return False
    try:
        mmap.mmap(-1, _PROBE_BYTES).close()
    except (OSError, ValueError):
        return True
    return False


def _set_limit(kind: int, value: int) -> bool:
    """Lower a limit, soft and hard; never above the hard limit that stands."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    try:
        resource.setrlimit(kind, (value, value))
    except (OSError, ValueError, OverflowError):
        return False
    return resource.getrlimit(kind)[0] == value


def _first_victim() -> bool:
    """Offer this process first when the system runs out of memory."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:
        return False
    return True
