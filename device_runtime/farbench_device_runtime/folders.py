"""Private directories of workers: removed whatever lies in them, however deep, a little at a time.

Code of users decides what lies there, so that nothing is counted on: no depth or number is bounded,
no directory readable, and links are never followed. One descriptor is open at a time, nothing
recurses, and a server's loop goes on between the pieces of a long removal.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

TURN_S = 0.02
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Sweeper:
    """Removes directories in turns of `TURN_S`; most are gone within the first."""

    def __init__(self) -> None:
        self._under_way: deque[Iterator[None]] = deque()

    @property
    def idle(self) -> bool:
        """Tell whether all that was given to it is gone."""
        return not self._under_way

    def remove(self, folder: Path) -> None:
        """Begin to remove a directory; `work` goes on with what takes longer than a turn."""
        self._under_way.append(_removal(folder))
        self.work()

    def work(self, turn_s: float = TURN_S) -> None:
        """Go on for one turn."""
        deadline = time.monotonic() + turn_s
        while self._under_way:
            for _ in self._under_way[0]:
                if time.monotonic() >= deadline:
                    return
            self._under_way.popleft()


def remove(folder: Path) -> bool:
    """Remove a directory with all that lies in it; False where something could not be removed."""
    for _ in _removal(folder):
        pass
    return not os.path.lexists(folder)


def _removal(folder: Path) -> Iterator[None]:
    """Remove a directory, a few files or one directory a step."""
    with contextlib.suppress(OSError):
        yield from _emptying(os.open(folder, _OPEN))
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _emptying(here: int) -> Iterator[None]:
    """Remove what lies in an open directory, and close it: down into each, and up by `..`."""
    names: list[str] = []
    try:
        left: list[list[str]] = [[]]
        yield from _files(here, left[-1])
        while left:
            yield
            if left[-1]:
                names.append(left[-1].pop())
                with contextlib.suppress(OSError):
                    os.chmod(names[-1], 0o700, dir_fd=here)
                try:
                    below = os.open(names[-1], _OPEN, dir_fd=here)
                except OSError:
                    names.pop()  # not ours to open: it stays
                    continue
                os.close(here)
                here = below
                left.append([])
                yield from _files(here, left[-1])
                continue
            left.pop()
            if names:
                above = os.open("..", _OPEN, dir_fd=here)
                os.close(here)
                here = above
                with contextlib.suppress(OSError):
                    os.rmdir(names.pop(), dir_fd=here)
    finally:
        os.close(here)


def _files(folder: int, directories: list[str]) -> Iterator[None]:
    """Remove the files of an open directory; what is left are directories."""
    for index, name in enumerate(os.listdir(folder)):
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:
            directories.append(name)
        if index % 16 == 15:
            yield
