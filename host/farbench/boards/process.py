"""Own a device server as a child process: native, or on an emulated board."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from farbench.boards.board import Board
from farbench.boards.errors import DeviceStartError

MODULE = "farbench_device_runtime"
# An emulated Python takes 1-2 s to start on an idle machine, and ten times that on a busy one.
START_LIMIT_S = 60.0
STOP_LIMIT_S = 5.0
_WORDS_KEPT = 40


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """How a device server is started; `state` is its own folder, `cores` a list such as "0,2-3"."""

    tracker: str
    state: Path
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    cores: str = ""
    emulated: bool = False
    extra: Sequence[str] = ()

    def arguments(self) -> list[str]:
        """Return the command line after the program's name."""
        words = ["--tracker", self.tracker, "--state", str(self.state), "--json", "--until-eof"]
        if self.name:
            words += ["--name", self.name]
        for key, value in self.labels.items():
            words += ["--label", f"{key}={value}"]
        if self.cores:
            words += ["--cores", self.cores]
        if self.emulated:
            words.append("--emulated")
        return [*words, *self.extra]


class DeviceProcess:
    """A running device server; `with` or close() ends it and waits until it is gone."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._events: queue.Queue[dict[str, object] | None] = queue.Queue()
        self._words: collections.deque[str] = collections.deque(maxlen=_WORDS_KEPT)
        self._reader = threading.Thread(target=self._read, name="device-output", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._process.pid

    @property
    def words(self) -> str:
        """What the server wrote last besides its events, for error messages."""
        return "\n".join(self._words)

    def poll(self) -> int | None:
        """Return the exit status, or None while the server runs."""
        return self._process.poll()

    def wait_for(self, event: str, timeout_s: float) -> dict[str, object]:
        """Return the next event of that name; raise DeviceStartError at the end or the deadline."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                found = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise DeviceStartError(
                    f"the device server said no {event!r} within {timeout_s:.0f} s{self._tail()}"
                ) from None
            if found is None:
                status = self._process.wait()
                raise DeviceStartError(f"the device server ended with {status}{self._tail()}")
            if found.get("event") == event:
                return found

    def kill(self) -> None:
        """End the server at once, as a power cut would, and wait until it is gone."""
        self._process.kill()
        self._finish()

    def close(self) -> None:
        """Ask the server to end, insist after STOP_LIMIT_S, and wait until it is gone."""
        self._process.terminate()
        try:
            self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._finish()

    def __enter__(self) -> DeviceProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _finish(self) -> None:
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        # A worker that outlives its server for a moment may hold the pipe open a little longer.
        self._reader.join(STOP_LIMIT_S)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()

    def _read(self) -> None:
        stream = self._process.stdout
        for line in stream or ():
            event = _as_event(line)
            if event is None:
                self._words.append(line.rstrip())
            else:
                self._events.put(event)
        self._events.put(None)

    def _tail(self) -> str:
        last = [word for word in self._words if word.strip()][-1:]
        return f": {last[0].strip()}" if last else ""


def _as_event(line: str) -> dict[str, object] | None:
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def start_device(
    board: Board | None, options: DeviceOptions, *, timeout_s: float = START_LIMIT_S
) -> DeviceProcess:
    """Start a device server (`board` None: on this machine) and wait until it is registered.

    It runs in a session of its own, so that a Ctrl-C of the terminal reaches its owner alone.
    Raises DeviceStartError with the server's own words; then nothing is left running.
    """
    arguments = options.arguments()
    if board is None:
        argv, environment = [sys.executable, "-m", MODULE, *arguments], dict(os.environ)
    else:
        argv, environment = board.command(MODULE, *arguments)
    with _every_core() if options.cores else contextlib.nullcontext():
        child = subprocess.Popen(
            argv,
            env=environment,
            # Held open for as long as the owner lives: a killed owner takes its device along.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    process = DeviceProcess(child)
    try:
        process.wait_for("registered", timeout_s)
    except BaseException:
        process.kill()
        raise
    return process


@contextlib.contextmanager
def _every_core() -> Iterator[None]:
    """Let what this thread starts use every core, also where the thread itself is pinned.

    A child inherits the mask of the thread that starts it, and the device's cores are its own.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
