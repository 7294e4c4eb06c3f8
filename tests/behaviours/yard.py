"""A fleet of real processes for the behaviours, and ways to watch what becomes of processes.

One tracker process, and a device server for each user land, started when it is first wanted. Boards
are processes of this machine too, so /proc here sees what happens inside of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import farbench as fb
from farbench.boards import (
    Board,
    BoardUnavailable,
    DeviceOptions,
    DeviceProcess,
    ensure_board,
    start_device,
)
from farbench.session import Session
from farbench.tracker import Tracker
from tests.support import hostile

HOSTILE_ARCH = {"native": "x86_64", "aarch64": "aarch64", "armv7": "armv7"}
TARGETS = {"native": "native", "aarch64": "aarch64", "armv7": "armv7"}
MEMORY_LIMIT = 256 << 20
# Values that need quoting somewhere: in a shell, in a requirement, in a key of another system.
ODD_LABELS = {
    "space": "left shelf",
    "colon": "lab:2:rack",
    "equals": "a=b=c",
    "quote": 'the "fast" one',
    "comma": "one,two",
    "choice": "(a|b)",
    "bang": "!not",
    "bound": ">=3 <4",
    "backslash": "C:\\boards",
    "apostrophe": "it's",
    "dollar": "$HOME `id` %s {0}",
    "unicode": "Küche ☕ 実験室",
    "dashes": "--json",
    "markup": "[bold]<b>&amp;",
    "edge": " both sides ",
    "a key: with, \"everything\" (in|it)!": "yes",
}  # fmt: skip


def quoted(text: str) -> str:
    """Write a value as a requirement takes it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@contextlib.contextmanager
def running_tracker(*flags: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `farbench tracker` as a process; gives its address and itself."""
    command = [sys.executable, "-m", "farbench.cli.main", "tracker", "--json", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = json.loads(process.stdout.readline() or "{}")
            assert first.get("event") == "listening", first
            yield str(first["address"]), process
        finally:
            process.terminate()


def board_of(arch: str) -> Board | None:
    """Give the board of a user land, None for this machine's own; skip where it cannot be had."""
    if arch == "native":
        return None
    try:
        return ensure_board(arch, progress=lambda line: print(line, file=sys.stderr))
    except BoardUnavailable as error:
        pytest.skip(str(error))


def start(
    arch: str,
    tracker: str,
    state: Path,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    extra: Sequence[str] = (),
    cores: str = "",
) -> DeviceProcess:
    """Start a device server on a user land; close it after use."""
    board = board_of(arch)
    options = DeviceOptions(
        tracker, state, name or arch, labels or {}, cores, emulated=board is not None, extra=extra
    )
    return start_device(board, options)


class Yard:
    """What the behaviours share: one tracker, devices named as their user lands, libraries."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._devices: dict[str, DeviceProcess] = {}
        self._libraries: dict[str, Path] = {}
        self.address, self.process = stack.enter_context(running_tracker("--port", "0"))
        self.tracker: Tracker = stack.enter_context(fb.connect_tracker(self.address))

    def device(self, arch: str) -> DeviceProcess:
        """Give the device server of a user land."""
        if arch not in self._devices:
            limit = ("--memory-limit", f"{MEMORY_LIMIT >> 20}MiB")
            made = start(arch, self.address, self.state_of(arch), labels=ODD_LABELS, extra=limit)
            self._devices[arch] = self._stack.enter_context(made)
        return self._devices[arch]

    def state_of(self, arch: str) -> Path:
        """Give the state directory of a device."""
        return self.folder / f"state-{arch}"

    def library(self, arch: str) -> Path:
        """Give the library of bad kernels for a user land."""
        if arch not in self._libraries:
            self._libraries[arch] = hostile.build(HOSTILE_ARCH[arch], self.folder)
        return self._libraries[arch]


@dataclass(frozen=True)
class Place:
    """One user land under test, with its device up."""

    arch: str
    yard: Yard

    @property
    def tracker(self) -> Tracker:
        """The connection that tests share."""
        return self.yard.tracker

    @property
    def device(self) -> DeviceProcess:
        """The device server's process."""
        return self.yard.device(self.arch)

    @property
    def library(self) -> Path:
        """The library of bad kernels."""
        return self.yard.library(self.arch)

    @property
    def sessions(self) -> Path:
        """The folder that holds the private directories of its sessions."""
        return self.yard.state_of(self.arch) / "sessions"

    def request(self, **options: float) -> Session:
        """Lease it and send the library of bad kernels, as `hostile.so`."""
        session = self.tracker.request(f"name={self.arch}", **{"timeout": 30.0, **options})  # type: ignore[arg-type]
        session.upload(self.library, "hostile.so")
        return session

    def state(self) -> str:
        """Give the device's state as the tracker tells it."""
        (found,) = self.tracker.devices(f"name={self.arch}")
        return found.state


# ---------------------------------------------------------------- watching


def until(holds: Callable[[], bool], limit_s: float, what: str) -> float:
    """Wait until a thing holds; gives how long it took (s), fails at the limit."""
    began = time.monotonic()
    pause = threading.Event()
    while not holds():
        if time.monotonic() - began > limit_s:
            pytest.fail(f"{what}: not within {limit_s:g} s")
        pause.wait(0.01)
    return time.monotonic() - began


def inside(folder: Path) -> list[int]:
    """List the processes that work in a folder or below it, whatever session they fled into."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and Path(os.readlink(f"/proc/{name}/cwd")).is_relative_to(folder):
                found.append(int(name))
    return found


@contextlib.contextmanager
def watched(pids: Sequence[int]) -> Iterator[Callable[[float], list[int]]]:
    """Hold processes; gives a function that waits so long (s) for their ends, and gives the rest.

    A descriptor of a process stays its own, so that none is taken for another with its number.
    """
    held = {}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            held[pid] = os.pidfd_open(pid)

    def alive_after(limit_s: float) -> list[int]:
        deadline = time.monotonic() + limit_s
        for fd in held.values():
            select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        return [pid for pid, fd in held.items() if not select.select([fd], [], [], 0)[0]]

    try:
        yield alive_after
    finally:
        for fd in held.values():
            os.close(fd)


CLIENT = """
import sys
import farbench as fb
address, name, library, *first, last = sys.argv[1:]
session = fb.connect_tracker(address).request(f"name={name}", timeout=30)
session.upload(library, "hostile.so")
module = session.load_module("hostile.so")
for kernel in first:
    module[kernel]()
print("ready", flush=True)
module[last](timeout_s=600)
"""


@contextlib.contextmanager
def client(
    address: str, name: str, library: Path, *kernels: str
) -> Iterator[subprocess.Popen[str]]:
    """Run a client as a process of its own, up to where it begins to call the last kernel."""
    command = [sys.executable, "-c", CLIENT, address, name, str(library), *kernels]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()
