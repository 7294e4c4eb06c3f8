"""Large bytes over a client: files by digest, arrays in windows.

    upload(client, Path("add.so"), "add.so")         # only what the device lacks travels
    put(client, handle, memoryview(array).cast("B"))
    get(client, handle, memoryview(array).cast("B"))

A file is announced by its SHA-256, and the chunks asked for are sent; a cut transfer goes on where
it stopped, since the far side still holds what it got. A large file's chunks travel under a passing
name while it is hashed: over a fast wire most are there when the digest is known, over a slow one
few were sent in vain if the far side has the file. Arrays go in frames that are not
copied here: `put` keeps at most two windows unanswered, `get` grants credit as it empties frames.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from farbench_rpc.chunks import Chunks
from farbench_rpc.errors import ProtocolError, RemoteTimeout
from farbench_rpc.limits import CHUNK, WINDOW
from farbench_rpc.messages import (
    Credit,
    Get,
    GetChunk,
    Message,
    Ok,
    Put,
    Upload,
    UploadChunk,
    UploadEnd,
    UploadWanted,
)
from farbench_rpc.pending import Pending, Reply
from farbench_rpc.source import Hashing, Source
from farbench_rpc.transport.base import Buffer, Frames

TRANSFER_TIMEOUT_S = 600.0
AHEAD_FROM = 8 * CHUNK
"""Bytes of a file from which on its chunks are sent while it is still being hashed."""

Progress = Callable[[int, int], None]
"""(bytes done, bytes in all)"""


class Talk(Protocol):
    """What a transfer needs of a client."""

    def begin(self, message: Message, frames: Frames = (), *, timeout_s: float) -> Pending:
        """Send a request without waiting."""


@dataclass(frozen=True)
class Uploaded:
    """What became of an upload: `sent_bytes` is what travelled."""

    sha256: str
    nbytes: int
    sent_bytes: int


def upload(
    client: Talk,
    source: Path | Buffer,
    name: str,
    timeout_s: float = TRANSFER_TIMEOUT_S,
    *,
    chunk_bytes: int = CHUNK,
    on_progress: Progress | None = None,
) -> Uploaded:
    """Bring a file (or bytes) to the device as `name`.

    Raises InvalidArgument if the file cannot be read or changes meanwhile, RemoteTimeout, and
    what the device says (QuotaExceeded, ...).
    """
    clock = _Clock(timeout_s, f"upload of {name}")
    with Source(source, chunk_bytes) as data, Hashing(data) as hashing:
        sending = _Sending(client, data, clock, on_progress)
        ahead = ""
        if data.nbytes >= AHEAD_FROM:
            ahead = secrets.token_hex(32)
            sending.ahead(Upload(ahead, data.nbytes, name), hashing)
        sha256 = hashing.result(clock.left_s())
        if sha256 is None:
            raise clock.over()
        announced = client.begin(Upload(sha256, data.nbytes, name, ahead), timeout_s=clock.left_s())
        wanted = announced.wait(clock.left_s()).message
        while isinstance(wanted, UploadWanted) and wanted.chunks:
            # What still lacks after the end (a long list is cut) is asked for again.
            wanted = sending.chunks(sha256, wanted.chunks)
        if not isinstance(wanted, (Ok, UploadWanted)):
            raise ProtocolError(f"upload answered by {wanted.KIND}")
        return Uploaded(sha256, data.nbytes, sending.nbytes)


def put(
    client: Talk,
    array: int,
    data: memoryview,
    timeout_s: float = TRANSFER_TIMEOUT_S,
    *,
    offset: int = 0,
    chunk_bytes: int = CHUNK,
    window: int = WINDOW,
) -> None:
    """Store bytes in an array from `offset`; they must not change until this returns."""
    data = data.cast("B")
    clock = _Clock(timeout_s, f"put of {data.nbytes} bytes")
    half = max(1, window // 2)
    under_way: deque[Pending] = deque()
    batch: Pending | None = None
    try:
        for i, (start, stop) in enumerate(_spans(data.nbytes, chunk_bytes)):
            # The last frame of each half window is answered: that is the flow control.
            answered = stop == data.nbytes or i % half == half - 1
            message = Put(array, offset + start, answered)
            if batch is None:
                batch = client.begin(message, [data[start:stop]], timeout_s=clock.left_s())
                under_way.append(batch)
            else:
                batch.send(message, [data[start:stop]], timeout_s=clock.left_s())
            if answered:
                batch = None
                while len(under_way) > 1:
                    _expect_ok(under_way.popleft().wait(clock.left_s()))
        while under_way:
            _expect_ok(under_way.popleft().wait(clock.left_s()))
    finally:
        for pending in under_way:
            pending.close()


def get(
    client: Talk,
    array: int,
    into: memoryview,
    timeout_s: float = TRANSFER_TIMEOUT_S,
    *,
    offset: int = 0,
    window: int = WINDOW,
) -> None:
    """Fetch bytes of an array from `offset` into writable memory; it is filled when this returns.

    The far side starts with credit for `window` frames (SessionOpened says how many).
    """
    into = into.cast("B")
    clock = _Clock(timeout_s, f"get of {into.nbytes} bytes")
    asked = client.begin(Get(array, offset, into.nbytes), timeout_s=clock.left_s())
    half = max(1, window // 2)
    got = emptied = 0

    def take(event: Reply) -> None:
        nonlocal got, emptied
        if not isinstance(event.message, GetChunk) or len(event.frames) != 1:
            raise ProtocolError(f"get answered by {event.message.KIND}")
        frame = memoryview(event.frames[0]).cast("B")
        start = event.message.offset - offset
        if start != got or start + frame.nbytes > into.nbytes:
            raise ProtocolError(f"get brought bytes from {start}, expected them from {got}")
        into[start : start + frame.nbytes] = frame
        got += frame.nbytes
        emptied += 1
        if emptied == half and got < into.nbytes:
            asked.send(Credit(asked.id, emptied), timeout_s=clock.left_s())
            emptied = 0

    _expect_ok(asked.wait(clock.left_s(), take))
    if got != into.nbytes:
        raise ProtocolError(f"get brought {got} of {into.nbytes} bytes")


def _spans(nbytes: int, chunk_bytes: int) -> Iterable[tuple[int, int]]:
    # An array without elements is still put once, so that a bad handle is reported.
    return Chunks(nbytes, chunk_bytes).spans() if nbytes else [(0, 0)]


def _expect_ok(reply: Reply) -> None:
    if not isinstance(reply.message, Ok):
        raise ProtocolError(f"expected ok, got {reply.message.KIND}")


class _Sending:
    """The chunks of one upload on their way; `nbytes` counts what was sent."""

    def __init__(
        self, client: Talk, data: Source, clock: _Clock, on_progress: Progress | None
    ) -> None:
        self.nbytes = 0
        self._client, self._data, self._clock = client, data, clock
        self._on_progress = on_progress

    def ahead(self, announce: Upload, hashing: Hashing) -> None:
        """Send chunks under a passing name for as long as the digest is not known."""
        pending = self._client.begin(announce, timeout_s=self._clock.left_s())
        pending.wait(self._clock.left_s())
        stream: Pending | None = None
        try:
            for index in range(self._data.cut.count):
                if hashing.done:
                    break
                stream = self._chunk(stream, announce.sha256, index)
        finally:
            if stream is not None:
                stream.close()

    def chunks(self, sha256: str, ranges: tuple[tuple[int, int], ...]) -> Message:
        """Send the chunks [first, last) of each range and the end; gives the answer to it."""
        stream: Pending | None = None
        try:
            for first, last in ranges:
                for index in range(first, last):
                    stream = self._chunk(stream, sha256, index)
            if stream is None:
                raise ProtocolError("the device wants chunk ranges without a chunk")
            stream.send(UploadEnd(sha256), timeout_s=self._clock.left_s())
            return stream.wait(self._clock.left_s()).message
        finally:
            if stream is not None:
                stream.close()

    def _chunk(self, stream: Pending | None, sha256: str, index: int) -> Pending:
        # All chunks share one request id, so that an error of any of them ends the stream.
        frame = self._data.chunk(index)
        message = UploadChunk(sha256, index)
        if stream is None:
            stream = self._client.begin(message, [frame], timeout_s=self._clock.left_s())
        else:
            stream.send(message, [frame], timeout_s=self._clock.left_s())
        self.nbytes += len(frame)
        if self._on_progress is not None:
            self._on_progress(min(self.nbytes, self._data.nbytes), self._data.nbytes)
        return stream


class _Clock:
    """The time that a whole transfer may take."""

    def __init__(self, limit_s: float, what: str) -> None:
        self._limit_s, self._what = limit_s, what
        self._started = time.monotonic()

    def left_s(self) -> float:
        """Give the time left; RemoteTimeout when there is none."""
        left_s = self._started + self._limit_s - time.monotonic()
        if left_s <= 0:
            raise self.over()
        return left_s

    def over(self) -> RemoteTimeout:
        """Make the error of a transfer that took too long."""
        elapsed_s = time.monotonic() - self._started
        return RemoteTimeout(
            f"{self._what} took longer than {self._limit_s:g} s",
            {"limit_s": self._limit_s, "elapsed_s": elapsed_s, "waited_for": self._what},
        )
