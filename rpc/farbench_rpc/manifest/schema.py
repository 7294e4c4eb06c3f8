"""What a compiled library says of itself: entries, arguments, target, needs.

The compiler writes it, the device reads it, the wire carries it. Shapes are tuples of `Dim`: an
int, the name of a size symbol, or an integer expression over symbols
and integer parameters ("n + 1", "n // 2 * 3").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

VERSION: tuple[int, int] = (1, 0)
ABI_VERSION = 1
SYMBOL = "farbench_manifest"
MAGIC = b"FBMANIF1"

Dim = int | str
EntryKind = Literal["function"]


@dataclass(frozen=True)
class TensorArg:
    """An array argument: row-major, contiguous, `alignment` bytes at least."""

    name: str
    dtype: str
    shape: tuple[Dim, ...]
    alignment: int
    writable: bool


@dataclass(frozen=True)
class ScalarArg:
    """A number argument, passed in an 8-byte slot."""

    name: str
    dtype: str


@dataclass(frozen=True)
class Entry:
    """One callable of the library.

    Calling convention: `int32 symbol(fb_ctx *, void *const *buffers, const int64_t *scalars)`;
    buffers are the TensorArgs in order; scalars are `symbols` (each found from a shape), then the
    ScalarArgs in order that are not themselves symbols. A `debug` entry checks its indices,
    divisors and shifts, and fails with a text.
    """

    name: str
    symbol: str
    args: tuple[TensorArg | ScalarArg, ...]
    symbols: tuple[str, ...] = ()
    kind: EntryKind = "function"
    workspace_bytes: int = 0
    contracted: bool = True
    reassociated: bool = False
    fast_math: bool = False
    debug: bool = False


@dataclass(frozen=True)
class TargetFacts:
    """What the code needs of the machine that runs it."""

    triple: str
    arch: str
    cpu: str
    features: tuple[str, ...]
    device_kind: str = "cpu"


@dataclass(frozen=True)
class Blob:
    """A constant kept outside the library, by digest."""

    name: str
    sha256: str
    nbytes: int


@dataclass(frozen=True)
class Manifest:
    """The whole self-description; `digest` is the SHA-256 of the objects that were linked."""

    entries: tuple[Entry, ...]
    target: TargetFacts
    digest: str
    blobs: tuple[Blob, ...] = ()
    abi: int = ABI_VERSION
    version: tuple[int, int] = VERSION

    def entry(self, name: str) -> Entry:
        """Find an entry by name; KeyError lists those that exist."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        have = ", ".join(entry.name for entry in self.entries)
        raise KeyError(f"no entry {name!r}; the library has: {have}")
