"""Uploaded files by digest: written in chunks, checked, made read-only, renamed into place.

Everything happens below one directory that the server owns, through its descriptor; names come
from digests alone, never from a client. What is complete is a bounded cache, the least recently
used going first; a file that a session holds stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from farbench_rpc.chunks import HeldChunks
from farbench_rpc.errors import InvalidArgument, NotFound, QuotaExceeded

_DIGEST = re.compile(r"[0-9a-f]{64}")
_PARTIAL = ".part"
_READ = 1 << 20
_OPEN_PARTIALS = 16
# What was cut off is kept, so that it can go on, but only up to this part of the store's limit.
_PARTIAL_SHARE = 4


@dataclass
class _Partial:
    """A file on its way: which chunks are held, and how far it is hashed (bytes)."""

    fd: int
    held: HeldChunks
    hasher: hashlib._Hash = field(default_factory=hashlib.sha256)
    hashed: int = 0


class Store:
    """The files of one device; owns the directory's descriptor."""

    def __init__(
        self,
        folder: Path,
        chunk_bytes: int,
        upload_limit: int,
        store_limit: int,
        free_floor: int = 0,
    ) -> None:
        self.folder = folder
        self.chunk_bytes = chunk_bytes
        self.upload_limit = upload_limit
        self.store_limit = store_limit
        self.free_floor = free_floor
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._dir = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self._partials: OrderedDict[str, _Partial] = OrderedDict()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._holders: dict[str, int] = {}
        # What lay here before this start is believed once its digest was checked again: a power
        # cut may have left a file that was renamed but never written.
        self._unchecked: set[str] = set()
        self._read_folder()

    def _read_folder(self) -> None:
        found = []
        for entry in os.scandir(self._dir):
            if _DIGEST.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                info = entry.stat(follow_symlinks=False)
                found.append((info.st_mtime, entry.name, info.st_size))
            elif entry.name.endswith(_PARTIAL):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.name, dir_fd=self._dir)
        for _, digest, nbytes in sorted(found):
            self._sizes[digest] = nbytes
            self._unchecked.add(digest)

    @property
    def used(self) -> int:
        """Count the bytes of complete files."""
        return sum(self._sizes.values())

    @property
    def _sent(self) -> int:
        """Count the bytes that came of files on their way."""
        return sum(one.held.nbytes for one in self._partials.values())

    def announce(self, digest: str, nbytes: int, instead: str = "") -> tuple[tuple[int, int], ...]:
        """Tell which chunks [first, last) of a file are missing; none: it is here.

        What came under the passing name `instead` counts, where nothing else was here before.
        """
        if not _DIGEST.fullmatch(digest):
            raise InvalidArgument("a digest is 64 hexadecimal digits (SHA-256)")
        if not 0 < nbytes <= self.upload_limit:
            raise QuotaExceeded(
                f"an upload may have 1 to {self.upload_limit} bytes, this one has {nbytes}",
                {"limit": self.upload_limit},
            )
        if self._complete(digest):
            self.abandon(instead)
            return ()
        self._adopt(instead, digest, nbytes)
        partial = self._partials.get(digest)
        if partial is not None and partial.held.cut.nbytes != nbytes:
            known = partial.held.cut.nbytes
            raise InvalidArgument(f"this digest was announced with {known} bytes before")
        if partial is None:
            partial = self._begin(digest, nbytes)
        self._partials.move_to_end(digest)
        if partial.held.complete:
            self.finish(digest)  # It was cut off before its end was said, or sent ahead whole.
        return partial.held.missing()

    def _adopt(self, instead: str, digest: str, nbytes: int) -> None:
        """Go on under its digest with what came under a passing name, or drop that."""
        partial = self._partials.get(instead)
        if partial is None or instead == digest:
            return
        if digest in self._partials or partial.held.cut.nbytes != nbytes:
            self.abandon(instead)
            return
        names = (instead + _PARTIAL, digest + _PARTIAL)
        os.rename(*names, src_dir_fd=self._dir, dst_dir_fd=self._dir)
        self._partials[digest] = self._partials.pop(instead)

    def _complete(self, digest: str) -> bool:
        if digest not in self._sizes:
            return False
        if digest in self._unchecked:
            self._unchecked.discard(digest)
            fd = os.open(digest, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._dir)
            try:
                hasher = hashlib.sha256()
                _hash_from(fd, 0, hasher)
            finally:
                os.close(fd)
            if hasher.hexdigest() != digest:
                self._drop(digest)
                return False
        self._sizes.move_to_end(digest)
        return True

    def _begin(self, digest: str, nbytes: int) -> _Partial:
        free = os.fstatvfs(self._dir)
        if free.f_bavail * free.f_frsize - nbytes < self.free_floor:
            raise QuotaExceeded(
                f"no room on the device's disk for {nbytes} bytes", {"limit": self.free_floor}
            )
        while len(self._partials) >= _OPEN_PARTIALS:
            self.abandon(next(iter(self._partials)))
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(digest + _PARTIAL, flags, 0o600, dir_fd=self._dir)
        partial = self._partials[digest] = _Partial(fd, HeldChunks(nbytes, self.chunk_bytes))
        return partial

    def write(self, digest: str, index: int, data: bytes | memoryview) -> None:
        """Write a chunk; one that is there already is ignored."""
        partial = self._partials.get(digest)
        if partial is None:
            if digest in self._sizes:
                return
            raise NotFound("a chunk of a file that was not announced")
        try:
            start, stop = partial.held.cut.span(index)
        except IndexError as cause:
            raise InvalidArgument(f"there is no {cause}") from cause
        if len(data) != stop - start:
            raise InvalidArgument(f"chunk {index} has {len(data)} bytes, expected {stop - start}")
        if index in partial.held:
            return
        try:
            _write_all(partial.fd, data, start)
        except OSError as cause:
            raise QuotaExceeded(f"cannot write the upload: {cause.strerror}") from cause
        partial.held.add(index)
        if start == partial.hashed:
            partial.hasher.update(data)
            partial.hashed = stop

    def finish(self, digest: str) -> tuple[tuple[int, int], ...]:
        """Check a file that was sent whole and put it in place; InvalidArgument if it differs.

        Gives the chunks that still lack, as `announce` does; none: it is in place.
        """
        partial = self._partials.get(digest)
        if partial is None:
            if self._complete(digest):
                return ()
            raise NotFound("the end of a file that was not announced")
        if not partial.held.complete:
            return partial.held.missing()
        _hash_from(partial.fd, partial.hashed, partial.hasher)
        if partial.hasher.hexdigest() != digest:
            self.abandon(digest)
            raise InvalidArgument("the upload's digest is not the one announced; send it again")
        os.fchmod(partial.fd, 0o400)
        os.close(partial.fd)
        del self._partials[digest]
        os.rename(digest + _PARTIAL, digest, src_dir_fd=self._dir, dst_dir_fd=self._dir)
        self._sizes[digest] = partial.held.cut.nbytes
        return ()

    def abandon(self, digest: str) -> None:
        """Drop a file that is on its way."""
        partial = self._partials.pop(digest, None)
        if partial is not None:
            os.close(partial.fd)
            os.unlink(digest + _PARTIAL, dir_fd=self._dir)

    def hold(self, digest: str) -> None:
        """Keep a file while a session uses it; one call of `release` for each."""
        if not self._complete(digest):
            raise NotFound("the file is not here; upload it first")
        self._holders[digest] = self._holders.get(digest, 0) + 1

    def release(self, digests: Sequence[str]) -> None:
        """Let files go that a session held, and what it left half sent beyond its share."""
        for digest in digests:
            left = self._holders.get(digest, 0) - 1
            if left > 0:
                self._holders[digest] = left
            else:
                self._holders.pop(digest, None)
        while self._sent > self.store_limit // _PARTIAL_SHARE:
            self.abandon(next(iter(self._partials)))
        self.trim()

    def path(self, digest: str) -> str:
        """Give where a complete file lies."""
        return str(self.folder / digest)

    def trim(self) -> None:
        """Drop the least recently used files beyond the limit, but those that are held."""
        excess = self.used + self._sent - self.store_limit
        for digest in list(self._sizes):
            if excess <= 0:
                return
            if digest not in self._holders:
                excess -= self._sizes[digest]
                self._drop(digest)

    def _drop(self, digest: str) -> None:
        self._sizes.pop(digest, None)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(digest, dir_fd=self._dir)

    def close(self) -> None:
        """Drop what is on its way and close the directory."""
        for digest in list(self._partials):
            self.abandon(digest)
        if self._dir >= 0:
            os.close(self._dir)
            self._dir = -1


def _hash_from(fd: int, start: int, hasher: hashlib._Hash) -> None:
    while True:
        data = os.pread(fd, _READ, start)
        if not data:
            return
        hasher.update(data)
        start += len(data)


def _write_all(fd: int, data: bytes | memoryview, start: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(fd, left, start)
        left = left[written:]
        start += written
