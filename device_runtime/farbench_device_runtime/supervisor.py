"""The server's hold on its zygote: start it, take workers from it, hear how they ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from farbench_device_runtime.exits import Exit
from farbench_device_runtime.pipe import Pipe, PipeClosed
from farbench_rpc.errors import RpcError

START_S = 60.0


class ZygoteLost(RpcError):
    """The process that makes workers is gone; detail: status."""

    code = "infra"


@dataclass
class Worker:
    """A worker handed out: its process and the pipe to it (owned by whoever took it)."""

    pid: int
    name: str
    pipe: Pipe


@dataclass
class Supervisor:
    """One zygote and the worker that it keeps warm; owns the process and the control socket."""

    control: Pipe
    pid: int
    process: subprocess.Popen[bytes] | None = None
    subreaper: bool = False
    held: tuple[str, ...] = ()
    warm: Worker | None = None
    exits: deque[Exit] = field(default_factory=deque)

    @classmethod
    def fork(cls) -> Supervisor:
        """Fork a zygote: only before this process has threads or a zmq context."""
        from farbench_device_runtime import zygote

        ours, theirs = Pipe.pair()
        pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                zygote.main(theirs)
            finally:
                os._exit(0)
        theirs.close()
        return cls(ours, pid)._started()

    @classmethod
    def execute(cls) -> Supervisor:
        """Start a zygote as a new program, from a process that has threads already."""
        ours, theirs = Pipe.pair()
        root = str(Path(__file__).resolve().parents[1])
        import farbench_rpc

        rpc_root = str(Path(str(farbench_rpc.__file__)).resolve().parents[1])
        environment = {"PYTHONPATH": os.pathsep.join((root, rpc_root)), "LC_ALL": "C.UTF-8"}
        command = [sys.executable, "-m", "farbench_device_runtime.zygote", str(theirs.fileno())]
        process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL
        )
        theirs.close()
        return cls(ours, process.pid, process)._started()

    def _started(self) -> Supervisor:
        """Wait for the facts, then have a worker made ready."""
        self.control.sock.settimeout(START_S)
        try:
            message = self.control.receive()
        except (PipeClosed, TimeoutError) as cause:
            self.close()
            raise ZygoteLost("the process that makes workers did not start") from cause
        finally:
            if self.control.fileno() >= 0:
                self.control.sock.settimeout(None)
        facts = message[1] if message else {}
        self.subreaper = bool(facts.get("subreaper"))
        self.held = tuple(map(str, facts.get("held", ())))
        self.prepare()
        return self

    def fileno(self) -> int:
        """Give the descriptor to poll."""
        return self.control.fileno()

    def prepare(self) -> None:
        """Have a worker made ready; nothing happens when there is one."""
        if self.warm is None:
            self._send(["prepare"])

    def receive(self) -> None:
        """Take in what the zygote has said: a warm worker, or the end of one."""
        while True:
            try:
                got = self.control.receive_fds(block=False)
            except PipeClosed as cause:
                raise ZygoteLost("the process that makes workers is gone") from cause
            if got is None:
                return
            (kind, *rest), fds = got
            if kind == "warm" and len(fds) == 1:
                self.warm = Worker(int(rest[0]), str(rest[1]), _pipe_of(fds[0]))
            elif kind == "gone":
                self._gone(Exit(*rest))

    def _gone(self, ended: Exit) -> None:
        if self.warm is not None and self.warm.pid == ended.pid:
            # It died before it was taken: make another in its place.
            self.warm.pipe.close()
            self.warm = None
            self.prepare()
            return
        self.exits.append(ended)

    def take(self, memory_limit: int) -> Worker | None:
        """Take the warm worker, watched against a limit of memory (bytes); None: not ready yet."""
        worker, self.warm = self.warm, None
        if worker is not None:
            self._send(["take", worker.pid, memory_limit])
        return worker

    def end(self, pid: int, grace_s: float) -> None:
        """End a worker and all that it started; its Exit comes once nothing is left."""
        self._send(["end", pid, grace_s])

    def _send(self, message: list[object]) -> None:
        try:
            self.control.send(message)
        except PipeClosed as cause:
            raise ZygoteLost("the process that makes workers is gone") from cause

    def close(self, timeout_s: float = 8.0) -> None:
        """End the zygote with all its workers, and wait for it."""
        if self.warm is not None:
            self.warm.pipe.close()
            self.warm = None
        self.control.close()
        deadline = time.monotonic() + timeout_s
        while not self._collected():
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                deadline += timeout_s
            time.sleep(0.002)

    def _collected(self) -> bool:
        if self.process is not None:
            return self.process.poll() is not None
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True


def _pipe_of(fd: int) -> Pipe:
    import socket

    return Pipe(socket.socket(fileno=fd))
