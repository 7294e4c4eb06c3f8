"""A session: one worker on a device (or on this machine) for as long as its lease lasts.

    with tracker.request("arch=aarch64") as remote:
        remote.upload("add.so"); f = remote.load_module("add.so")

It adds to a connection what its user thinks in: files, modules, arrays, and one place that ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from farbench.devices import Device, cpu
from farbench.errors import SessionClosed, UsageError
from farbench.lease import Lease
from farbench.line import ASK_TIMEOUT_S, Line, OnEvent
from farbench_rpc import messages as m
from farbench_rpc.errors import Cancelled, RpcError
from farbench_rpc.transport.base import Frames

if TYPE_CHECKING:
    from farbench.nd import DeviceArray
    from farbench.remote import RemoteModule
    from farbench_rpc.client import Reply

OPEN_TIMEOUT_S = 30.0
TRANSFER_TIMEOUT_S = 120.0
CLOSE_TIMEOUT_S = 1.0
MAX_NAME = 255
FREE_AT_ONCE = 256  # handles in one Free message, far below the caps of a header

S = TypeVar("S", bound="Session")


class Session:
    """A worker that is yours; made by `tracker.request` and `fb.local`, ended by `close`.

    `facts` are the device's, `queued_s` how long the request waited, `transfer_s` how long
    arrays and files have travelled so far (seconds).
    """

    def __init__(self, line: Line, opened: m.SessionOpened, lease: Lease | None = None) -> None:
        self.facts: m.Facts = dict(opened.facts)
        self.name = lease.device.name if lease is not None else opened.device
        self.chunk_bytes = opened.chunk_bytes
        self.window = opened.window
        self.lease = lease
        self.queued_s = lease.queued_s if lease is not None else 0.0
        self.transfer_s = 0.0
        self.dropped: list[int] = []
        self._line = line
        self._closed = False
        if lease is not None:
            lease.on_end = line.end
            lease.close_session = self.close

    @classmethod
    def open(cls: type[S], line: Line, ask: m.SessionOpen, lease: Lease | None = None) -> S:
        """Open the session of a lease over a fresh line; the line is closed if that fails."""
        try:
            reply = line.ask(ask, timeout_s=OPEN_TIMEOUT_S)
            if not isinstance(reply.message, m.SessionOpened):
                raise RpcError(f"the device answered SessionOpen with {reply.message.KIND!r}")
            return cls(line, reply.message, lease)
        except BaseException:
            line.close()
            raise

    # --- what every request goes through ---

    @property
    def minor(self) -> int:
        """The minor version of the wire that both sides use."""
        return self._line.client.minor

    def ask(
        self,
        message: m.Message,
        frames: Frames = (),
        timeout_s: float = ASK_TIMEOUT_S,
        on_event: OnEvent | None = None,
    ) -> Reply:
        """Send a request of the session and wait for its reply; LeaseLost once it is over."""
        if self._closed or self.dropped:
            self._prepare()
        return self._line.ask(message, frames, timeout_s, on_event)

    def _prepare(self) -> None:
        """Refuse what comes too late, and free the arrays that were dropped meanwhile."""
        if self._closed:
            raise SessionClosed(f"the session on {self.name} is closed; request a device again")
        while self.dropped:
            batch = tuple(self.dropped[:FREE_AT_ONCE])
            del self.dropped[: len(batch)]
            self._line.ask(m.Free(batch))

    # --- files and modules ---

    def upload(self, path: str | Path, target: str | None = None) -> str:
        """Send a file to the session; gives its name there (`target`, or the file's own).

        Only chunks that the device lacks travel. UsageError: no such file, or a name that is more
        than a plain file name.
        """
        from farbench_rpc.transfer import upload

        source = Path(path)
        if not source.is_file():
            raise UsageError(f"cannot upload {source}: no such file")
        name = plain_name(source.name if target is None else target)
        with self._moving():
            upload(self._line.client, source, name, TRANSFER_TIMEOUT_S)
        return name

    def load_module(self, name: str) -> RemoteModule:
        """Load an uploaded library; LoadRefused says why it does not fit the device."""
        from farbench.remote import RemoteModule
        from farbench_rpc.manifest import decode

        reply = self.ask(m.Load(plain_name(name)), timeout_s=TRANSFER_TIMEOUT_S)
        if not isinstance(reply.message, m.Loaded) or not reply.frames:
            raise RpcError(f"{self.name} answered Load with {reply.message.KIND!r}")
        return RemoteModule(self, name, reply.message.module, decode(bytes(reply.frames[0])))

    # --- arrays ---

    def cpu(self, index: int = 0) -> Device:
        """Give the memory of the worker; the only index is 0."""
        cpu(index)
        return Device(self)

    def alloc(self, shape: tuple[int, ...], dtype: str) -> DeviceArray:
        """Make an array with undefined elements."""
        from farbench.nd import DeviceArray

        reply = self.ask(m.Alloc(dtype, shape))
        if not isinstance(reply.message, m.Allocated):
            raise RpcError(f"{self.name} answered Alloc with {reply.message.KIND!r}")
        return DeviceArray(self, reply.message.array, shape, dtype)

    def put(self, handle: int, data: memoryview) -> None:
        """Store the bytes of an array."""
        from farbench_rpc.transfer import put

        with self._moving():
            put(
                self._line.client,
                handle,
                data,
                TRANSFER_TIMEOUT_S,
                chunk_bytes=self.chunk_bytes,
                window=self.window,
            )

    def get(self, handle: int, into: memoryview) -> None:
        """Fetch the bytes of an array."""
        from farbench_rpc.transfer import get

        with self._moving():
            get(self._line.client, handle, into, TRANSFER_TIMEOUT_S, window=self.window)

    def fill(self, handle: int, seed: int, kind: str, low: float, high: float) -> None:
        """Fill an array from a seed, on the device."""
        self.ask(m.Fill(handle, seed, kind, float(low), float(high)))

    @contextmanager
    def _moving(self) -> Iterator[None]:
        """Count what passes inside as time of transfer, and explain a broken connection."""
        self._prepare()
        began = time.perf_counter()
        try:
            yield
        except RpcError as error:
            raise self._line.why(error) from error
        self.transfer_s += time.perf_counter() - began

    # --- end ---

    @property
    def closed(self) -> bool:
        """Tell whether the session has been closed."""
        return self._closed

    def cancel(self) -> None:
        """End what another thread waits for in this session, as Cancelled; then it is over."""
        self._line.end(Cancelled(f"the session on {self.name} was cancelled"))

    def close(self) -> None:
        """End the session and free the device; once is enough, more do nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            # A device that does not answer is the tracker's business: it revokes the lease.
            with suppress(RpcError):
                if self._line.lost is None:
                    self._line.ask(m.SessionClose(), timeout_s=CLOSE_TIMEOUT_S)
        finally:
            self._end()

    def _end(self) -> None:
        try:
            self._line.close()
        finally:
            if self.lease is not None:
                self.lease.release()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "lost" if self._line.lost is not None else "open"
        return f"<Session on {self.name}, {state}>"


def plain_name(name: str) -> str:
    """Check that a name is one plain file name, without a way out of the session's directory."""
    try:
        nbytes = len(name.encode())
    except UnicodeEncodeError:
        raise UsageError(f"{name!r} is not UTF-8 text; give the file another name") from None
    bad = not name or name in (".", "..") or nbytes > MAX_NAME
    if bad or any(c in "/\\\0" for c in name):
        raise UsageError(f"{name!r} is not a plain file name; give one without '/' or '..'")
    return name
