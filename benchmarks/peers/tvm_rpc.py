"""Apache TVM's RPC over its own tracker on loopback: the trips that farbench's is timed on."""

import contextlib
import gc
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tvm
from tvm import rpc, te

from _lines import serve, timed

KEY = "peer"
START_LIMIT_S = 40.0
MIB = 1 << 20
BIG = 64 * MIB


def free_port() -> int:
    """Return a port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(module: str, *args: str) -> Iterator[None]:
    """Run one of TVM's servers for the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, "--host", "127.0.0.1", *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        # The servers leave helpers behind when they end: end the whole group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def connect(port: int) -> rpc.TrackerSession:
    """Connect to the tracker as soon as it answers and knows a server."""
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            tracker = rpc.connect_tracker("127.0.0.1", port)
            if f"server:{KEY}" in tracker.text_summary():
                return tracker
        except (OSError, RuntimeError):
            pass  # not up yet
        if time.monotonic() > deadline:
            raise TimeoutError(f"TVM's tracker and server were not up in {START_LIMIT_S:.0f} s")
        time.sleep(0.2)


def build(folder: Path) -> Path:
    """Compile a small vector addition into a shared library."""
    a = te.placeholder((1024,), name="A")
    b = te.compute((1024,), lambda i: a[i] + 1.0, name="B")
    library = tvm.compile(tvm.IRModule({"main": te.create_prim_func([a, b])}), target="llvm")
    path = folder / "small.so"
    library.export_library(str(path))
    return path


class Trips:
    """One open session and what the measures need."""

    def __init__(self, tracker: rpc.TrackerSession, library: Path) -> None:
        self._tracker = tracker
        self._library = library
        self._serial = itertools.count()
        self._session = tracker.request(KEY, session_timeout=3600)
        device = self._session.cpu(0)
        self._tiny = tvm.runtime.tensor(np.zeros(1, "float32"), device)
        self._host = np.random.default_rng(0).random(BIG // 4, np.float32)
        self._remote = tvm.runtime.empty(self._host.shape, "float32", device)
        self._a = tvm.runtime.tensor(np.zeros(1024, "float32"), device)
        self._b = tvm.runtime.empty((1024,), "float32", device)
        self._module = self._deploy()

    def lease(self, request: dict) -> dict:
        """Request a device of a second server, get one call answered, close."""
        return timed(self._lease, int(request["samples"]))

    def _lease(self) -> None:
        session = self._tracker.request(KEY, session_timeout=60)
        if not session.cpu(0).exist:
            raise RuntimeError("no device")
        del session
        gc.collect()  # the only way to end a session

    def call(self, request: dict) -> dict:
        """Call a small function on arrays that are there."""
        return timed(lambda: self._module["main"](self._a, self._b), int(request["samples"]))

    def put(self, request: dict) -> dict:
        """Copy an array of 64 MiB there."""
        return timed(lambda: self._remote.copyfrom(self._host), int(request["samples"]))

    def get(self, request: dict) -> dict:
        """Copy an array of 64 MiB back."""
        return timed(self._remote.numpy, int(request["samples"]))

    def upload(self, request: dict) -> dict:
        """Upload a file of 64 MiB."""
        blob = bytearray(os.urandom(BIG))
        return timed(lambda: self._session.upload(blob, target="blob"), int(request["samples"]))

    def deploy(self, request: dict) -> dict:
        """Upload a small library and load it."""
        return timed(self._deploy, int(request["samples"]))

    def _deploy(self) -> tvm.runtime.Module:
        # A name of its own each time: writing over a library that is loaded ends the server.
        name = f"small{next(self._serial)}.so"
        self._session.upload(str(self._library), target=name)
        return self._session.load_module(name)


def main() -> None:
    """Start a tracker and two servers (one stays leased), then answer."""
    port = free_port()
    tracker_at = f"127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ports = ("--port", str(port), "--port-end", str(port + 1))
        stack.enter_context(running("tvm.exec.rpc_tracker", *ports))
        for _ in range(2):
            own = free_port()
            args = ("--tracker", tracker_at, "--key", KEY)
            span = ("--port", str(own), "--port-end", str(own + 9))
            stack.enter_context(running("tvm.exec.rpc_server", *args, *span))
        trips = Trips(connect(port), build(folder))
        names = ("lease", "call", "put", "get", "upload", "deploy")
        handlers = {name: getattr(trips, name) for name in names}
        serve({"peer": "tvm", "version": tvm.__version__}, handlers)


if __name__ == "__main__":
    main()
