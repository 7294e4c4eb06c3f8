"""The server's hold on its zygote: start it, take workers from it, hear how they ended.

Code of users that is not confined may kill the zygote. Its workers die with it, and another one is
started where programs can be started; where they cannot (an emulated board), the server ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import farbench_rpc
from farbench_device_runtime import reaper, zygote
from farbench_device_runtime.exits import ORPHANED, Exit
from farbench_device_runtime.pipe import Pipe, PipeClosed, PipeDamaged
from farbench_rpc.errors import RpcError

START_S = 60.0
STUCK_S = 20.0
"""A zygote that does not take up a request in so long was stopped by somebody: it is replaced."""
CLOSE_S = 8.0
_BURY_S = 2.0
_POLL_S = 0.002


class ZygoteLost(RpcError):
    """The process that makes workers is gone, and no other could be started."""

    code = "infra"


@dataclass
class Worker:
    """A worker handed out: its process and the pipe to it (owned by whoever took it)."""

    pid: int
    name: str
    pipe: Pipe


@dataclass
class Supervisor:
    """One zygote and the worker that it keeps warm; owns the process and the control socket.

    `adopts` tells that this process is a child subreaper, so that it finds what a lost zygote left.
    """

    control: Pipe
    pid: int
    process: subprocess.Popen[bytes] | None = None
    subreaper: bool = False
    held: tuple[str, ...] = ()
    warm: Worker | None = None
    exits: deque[Exit] = field(default_factory=deque)
    adopts: bool = False
    _out: dict[int, Worker] = field(default_factory=dict)
    _ready: bool = False
    _due: dict[str, float] = field(default_factory=dict)

    @classmethod
    def fork(cls) -> Supervisor:
        """Fork a zygote: only before this process has threads or a zmq context."""
        ours, theirs = Pipe.pair()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                ours.close()
                zygote.main(theirs)
                status = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(status)
        theirs.close()
        return cls(ours, pid)._started()

    @classmethod
    def execute(cls) -> Supervisor:
        """Start a zygote as a new program, from a process that has threads already."""
        try:
            control, process = _execute()
        except OSError as cause:
            raise ZygoteLost(f"cannot start {sys.executable}: {cause.strerror}") from cause
        return cls(control, process.pid, process)._started()

    def _started(self) -> Supervisor:
        """Wait for the facts, then have a worker made ready."""
        self.control.sock.settimeout(START_S)
        try:
            message = self.control.receive()
        except (PipeClosed, PipeDamaged) as cause:
            self.close()
            raise ZygoteLost("the process that makes workers did not start") from cause
        self.control.sock.settimeout(None)
        self._know(message[1] if message else {})
        self.prepare()
        return self

    def _know(self, facts: dict[str, object]) -> None:
        held = facts.get("held")
        self.subreaper = bool(facts.get("subreaper"))
        self.held = tuple(map(str, held)) if isinstance(held, list) else ()
        self._ready = True

    def fileno(self) -> int:
        """Give the descriptor to poll; another one after a zygote was replaced."""
        return self.control.fileno()

    def prepare(self) -> None:
        """Have a worker made ready; nothing happens when there is one, or one is on its way."""
        if self.warm is None and "warm" not in self._due:
            self._ask("warm", ["prepare"])

    def receive(self) -> None:
        """Take in what the zygote has said: a warm worker, or the end of one.

        Raises ZygoteLost when it is gone and cannot be replaced.
        """
        while True:
            try:
                got = self.control.receive_fds(block=False)
            except PipeClosed:
                self._replace()
                return
            if got is None:
                return
            (kind, *rest), fds = got
            if kind == "warm" and len(fds) == 1:
                self._due.pop("warm", None)
                self.warm = Worker(int(rest[0]), str(rest[1]), Pipe(socket.socket(fileno=fds[0])))
            elif kind == "ending":
                self._due.pop(str(rest[0]), None)
            elif kind == "gone":
                self._gone(Exit(*rest))
            elif kind == "facts":
                self._know(rest[0])

    def tick(self, now: float) -> None:
        """Watch the clock: a zygote that takes up nothing is killed, which `receive` then hears."""
        if self._due and now >= min(self._due.values()):
            self._due.clear()
            os.kill(self.pid, signal.SIGKILL)

    def _gone(self, ended: Exit) -> None:
        self._due.pop(str(ended.pid), None)
        if self.warm is not None and self.warm.pid == ended.pid:
            # It died before it was taken: make another in its place.
            self.warm.pipe.close()
            self.warm = None
            self.prepare()
            return
        self._out.pop(ended.pid, None)
        self.exits.append(ended)

    def take(self, memory_limit: int) -> Worker | None:
        """Take the warm worker, watched against a limit of memory (bytes); None: not ready yet."""
        worker, self.warm = self.warm, None
        if worker is not None:
            self._out[worker.pid] = worker
            self._send(["take", worker.pid, memory_limit])
        return worker

    def end(self, pid: int, grace_s: float) -> None:
        """End a worker and all that it started; its Exit comes once nothing is left."""
        if pid in self._out:
            self._ask(str(pid), ["end", pid, grace_s])

    def _ask(self, what: str, message: list[object]) -> None:
        self._due.setdefault(what, time.monotonic() + STUCK_S)
        self._send(message)

    def _send(self, message: list[object]) -> None:
        # A zygote that is gone is heard of by `receive`, one that takes nothing is due to `tick`.
        with contextlib.suppress(PipeClosed):
            self.control.send(message, block=False)

    # --- the end of a zygote --------------------------------------------------------------------

    def _replace(self) -> None:
        """Start another zygote in place of the lost one; the ends of its workers are told."""
        self._bury()
        lost = "the process that makes workers is gone"
        if not self._ready:
            raise ZygoteLost(f"{lost}, and another one did not start")
        self._ready = False
        try:
            self.control, self.process = _execute()
        except OSError as cause:
            raise ZygoteLost(f"{lost}, and no other can be started: {cause.strerror}") from cause
        self.pid = self.process.pid
        self.prepare()

    def _bury(self) -> None:
        """Collect the zygote and kill what its workers left."""
        self.control.close()
        self._due.clear()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        deadline = time.monotonic() + _BURY_S
        self._await_end(deadline)
        workers = [*self._out.values(), *([self.warm] if self.warm is not None else [])]
        while (left := self._leftovers(workers)) and time.monotonic() < deadline:
            reaper.kill_all(left)
            time.sleep(_POLL_S)
            if self.adopts:
                reaper.reap(_ignore)
        for pid in self._out:
            self.exits.append(Exit(pid, signal.SIGKILL, cause=ORPHANED, emptied=not left))
        self._out.clear()
        if self.warm is not None:
            self.warm.pipe.close()
            self.warm = None

    def _leftovers(self, workers: list[Worker]) -> set[int]:
        found = (reaper.leftovers(one.pid, one.name, (), self.adopts) for one in workers)
        return {pid for some in found for pid in some}

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """End the zygote with all its workers, and wait for it; killed if it takes too long."""
        if self.warm is not None:
            self.warm.pipe.close()
            self.warm = None
        self.control.close()
        if not self._await_end(time.monotonic() + timeout_s):
            os.kill(self.pid, signal.SIGKILL)
            self._await_end(time.monotonic() + timeout_s)

    def _await_end(self, deadline: float) -> bool:
        """Collect the zygote; False if it lives after the deadline."""
        while not self._collected():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def _collected(self) -> bool:
        if self.process is not None:
            return self.process.poll() is not None
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True


def _execute() -> tuple[Pipe, subprocess.Popen[bytes]]:
    """Start a zygote as a program; gives our end of its control socket."""
    ours, theirs = Pipe.pair()
    roots = (Path(__file__), Path(str(farbench_rpc.__file__)))
    path = os.pathsep.join(str(root.resolve().parents[1]) for root in roots)
    command = [sys.executable, "-m", "farbench_device_runtime.zygote", str(theirs.fileno())]
    try:
        process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env={"PYTHONPATH": path, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, process


def _ignore(pid: int, status: int, peak: int) -> None:
    """Take no note of the end of an orphan."""
