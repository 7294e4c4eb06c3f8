"""Bytes cut in chunks: where each begins, which are held, which are missing. Pure.

held = HeldChunks(nbytes=5_000_000)
held.add(0)
held.missing()            # ((1, 5),): ranges [first, last) to ask for
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from farbench_rpc.limits import CHUNK, MAX_ITEMS


@dataclass(frozen=True)
class Chunks:
    """How `nbytes` bytes are cut in chunks of `chunk_bytes`; only the last may be shorter."""

    nbytes: int
    chunk_bytes: int = CHUNK

    def __post_init__(self) -> None:
        """Refuse sizes that make no sense."""
        if self.nbytes < 0 or self.chunk_bytes < 1:
            raise ValueError(f"{self.nbytes} bytes in chunks of {self.chunk_bytes}")

    @property
    def count(self) -> int:
        """Count the chunks."""
        return -(-self.nbytes // self.chunk_bytes)

    def span(self, index: int) -> tuple[int, int]:
        """Give [start, stop) in bytes of a chunk; IndexError if there is none such."""
        if not 0 <= index < self.count:
            raise IndexError(f"chunk {index} of {self.count}")
        start = index * self.chunk_bytes
        return start, min(start + self.chunk_bytes, self.nbytes)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Give [start, stop) of every chunk in order."""
        for start in range(0, self.nbytes, self.chunk_bytes):
            yield start, min(start + self.chunk_bytes, self.nbytes)


class HeldChunks:
    """Which chunks of some bytes have arrived, in any order, some of them twice."""

    def __init__(self, nbytes: int, chunk_bytes: int = CHUNK) -> None:
        self.cut = Chunks(nbytes, chunk_bytes)
        self._held = bytearray(-(-self.cut.count // 8))
        self._lacking = self.cut.count

    @property
    def complete(self) -> bool:
        """Tell whether every chunk is held."""
        return self._lacking == 0

    @property
    def nbytes(self) -> int:
        """Count the bytes held, a shorter last chunk as a whole one until all are held."""
        held = (self.cut.count - self._lacking) * self.cut.chunk_bytes
        return min(held, self.cut.nbytes)

    def __contains__(self, index: int) -> bool:
        """Tell whether a chunk is held."""
        return bool(self._held[index >> 3] & (1 << (index & 7)))

    def __repr__(self) -> str:
        """Show how much is held and the ranges that are missing."""
        held = self.cut.count - self._lacking
        return f"HeldChunks({held}/{self.cut.count}, missing={self.missing(8)})"

    def add(self, index: int) -> bool:
        """Note that a chunk is held; False if it was before. IndexError if there is none such."""
        self.cut.span(index)
        if index in self:
            return False
        self._held[index >> 3] |= 1 << (index & 7)
        self._lacking -= 1
        return True

    def missing(self, most: int = MAX_ITEMS) -> tuple[tuple[int, int], ...]:
        """Give the first `most` ranges [first, last) of chunks that are missing, in order."""
        ranges: list[tuple[int, int]] = []
        first = -1
        for index in range(self.cut.count if self._lacking else 0):
            if index in self:
                if first >= 0:
                    ranges.append((first, index))
                    first = -1
                    if len(ranges) == most:
                        return tuple(ranges)
            elif first < 0:
                first = index
        if first >= 0:
            ranges.append((first, self.cut.count))
        return tuple(ranges)
