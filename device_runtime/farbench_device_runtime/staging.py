"""The staging window: shared memory in slots through which array data passes to and from a worker.

The server makes it anew for every worker, so that nothing of one user is seen by the next, and
seals its size, so that a worker cannot shrink it under the server's feet.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import weakref
from types import TracebackType

_F_ADD_SEALS = 1033
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 1, 2, 4


class Window:
    """`slots` buffers of `slot_bytes` each in one mapping; owns the descriptor."""

    def __init__(self, fd: int, slots: int, slot_bytes: int) -> None:
        self.fd = fd
        self.slots = slots
        self.slot_bytes = slot_bytes
        self._map = mmap.mmap(fd, slots * slot_bytes)
        self._view = memoryview(self._map)
        self._free = list(range(slots - 1, -1, -1))

    @classmethod
    def create(cls, slots: int, slot_bytes: int) -> Window:
        """Make a window (memory, not disk); OSError when there is none."""
        fd = os.memfd_create("farbench-window", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(fd, slots * slot_bytes)
            fcntl.fcntl(fd, _F_ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW | _SEAL_SEAL)
            return cls(fd, slots, slot_bytes)
        except OSError:
            os.close(fd)
            raise

    def take(self) -> int | None:
        """Take a free slot; None when all are in use."""
        return self._free.pop() if self._free else None

    def give(self, slot: int) -> None:
        """Give a slot back."""
        self._free.append(slot)

    def lend(self, index: int, nbytes: int) -> memoryview:
        """Give a view of a slot to send as it lies; the slot comes back once the view is let go.

        A sender holds the view until its bytes are on their way; that may be another thread.
        """
        view = self.slot(index, nbytes)
        weakref.finalize(view, self._free.append, index).atexit = False
        return view

    @property
    def free(self) -> int:
        """Count the free slots."""
        return len(self._free)

    def slot(self, index: int, nbytes: int) -> memoryview:
        """Give the first `nbytes` of a slot; IndexError outside the window."""
        if not 0 <= index < self.slots or not 0 <= nbytes <= self.slot_bytes:
            raise IndexError(f"slot {index} of {nbytes} bytes is outside the window")
        start = index * self.slot_bytes
        return self._view[start : start + nbytes]

    def close(self) -> None:
        """Unmap and close; views given out must be gone."""
        if self.fd >= 0:
            self._view.release()
            # A view that a sender still holds keeps the mapping until it is dropped.
            with contextlib.suppress(BufferError):
                self._map.close()
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Window:
        """Use as a context manager."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close at the end of the block."""
        self.close()
