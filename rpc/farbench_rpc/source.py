"""The bytes of an upload, of a file or of memory, and their digest, found while they travel."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

from farbench_rpc.chunks import Chunks
from farbench_rpc.errors import InvalidArgument, ProtocolError, RpcError
from farbench_rpc.transport.base import Buffer


class Source:
    """Bytes to upload, chunk by chunk; owns the file. A context manager."""

    def __init__(self, source: Path | Buffer, chunk_bytes: int) -> None:
        """Open it; InvalidArgument if the file cannot be read."""
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
        self.cut = Chunks(self.nbytes, chunk_bytes)

    def __enter__(self) -> Source:
        """Give itself, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def chunk(self, index: int) -> Buffer:
        """Give the bytes of a chunk; InvalidArgument if the file is no longer that long."""
        try:
            start, stop = self.cut.span(index)
        except IndexError as cause:
            raise ProtocolError(f"the device wants {cause}, there is none such") from cause
        if self._fd < 0:
            return self._view[start:stop]
        # Read, not mapped: a file that is cut short meanwhile must be an error, not a SIGBUS.
        try:
            data = os.pread(self._fd, stop - start, start)
        except OSError as cause:
            raise InvalidArgument(f"cannot read {self._name}: {cause.strerror}") from cause
        if len(data) != stop - start:
            raise InvalidArgument(f"{self._name} changed while it was uploaded; upload it again")
        return data


class Hashing:
    """The SHA-256 of a source, found by a thread of its own; a context manager that ends it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._stop = False
        self._digest = ""
        self._error: RpcError | None = None
        self._thread = threading.Thread(target=self._run, name="farbench-hash")

    def __enter__(self) -> Hashing:
        """Start."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread, after the chunk it is at."""
        self._stop = True
        self._thread.join()

    @property
    def done(self) -> bool:
        """Tell whether `result` would not wait."""
        return not self._thread.is_alive()

    def result(self, timeout_s: float) -> str | None:
        """Give the digest in hexadecimal, None if it takes longer; raises what reading raised."""
        self._thread.join(timeout_s)
        if self._error is not None:
            raise self._error
        return self._digest or None

    def _run(self) -> None:
        hasher = hashlib.sha256()
        try:
            for index in range(self._source.cut.count):
                if self._stop:
                    return
                hasher.update(self._source.chunk(index))  # lets other threads run meanwhile
        except RpcError as error:
            self._error = error
            return
        self._digest = hasher.hexdigest()
