"""What /proc says of processes: the one reader, so that its formats stand in one place.

A process may end at any moment, so every reader gives None (or an empty list) for one that is gone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Stat:
    """A process as /proc/PID/stat tells: ids, its name, and when it started (clock ticks)."""

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    started: int


def read_text(path: str) -> str:
    """Read a small file; empty where it is absent or not ours to read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def stat(pid: int) -> Stat | None:
    """Read one process; None when it is gone."""
    text = read_text(f"/proc/{pid}/stat")
    # The name is in brackets and may hold brackets itself: cut at the last one.
    head, closed, tail = text.rpartition(")")
    fields = tail.split()
    if not closed or len(fields) < 20:
        return None
    name = head.partition("(")[2]
    return Stat(
        pid, name, fields[0], int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19])
    )


def processes() -> list[Stat]:
    """List every process that can be read."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    found = (stat(int(name)) for name in names if name.isdigit())
    return [one for one in found if one is not None]


def children(pid: int) -> list[int] | None:
    """List the children of a single-threaded process; None where the kernel does not tell."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return None


def resident_bytes(pid: int) -> int:
    """Give the resident memory of a process; 0 when it is gone."""
    fields = read_text(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def address_bytes(pid: int) -> int:
    """Give the size of a process's address space; 0 when it is gone."""
    fields = read_text(f"/proc/{pid}/statm").split()
    return int(fields[0]) * _PAGE if fields else 0


def context_switches(pid: int) -> tuple[int, int]:
    """Give a process's (voluntary, involuntary) context switches so far; its main thread's."""
    counts = {"voluntary_ctxt_switches": 0, "nonvoluntary_ctxt_switches": 0}
    for line in read_text(f"/proc/{pid}/status").splitlines():
        key, _, value = line.partition(":")
        if key in counts and value.strip().isdigit():
            counts[key] = int(value)
    return counts["voluntary_ctxt_switches"], counts["nonvoluntary_ctxt_switches"]
