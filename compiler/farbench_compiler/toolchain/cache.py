"""Files made once and kept: each under a key, made whole or not at all, safe between processes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs

from farbench_compiler.errors import LinkError

LOCK_TIMEOUT_S = 300.0
_POLL_S = 0.02


def cache_dir() -> Path:
    """Give the folder of the toolchain's files (under XDG_CACHE_HOME where that is set)."""
    return Path(platformdirs.user_cache_dir("farbench", appauthor=False)) / "toolchain"


def digest(*parts: str | bytes) -> str:
    """Hash parts, each with its length, so that no two lists of them run together."""
    hasher = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        hasher.update(len(raw).to_bytes(8, "little"))
        hasher.update(raw)
    return hasher.hexdigest()


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """Give the folder `name`, calling `make` with an empty one if it does not exist yet.

    Of several processes one makes it and the others wait; what is interrupted leaves nothing.
    """
    root = cache_dir()
    final = root / name
    try:
        if final.is_dir():
            return final
        final.parent.mkdir(parents=True, exist_ok=True)
        with _lock(final.with_name(f"{final.name}.lock")):
            if not final.is_dir():
                _make(final, make)
    except OSError as cause:
        raise LinkError(
            f"cannot write the cache folder {root}: {cause.strerror or cause}; "
            "set XDG_CACHE_HOME to a folder that can be written"
        ) from cause
    return final


def _make(final: Path, make: Callable[[Path], None]) -> None:
    part = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
    try:
        make(part)
        part.rename(final)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a file's lock; the system drops it when a process ends, however it ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise LinkError(
                    f"waited {LOCK_TIMEOUT_S:.0f} s for another process that holds {path}"
                )
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return True  # Windows: two makers may work twice; the rename still decides for one
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
