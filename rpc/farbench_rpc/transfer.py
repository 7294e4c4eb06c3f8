"""Large bytes over a client: files by digest, arrays in windows.

    upload(client, Path("add.so"), "add.so")         # only what the device lacks travels
    put(client, handle, memoryview(array).cast("B"))
    get(client, handle, memoryview(array).cast("B"))

A file is hashed, announced by its SHA-256, and the chunks asked for are sent; a cut transfer goes
on where it stopped, since the far side still holds what it got. Arrays go in frames that are not
copied here: `put` keeps at most two windows unanswered, `get` grants credit as it empties frames.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from farbench_rpc.chunks import Chunks
from farbench_rpc.errors import InvalidArgument, ProtocolError, RemoteTimeout
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
from farbench_rpc.transport.base import Buffer, Frames

TRANSFER_TIMEOUT_S = 600.0

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
    with _Source(source, chunk_bytes) as data:
        sha256 = data.digest()
        limit_s = clock.left_s()
        announced = client.begin(Upload(sha256, data.nbytes, name), timeout_s=limit_s)
        wanted = announced.wait(clock.left_s()).message
        sent = 0
        while isinstance(wanted, UploadWanted) and wanted.chunks:
            ended, nbytes = _send_chunks(client, data, sha256, wanted.chunks, clock, on_progress)
            sent += nbytes
            # What still lacks after the end (a long list is cut) is asked for again.
            wanted = ended
        if not isinstance(wanted, (Ok, UploadWanted)):
            raise ProtocolError(f"upload answered by {wanted.KIND}")
        return Uploaded(sha256, data.nbytes, sent)


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


def _send_chunks(
    client: Talk,
    data: _Source,
    sha256: str,
    ranges: tuple[tuple[int, int], ...],
    clock: _Clock,
    on_progress: Progress | None,
) -> tuple[Message, int]:
    stream: Pending | None = None
    sent = 0
    try:
        for first, last in ranges:
            for index in range(first, last):
                frames = [data.chunk(index)]
                message = UploadChunk(sha256, index)
                if stream is None:
                    stream = client.begin(message, frames, timeout_s=clock.left_s())
                else:
                    stream.send(message, frames, timeout_s=clock.left_s())
                sent += len(frames[0])
                if on_progress is not None:
                    on_progress(sent, data.nbytes)
        if stream is None:
            raise ProtocolError("the device wants chunk ranges without a chunk")
        stream.send(UploadEnd(sha256), timeout_s=clock.left_s())
        return stream.wait(clock.left_s()).message, sent
    finally:
        if stream is not None:
            stream.close()


def _expect_ok(reply: Reply) -> None:
    if not isinstance(reply.message, Ok):
        raise ProtocolError(f"expected ok, got {reply.message.KIND}")


class _Clock:
    """The time that a whole transfer may take."""

    def __init__(self, limit_s: float, what: str) -> None:
        self._limit_s, self._what = limit_s, what
        self._started = time.monotonic()

    def left_s(self) -> float:
        """Give the time left; RemoteTimeout when there is none."""
        elapsed_s = time.monotonic() - self._started
        if elapsed_s >= self._limit_s:
            raise RemoteTimeout(
                f"{self._what} took longer than {self._limit_s:g} s",
                {"limit_s": self._limit_s, "elapsed_s": elapsed_s, "waited_for": self._what},
            )
        return self._limit_s - elapsed_s


class _Source:
    """The bytes to upload, of a file or of memory, chunk by chunk."""

    def __init__(self, source: Path | Buffer, chunk_bytes: int) -> None:
        self._fd = -1
        self._view = memoryview(b"")
        self._name = "the bytes"
        if isinstance(source, Path):
            self._name = str(source)
            try:
                self._fd = os.open(source, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            except OSError as cause:
                raise InvalidArgument(f"cannot read {source}: {cause.strerror}") from cause
            self.nbytes = os.fstat(self._fd).st_size
        else:
            self._view = memoryview(source).cast("B")
            self.nbytes = self._view.nbytes
        self._cut = Chunks(self.nbytes, chunk_bytes)

    def __enter__(self) -> _Source:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def chunk(self, index: int) -> Buffer:
        """Give the bytes of a chunk."""
        try:
            start, stop = self._cut.span(index)
        except IndexError as cause:
            raise ProtocolError(f"the device wants {cause}, there is none such") from cause
        if self._fd < 0:
            return self._view[start:stop]
        # Read, not mapped: a file that is cut short meanwhile must be an error, not a SIGBUS.
        data = os.pread(self._fd, stop - start, start)
        if len(data) != stop - start:
            raise InvalidArgument(f"{self._name} changed while it was uploaded; upload it again")
        return data

    def digest(self) -> str:
        """Give the SHA-256 of all bytes; hashing lets other threads run."""
        if self._fd < 0:
            return hashlib.sha256(self._view).hexdigest()
        hasher = hashlib.sha256()
        for index in range(self._cut.count):
            hasher.update(self.chunk(index))
        return hasher.hexdigest()
