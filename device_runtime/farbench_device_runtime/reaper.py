"""Finding what a dead worker left behind, and killing it until nothing is left.

With a child subreaper every descendant of a dead worker becomes a child of the zygote, whatever
session or group it fled into. Without one, /proc is searched for the worker's session, its group
and its process name, which forks inherit.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Collection

from farbench_device_runtime import procfs


def leftovers(worker: int, name: str, known: Collection[int], subreaper: bool) -> list[int]:
    """List the live processes that a dead worker left, `known` ones excepted."""
    here = os.getpid()
    mine = procfs.children(here) if subreaper else None
    if mine is not None:
        return [pid for pid in mine if pid not in known and _alive(pid)]
    found = []
    for one in procfs.processes():
        if one.pid in known or one.pid == here or one.state in "ZX":
            continue
        of_worker = worker in (one.session, one.group) or one.name == name
        if of_worker or (subreaper and one.parent == here):
            found.append(one.pid)
    return found


def kill_all(pids: Collection[int]) -> None:
    """Stop all of them, so that none can fork on, then kill them."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def signal_group(group: int, number: int) -> None:
    """Send a signal to a process group that may be gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def reap(ended: Callable[[int, int, int], None]) -> None:
    """Collect every child that has ended: `ended(pid, status, peak resident bytes)`."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        ended(pid, status, int(usage.ru_maxrss) * 1024)


def _alive(pid: int) -> bool:
    found = procfs.stat(pid)
    return found is not None and found.state not in "ZX"
