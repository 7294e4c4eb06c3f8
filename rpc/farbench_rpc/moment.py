"""A moment's look for an answer that comes soon, instead of a sleep.

To sleep and be woken costs some 50 us, as much as all else in a short call. So where the answer
before came at once, the next is looked for without sleeping, for a bounded moment; where answers
take long, or there is one processor alone, nobody looks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

_PROCESSORS = os.cpu_count() or 1
_give_way: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


class Moment:
    """Knows from the last wait whether a look of `look_s` seconds is worth while."""

    def __init__(self, look_s: float) -> None:
        self._look_s = look_s
        self._brisk = False

    def brings(self, ready: Callable[[], bool], at_most_s: float) -> bool:
        """Look until `ready`, giving way to others; False: sleep as usual, then say `waited`."""
        if not self._brisk:
            return False
        until = time.perf_counter() + min(self._look_s, at_most_s)
        while time.perf_counter() < until:
            if ready():
                return True
            _give_way()
        return False

    def waited(self, seconds: float) -> None:
        """Note how long an answer took, to decide about the next."""
        self._brisk = _PROCESSORS > 1 and seconds < 2 * self._look_s
