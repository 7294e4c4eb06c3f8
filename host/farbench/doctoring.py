"""Try every hop of the trip on a device: lease, connect, upload, load, fill, run, return.

The hops are walked in order with a small program built for the device's own architecture; the
first that fails is named with its error, and those behind it are not tried.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from farbench import fill, nd
from farbench.errors import HostError, ValidationFailed, is_ours
from farbench.extras import load
from farbench.remote import RemoteModule
from farbench.session import Session
from farbench.tracker import Tracker
from farbench.validation import compare
from farbench_rpc.messages import DeviceInfo

HOPS = ("listed", "connect", "upload", "load", "fill", "run", "return", "close")
COUNT = 1000  # not a multiple of a vector, so that tails are run too
SESSION_TIMEOUT_S = 60.0

# The plainest preset of each architecture, which every device of it can run.
_PLAIN_TARGETS = {
    "x86_64": "x86-64",
    "aarch64": "aarch64",
    "armv7": "armv7",
    "riscv64": "riscv64",
}


@dataclass(frozen=True)
class Hop:
    """One hop that was tried: how long it took, and its error (empty: it works)."""

    name: str
    seconds: float
    error: str = ""


class Examination:
    """One device under examination; iterate over `hops()`, and `begins` hears of each before."""

    def __init__(
        self,
        tracker: Tracker,
        device: DeviceInfo,
        wait_s: float,
        begins: Callable[[str], None] = lambda hop: None,
    ) -> None:
        self._tracker = tracker
        self._device = device
        self._wait_s = wait_s
        self._begins = begins
        self._stack = ExitStack()
        self._session: Session | None = None
        self._module: RemoteModule | None = None
        self._arrays: list[nd.NDArray] = []

    def hops(self) -> Iterator[Hop]:
        """Walk the hops until one fails."""
        walk: dict[str, Callable[[], None]] = {
            "listed": self._listed,
            "connect": self._connect,
            "upload": self._upload,
            "load": self._load,
            "fill": self._fill,
            "run": self._run,
            "return": self._return,
            "close": self._close,
        }
        with self._stack:
            for name in HOPS:
                began = time.perf_counter()
                self._begins(name)
                try:
                    walk[name]()
                except Exception as error:
                    if not is_ours(error):
                        raise
                    yield Hop(name, time.perf_counter() - began, str(error))
                    return
                yield Hop(name, time.perf_counter() - began)

    def _listed(self) -> None:
        if self._device.state == "lost":
            reason = self._device.reason or "it stopped sending heartbeats"
            raise HostError(f"lost: {reason}; look whether its server still runs")
        if self._device.state in ("quarantined", "draining"):
            raise HostError(f"{self._device.state}: {self._device.reason}")

    def _connect(self) -> None:
        self._session = self._stack.enter_context(
            self._tracker.request(
                f"id={self._device.id}",
                timeout=self._wait_s,
                session_timeout=SESSION_TIMEOUT_S,
            )
        )

    def _upload(self) -> None:
        arch = str(self._device.facts.get("arch", ""))
        if arch not in _PLAIN_TARGETS:
            raise HostError(f"there is no target for its architecture {arch!r}")
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="farbench-doctor-"))
        path = Path(folder) / "doctor.so"
        _program(_PLAIN_TARGETS[arch], path)
        self._there().upload(path)

    def _load(self) -> None:
        self._module = self._there().load_module("doctor.so")

    def _fill(self) -> None:
        there = self._there().cpu()
        self._arrays = [nd.random(COUNT, "float32", there, seed) for seed in (1, 2, 3)]

    def _run(self) -> None:
        if self._module is None:
            raise HostError("nothing is loaded")
        self._module(*self._arrays)

    def _return(self) -> None:
        low, high = fill.default_range("float32")
        a, b = (fill.reference(s, "uniform", low, high, "float32", (COUNT,)) for s in (1, 2))
        found = compare(self._arrays[2].numpy(), np.add(a, b))
        if not found.valid:
            raise ValidationFailed(f"the sum that came back is {found}")

    def _close(self) -> None:
        self._there().close()

    def _there(self) -> Session:
        if self._session is None:
            raise HostError("there is no session")
        return self._session


def _program(target: str, path: Path) -> None:
    """Build a vector add for a target."""
    te = load("farbench_compiler.te")
    a = te.placeholder((COUNT,), name="A")
    b = te.placeholder((COUNT,), name="B")
    c = te.compute((COUNT,), lambda i: a[i] + b[i], name="C")
    schedule = te.create_schedule(c.op)
    from farbench.compiling import build

    build(schedule, [a, b, c], target=target, name="doctor").export_library(path)
