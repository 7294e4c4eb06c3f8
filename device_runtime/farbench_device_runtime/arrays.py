"""The arrays of a worker: anonymous memory by handle, within the session's limit."""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
from collections.abc import Iterable
from dataclasses import dataclass

from farbench_rpc.errors import InvalidArgument, NotFound, OutOfMemory
from farbench_rpc.manifest import DTYPES, ArrayFacts

_HUGE = 2 << 20
_MAX_RANK = 32
# Arrays that all begin at a page's start fight for the same cache sets: each begins at another
# multiple of 128 bytes, which keeps the 64-byte alignment that code may count on.
_STEP, _STEPS = 128, 16


@dataclass
class Array:
    """One array: dtype, shape, its bytes, and where they lie."""

    facts: ArrayFacts
    nbytes: int
    view: memoryview
    memory: mmap.mmap
    anchor: object

    def close(self) -> None:
        """Give the memory back."""
        self.view.release()
        self.anchor = None
        with contextlib.suppress(BufferError):
            self.memory.close()


def byte_count(dtype: str, shape: Iterable[int]) -> int:
    """Give the size of an array; InvalidArgument for a dtype or shape that cannot be."""
    sizes = tuple(shape)
    if dtype not in DTYPES:
        raise InvalidArgument(f"no dtype {dtype!r}; there are {', '.join(DTYPES)}")
    if len(sizes) > _MAX_RANK or any(size < 0 for size in sizes):
        raise InvalidArgument(f"shape {sizes} is not one of an array")
    return math.prod(sizes) * DTYPES[dtype]


class Arrays:
    """Arrays by handle; `limit` bytes in all (0 = none)."""

    def __init__(self, limit: int, first: int, lost: str) -> None:
        self.limit = limit
        self.first = first
        self.lost = lost
        self.used = 0
        self._held: dict[int, Array] = {}

    def make(self, handle: int, dtype: str, shape: tuple[int, ...]) -> Array:
        """Allocate an array under a handle; OutOfMemory when it does not fit."""
        nbytes = byte_count(dtype, shape)
        if self.limit and self.used + nbytes > self.limit:
            raise self._full(nbytes)
        offset = _STEP * (handle % _STEPS)
        try:
            memory = mmap.mmap(-1, offset + max(nbytes, 1))
        except (OSError, ValueError, OverflowError) as cause:
            raise self._full(nbytes) from cause
        if nbytes >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):
                memory.madvise(mmap.MADV_HUGEPAGE)
        anchor = ctypes.c_char.from_buffer(memory, offset)
        facts = ArrayFacts(dtype, tuple(shape), ctypes.addressof(anchor))
        view = memoryview(memory)[offset : offset + nbytes]
        made = Array(facts, nbytes, view, memory, anchor)
        self._held[handle] = made
        self.used += nbytes
        return made

    def find(self, handle: int) -> Array:
        """Give an array; NotFound says whether it was freed, or lost with an earlier worker."""
        found = self._held.get(handle)
        if found is not None:
            return found
        if handle < self.first and self.lost:
            raise NotFound(f"array {handle} was lost when its worker ended ({self.lost}); make it")
        raise NotFound(f"no array {handle} in this session; it was freed, or never made")

    def part(self, handle: int, offset: int, nbytes: int) -> memoryview:
        """Give bytes [offset, offset + nbytes) of an array; InvalidArgument outside of it."""
        array = self.find(handle)
        if offset < 0 or nbytes < 0 or offset + nbytes > array.nbytes:
            raise InvalidArgument(
                f"bytes {offset} to {offset + nbytes} are outside array {handle} "
                f"of {array.nbytes} bytes"
            )
        return array.view[offset : offset + nbytes]

    def free(self, handle: int) -> None:
        """Drop an array; one that is gone already is no error."""
        array = self._held.pop(handle, None)
        if array is not None:
            self.used -= array.nbytes
            array.close()

    def _full(self, nbytes: int) -> OutOfMemory:
        return OutOfMemory(
            f"no memory for an array of {nbytes} bytes ({self.used} of {self.limit} bytes used)",
            {"limit_bytes": self.limit, "last_call": f"alloc of {nbytes} bytes"},
        )
