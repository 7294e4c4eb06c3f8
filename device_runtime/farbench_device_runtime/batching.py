"""How many calls make a sample: decided by a few timed batches, always finite.

Pure but for the timed batch it is given, so that a test can feed it any clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

TICKS = 1000
"""A sample lasts so many steps of the timer at least."""

_OVERHEADS = 200
_LEAST_SAMPLES = 5
_SURE = 10


@dataclass(frozen=True)
class Timer:
    """What a timer can tell apart: resolution and cost of a reading, both in ns."""

    resolution_ns: int
    overhead_ns: int

    def shortest_ns(self, min_sample_s: float) -> int:
        """Give the least time a sample must last (ns)."""
        asked = int(min_sample_s * 1e9)
        return max(asked, TICKS * self.resolution_ns, _OVERHEADS * self.overhead_ns, 1)


@dataclass(frozen=True)
class Batch:
    """Calls in a sample (`k`), and what finding it cost: calls and the last batch's time (ns)."""

    k: int
    warmup_calls: int
    last_ns: int
    short: bool = False


def most_calls(number: int, repeat: int, max_calls: int) -> int:
    """Cap the calls of one sample, so that all samples stay within `max_calls`."""
    return max(1, min(max_calls, max(number, max_calls // max(1, min(repeat, _LEAST_SAMPLES)))))


def find_batch(
    sample: Callable[[int], int],
    number: int,
    repeat: int,
    shortest_ns: int,
    max_calls: int,
    budget_ns: int,
) -> Batch:
    """Raise `number` until a sample lasts `shortest_ns`, within the caps.

    Tenfold while a batch is under a tenth of what it must last, then once to 1.2 times of what is
    needed. `sample(k)` gives the time of k calls in ns. A batch that is barely long enough is timed
    again, since one that was interrupted looks longer than it is. A batch that the caps keep short
    is marked.
    """
    top = most_calls(number, repeat, max_calls)
    k = min(number, top)
    spent = calls = 0
    while True:
        elapsed = sample(k)
        calls += k
        spent += elapsed
        if shortest_ns <= elapsed < _SURE * shortest_ns:
            again = sample(k)
            calls += k
            spent += again
            elapsed = min(elapsed, again)
        if elapsed >= shortest_ns:
            return Batch(k, calls, elapsed)
        per_call = max(elapsed / k, 1e-3)
        # The samples themselves must fit the budget: five of them, or as many as are wanted.
        left = max(0, budget_ns - spent) / max(1, min(repeat, _LEAST_SAMPLES))
        cap = max(number, min(top, int(left / per_call)))
        if elapsed < shortest_ns / 10:
            wanted = k * 10
        else:
            wanted = math.ceil(1.2 * k * shortest_ns / elapsed)
        wanted = min(max(wanted, k + 1), cap)
        if wanted <= k:
            return Batch(k, calls, elapsed, short=True)
        k = wanted
