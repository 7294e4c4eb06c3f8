"""Pools of threads by size: the usual one, and another that calls may ask for."""

from __future__ import annotations

from collections.abc import Sequence

from farbench_device_runtime.library import Context, Runtime
from farbench_rpc.errors import InvalidArgument
from farbench_rpc.limits import MAX_THREADS


class Pools:
    """The pools of one process, all of one runtime and on the same cores.

    Besides the usual one the last other size is kept; a pool ends when no call has it any more.
    """

    def __init__(self, runtime: Runtime, threads: int, cores: Sequence[int] = ()) -> None:
        self.runtime = runtime
        self.usual = runtime.context(threads, cores)
        self._cores = tuple(cores)
        self._other: Context | None = None

    def of(self, threads: int) -> Context:
        """Give the pool of so many threads, 0 for the usual one; InvalidArgument beyond the cap."""
        if threads in (0, self.usual.threads):
            return self.usual
        if not 0 < threads <= MAX_THREADS:
            raise InvalidArgument(f"a pool has 1 to {MAX_THREADS} threads, not {threads}")
        if self._other is None or self._other.threads != threads:
            self._other = self.runtime.context(threads, self._cores)
        return self._other
