"""One timing job at a time on a machine, also where it runs several device servers.

A lock on a file that every server of the machine can open. It is asked for without waiting, since
the server's loop must go on; who cannot have it within a bound measures all the same, flagged.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path


class TimingLock:
    """The machine's lock of timing jobs; holds a descriptor while it is held or waited for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.held = False
        self._fd = -1

    def acquire(self) -> bool:
        """Try to take the lock; True also where no lock file can be had (nothing to exclude)."""
        if self.held:
            return True
        try:
            if self._fd < 0:
                self._fd = _open(self.path)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        self.held = True
        return True

    def release(self) -> None:
        """Give the lock back; one that is not held is no error."""
        self.held = False
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = -1


def _open(path: Path) -> int:
    """Open the lock file, made by whoever comes first; never through a link."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        flags = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(path, flags, 0o644)
