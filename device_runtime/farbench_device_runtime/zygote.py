"""The process that forks workers: single-threaded, and it never opens a zmq context.

It keeps one clean child ready, hands its socket to the server, watches the memory of the workers
that are out, ends them with all that they started, and tells how each ended. The server's end is
`farbench_device_runtime.supervisor`. Messages:

    server -> zygote: prepare | take pid memory | end pid grace_s
    zygote -> server: facts {..} | warm pid name + fd | ending pid | gone pid .. (as exits.Exit)
"""

from __future__ import annotations

import gc
import os
import secrets
import select
import signal
import sys
import time
import traceback
from dataclasses import dataclass

from farbench_device_runtime import isolation, libc, procfs, reaper, worker
from farbench_device_runtime.pipe import Pipe, PipeClosed, PipeDamaged

WATCH_S = 0.05
SWEEP_S = 0.002
PARENT_CHECK_S = 1.0
UNKILLABLE_S = 60.0


@dataclass
class _Child:
    """A worker: warm until taken; `deadline` is when TERM becomes KILL, or the sweep gives up."""

    pid: int
    name: str
    taken: bool = False
    ending: bool = False
    dead: bool = False
    cause: str = ""
    deadline: float = 0.0
    memory_limit: int = 0
    address_limit: int = 0
    baseline: int = 0
    address_baseline: int = 0
    peak_resident: int = 0
    peak_address: int = 0
    status: int = 0
    orphans: int = 0


class Zygote:
    """The loop over the control socket, ended children and the memory watch."""

    def __init__(self, control: Pipe) -> None:
        self.control = control
        self.parent = os.getppid()
        self.subreaper = libc.adopt_orphans()
        self.held: tuple[str, ...] = ()
        self.children: dict[int, _Child] = {}
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)

    def run(self) -> None:
        """Serve until the server is gone, then end every worker."""
        signal.signal(signal.SIGCHLD, _nothing)
        signal.set_wakeup_fd(self._wake_out, warn_on_full_buffer=False)
        gc.collect()
        gc.freeze()
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        poller.register(self._wake_in, select.POLLIN)
        try:
            self.control.send(["facts", self._facts()])
            while os.getppid() == self.parent:
                ready = dict(poller.poll(int(self._timeout_s() * 1000) + 1))
                if self._wake_in in ready:
                    os.read(self._wake_in, 4096)
                if self.control.fileno() in ready:
                    self._receive()
                self._tick(time.monotonic())
        except PipeClosed:
            pass  # The server is gone: that is how this loop ends.
        finally:
            self._end_all()

    def _facts(self) -> dict[str, object]:
        self.held = isolation.probe()
        return {"subreaper": self.subreaper, "held": list(self.held)}

    def _timeout_s(self) -> float:
        if any(child.dead for child in self.children.values()):
            return SWEEP_S
        if any(child.taken or child.ending for child in self.children.values()):
            return WATCH_S
        return PARENT_CHECK_S

    def _receive(self) -> None:
        message = self.control.receive()
        if message is None:
            return
        kind, *rest = message
        if kind == "prepare":
            self._prepare()
        elif kind == "take":
            self._take(int(rest[0]), int(rest[1]))
        elif kind == "end":
            self._end(int(rest[0]), float(rest[1]))
            self.control.send(["ending", int(rest[0])])
        else:
            raise PipeDamaged(f"unknown request {kind!r}")

    def _prepare(self) -> None:
        if any(not (child.taken or child.ending or child.dead) for child in self.children.values()):
            return
        ours, theirs = Pipe.pair()
        name = "fb-" + secrets.token_hex(5)
        here = os.getpid()
        try:
            pid = os.fork()
        except OSError as cause:
            # Asked again by the server for as long as somebody waits.
            sys.stderr.write(f"farbench zygote: cannot make a worker: {cause.strerror}\n")
            ours.close()
            theirs.close()
            return
        if pid == 0:
            self._become_worker(theirs, name, here)
        theirs.close()
        self.children[pid] = _Child(pid, name)
        self.control.send(["warm", pid, name], [ours.fileno()])
        ours.close()

    def _become_worker(self, pipe: Pipe, name: str, parent: int) -> None:
        """Turn this fork into a worker; never returns."""
        status = worker.FAILED
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            isolation.close_others(frozenset({pipe.fileno()}))
            status = worker.run(pipe, name, parent)
        except Exception:
            traceback.print_exc()  # Its last line is what the client is shown.
        finally:
            os._exit(status)

    def _take(self, pid: int, memory_limit: int) -> None:
        child = self.children.get(pid)
        if child is None:
            return
        child.taken = True
        child.baseline = procfs.resident_bytes(pid)
        child.memory_limit = memory_limit
        if memory_limit:
            child.address_baseline = procfs.address_bytes(pid)
            # An emulator maps gigabytes ahead: growth alone tells, and only where it is limited.
            if "address_space" in self.held:
                child.address_limit = memory_limit + isolation.ADDRESS_SLACK

    def _end(self, pid: int, grace_s: float, cause: str = "ended") -> None:
        child = self.children.get(pid)
        if child is None or child.dead:
            return
        child.ending = True
        child.cause = child.cause or cause
        child.deadline = time.monotonic() + grace_s
        if grace_s > 0:
            reaper.signal_group(pid, signal.SIGTERM)
        else:
            self._kill(child)

    def _kill(self, child: _Child) -> None:
        # The worker may have left its own group: the group and the process, both.
        reaper.signal_group(child.pid, signal.SIGKILL)
        reaper.kill_all([child.pid])

    def _tick(self, now: float) -> None:
        reaper.reap(self._ended)
        for child in list(self.children.values()):
            if child.dead:
                self._sweep(child, now)
            elif child.ending and now >= child.deadline:
                self._kill(child)
            elif child.taken:
                self._watch(child)

    def _ended(self, pid: int, status: int, peak: int) -> None:
        child = self.children.get(pid)
        if child is None:
            return  # An orphan that this process adopted.
        child.dead = True
        child.status = status
        child.peak_resident = max(child.peak_resident, peak - child.baseline)
        child.deadline = time.monotonic() + UNKILLABLE_S
        reaper.signal_group(pid, signal.SIGKILL)

    def _watch(self, child: _Child) -> None:
        """End a worker whose resident memory grew beyond its limit."""
        if not child.memory_limit:
            return
        grown = procfs.resident_bytes(child.pid) - child.baseline
        child.peak_resident = max(child.peak_resident, grown)
        mapped = procfs.address_bytes(child.pid) - child.address_baseline
        child.peak_address = max(child.peak_address, mapped)
        if grown > child.memory_limit and not child.ending:
            self._end(child.pid, 0.0, "oom")

    def _sweep(self, child: _Child, now: float) -> None:
        """Kill what a dead worker left; tell the server once there is nothing left."""
        known = [one.pid for one in self.children.values() if not one.dead]
        left = reaper.leftovers(child.pid, child.name, known, self.subreaper)
        if left and now < child.deadline:
            child.orphans = max(child.orphans, len(left))
            reaper.kill_all(left)
            return
        del self.children[child.pid]
        fields = [child.pid, child.status, child.peak_resident, child.peak_address]
        limits = [child.memory_limit, child.address_limit]
        self.control.send(["gone", *fields, *limits, child.cause, child.orphans, not left])

    def _end_all(self) -> None:
        """End every worker and what it started; the server no longer listens."""
        deadline = time.monotonic() + 5.0
        names = {child.pid: child.name for child in self.children.values()}
        for child in self.children.values():
            self._kill(child)
        while time.monotonic() < deadline:
            reaper.reap(_ignore)
            left = [p for pid, name in names.items() for p in self._remains(pid, name)]
            if not left:
                break
            reaper.kill_all(left)
            time.sleep(SWEEP_S)
        self.control.close()

    def _remains(self, pid: int, name: str) -> list[int]:
        return reaper.leftovers(pid, name, (), self.subreaper)


def _nothing(number: int, frame: object) -> None:
    """Do nothing: the wake-up descriptor does the work."""


def _ignore(pid: int, status: int, peak: int) -> None:
    """Take no note of a child's end."""


def main(control: Pipe) -> None:
    """Be the zygote: own session, no terminal signals, until the server is gone."""
    isolation.close_others(frozenset({control.fileno()}))
    if os.getpgrp() != os.getpid():
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    libc.name_process("fb-zygote")
    Zygote(control).run()


def _main_from_command_line() -> int:
    """Take the control socket's descriptor from the command line (started by exec)."""
    import socket

    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.stderr.write("farbench zygote: started by the device server, not by hand\n")
        return 2
    main(Pipe(socket.socket(fileno=int(sys.argv[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(_main_from_command_line())
