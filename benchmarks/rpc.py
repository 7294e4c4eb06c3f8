"""Speed of the wire on loopback: leases, arrays, uploads, deployments and calls.

Medians. Beside each figure stands Apache TVM's (keys `tvm_...`, after `make peers`), and beside the
call a raw REQ/REP round trip of pyzmq, all taken in turns in one run. The ratio of the two is the
median over the rounds. Files lie in memory where the machine has /dev/shm: no disk is timed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import zmq

import farbench as fb
from _common import (
    MIB,
    ROOT,
    Peer,
    PeerMissing,
    emit,
    in_turns,
    leave_out,
    median,
    note,
    parse_arguments,
    start_rival,
    timed,
)
from farbench.boards import DeviceOptions, start_device
from farbench_tracker.service import TrackerServer

BIG = 64 * MIB
ROUNDS = 7
SETTLE_S = 0.4
# Measure -> samples a round: enough for a median where one is short, few where one is a second.
SAMPLES = {"lease": 6, "call": 300, "raw": 300, "put": 3, "get": 3, "upload": 2, "deploy": 5}
TVM_SAMPLES = {"lease": 3, "call": 300, "put": 1, "get": 1, "upload": 1, "deploy": 5}


class Trips:
    """One open session on a device, a tracker that leases another, and what the measures need."""

    def __init__(self, tracker: fb.Tracker, folder: Path) -> None:
        self._tracker = tracker
        self._folder = folder
        self._library = self._build()
        self._serial = 0
        self._session = tracker.request("name=busy", session_timeout=3600)
        device = self._session.cpu()
        source = np.random.default_rng(0)
        self._host = source.random(BIG // 4, np.float32)
        self._remote = fb.nd.array(self._host, device)
        small = source.random(1024, np.float32)
        self._a, self._b = fb.nd.array(small, device), fb.nd.array(np.zeros_like(small), device)
        self._function = self._deploy()
        self._function(self._a, self._b)
        np.testing.assert_array_equal(self._b.numpy(), small + np.float32(1))

    def close(self) -> None:
        """Give the device back."""
        self._session.close()

    def lease(self) -> None:
        """Request the other device, get one request answered by its worker, close."""
        with self._tracker.request("name=free", session_timeout=60) as session:
            fb.nd.array(np.zeros(1, np.float32), session.cpu())

    def call(self) -> None:
        """Call a small function on arrays that are there."""
        self._function(self._a, self._b)

    def put(self) -> None:
        """Copy an array of 64 MiB there."""
        self._remote.copyfrom(self._host)

    def get(self) -> None:
        """Copy an array of 64 MiB back."""
        self._remote.numpy()

    def upload(self, count: int) -> list[float]:
        """Upload files of 64 MiB that the device never saw (hashing included)."""
        samples = []
        for _ in range(count):
            path = self._folder / "blob.bin"
            path.write_bytes(os.urandom(BIG))
            samples += timed(partial(self._session.upload, path), 1)
        return samples

    def deploy(self, count: int) -> list[float]:
        """Upload and load a small library of bytes that the device never saw."""
        samples = []
        for _ in range(count):
            path = self._fresh()
            samples += timed(partial(self._load, path), 1)
        return samples

    def _deploy(self) -> Callable[..., object]:
        return self._load(self._fresh())

    def _load(self, path: Path) -> Callable[..., object]:
        self._session.upload(path)
        return self._session.load_module(path.name)

    def _fresh(self) -> Path:
        """Write the library with a tail of random bytes: what follows an ELF's end is not read."""
        self._serial += 1
        path = self._folder / f"small{self._serial}.so"
        path.write_bytes(self._library + os.urandom(32))
        return path

    def _build(self) -> bytes:
        a = fb.te.placeholder((1024,), name="A")
        b = fb.te.compute(a.shape, lambda i: a[i] + 1.0, name="B")
        path = self._folder / "small.so"
        fb.build(fb.te.create_schedule(b.op), [a, b], name="plus_one").export_library(str(path))
        return path.read_bytes()


def memory_folder() -> str | None:
    """Give a folder in memory, so that no disk is timed; None where there is none."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


def cores() -> tuple[str, str]:
    """Split this machine's cores between the two devices; "" leaves the choice to the device."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return (str(usable[0]), str(usable[1])) if len(usable) > 1 else ("", "")


def raw_round_trip(stack: contextlib.ExitStack) -> Callable[[], object]:
    """Connect to an echo in a process of its own; the returned function makes one round trip."""
    script = str(ROOT / "benchmarks/peers/zmq_echo.py")
    peer = stack.enter_context(Peer("pyzmq", [sys.executable, script], os.environ))
    context = stack.enter_context(zmq.Context())
    socket = stack.enter_context(context.socket(zmq.REQ))
    socket.linger = 0
    socket.connect(f"tcp://127.0.0.1:{peer.facts['port']}")
    payload = bytes(32)

    def once() -> bytes:
        socket.send(payload)
        return bytes(socket.recv())

    return once


def start_farbench(stack: contextlib.ExitStack) -> Trips:
    """Start a tracker and two devices of this machine on disjoint cores."""
    made = tempfile.TemporaryDirectory(prefix="farbench-rpc-", dir=memory_folder())
    folder = Path(stack.enter_context(made))
    server = TrackerServer("127.0.0.1", 0)
    server.start()
    stack.callback(server.close)
    for name, core in zip(("busy", "free"), cores(), strict=True):
        options = DeviceOptions(str(server.address), folder / name, name, cores=core)
        stack.enter_context(start_device(None, options))
    tracker = stack.enter_context(fb.connect_tracker("127.0.0.1", server.address.port))
    return stack.enter_context(contextlib.closing(Trips(tracker, folder)))


def measure(rounds: int) -> dict[str, list[float]]:
    """Take every measure in turns; return seconds by name, TVM's under `tvm_...`."""
    with contextlib.ExitStack() as stack:
        trips = start_farbench(stack)
        once = raw_round_trip(stack)
        ours: dict[str, Callable[[], list[float]]] = {
            "lease": lambda: timed(trips.lease, SAMPLES["lease"]),
            "call": lambda: timed(trips.call, SAMPLES["call"]),
            "raw": lambda: timed(once, SAMPLES["raw"]),
            "put": lambda: timed(trips.put, SAMPLES["put"]),
            "get": lambda: timed(trips.get, SAMPLES["get"]),
            "upload": lambda: trips.upload(SAMPLES["upload"]),
            "deploy": lambda: trips.deploy(SAMPLES["deploy"]),
        }
        note("warming up")
        for function in ours.values():
            function()
        every = dict(ours)
        try:
            rival = stack.enter_context(start_rival("tvm", "tvm_rpc.py"))
        except PeerMissing as missing:
            leave_out(missing)
        else:
            for name, count in TVM_SAMPLES.items():
                every[f"tvm_{name}"] = _ask(rival, name, count)
        return in_turns(every, rounds, SETTLE_S)


def _ask(rival: Peer, name: str, count: int) -> Callable[[], list[float]]:
    return lambda: rival.seconds(measure=name, samples=count)


def figures(seconds: dict[str, list[float]]) -> dict[str, object]:
    """Turn seconds into the figures that are shown: ms, us and MiB/s."""
    found: dict[str, object] = {}
    for name, samples in seconds.items():
        middle = median(samples)
        kind = name.removeprefix("tvm_")
        if kind in ("lease", "deploy"):
            found[f"{name}_ms"] = middle * 1e3
        elif kind in ("call", "raw"):
            found[f"{name}_us"] = middle * 1e6
        else:
            found[f"{name}_MiB_s"] = BIG / MIB / middle
    # Round by round, since the two were taken one after the other while the machine's mood held.
    pairs = zip(rounds(seconds, "call"), rounds(seconds, "raw"), strict=True)
    found["call_us_vs_raw"] = median([call / raw for call, raw in pairs])
    return found


def rounds(seconds: dict[str, list[float]], name: str) -> list[float]:
    """Give the median of each round of a measure."""
    samples, count = seconds[name], SAMPLES[name]
    return [median(samples[at : at + count]) for at in range(0, len(samples), count)]


def main() -> None:
    """Measure and print."""
    arguments = parse_arguments(__doc__ or "")
    emit(figures(measure(ROUNDS)), as_json=arguments.json)


if __name__ == "__main__":
    main()
