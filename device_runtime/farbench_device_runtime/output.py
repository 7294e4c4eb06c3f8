"""What a worker prints: a file in its private directory, whose last line often says why it died."""

from __future__ import annotations

import os
from pathlib import Path

NAME = "output.log"
_TAIL = 400


def enter_directory(path: str) -> None:
    """Make the private directory the place of relative names, and send output to a file there."""
    os.chdir(path)
    null = os.open(os.devnull, os.O_RDWR)
    # Emptied: what an earlier worker of the session printed says nothing of this one.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW
    log = os.open(NAME, flags, 0o600)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(null)
    os.close(log)


def last_line(folder: Path) -> str:
    """Give the last line that was printed, cut to 300 characters; empty if there is none."""
    try:
        # The worker may have put anything in its place: no link is followed, no pipe waited for.
        fd = os.open(folder / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        start = max(0, os.fstat(fd).st_size - _TAIL)
        text = os.pread(fd, _TAIL, start).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][-300:] if lines else ""
