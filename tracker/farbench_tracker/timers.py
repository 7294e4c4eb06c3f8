"""Deadlines of things whose real deadline moves: one heap entry each, checked when it is due."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final, NamedTuple


class Key(NamedTuple):
    """What a deadline belongs to, such as ("lease", its id)."""

    what: str
    id: str = ""


class Timers:
    """Remember the earliest time at which each key must be looked at.

    Renewals only move deadlines back. So a key stays where it is until its old time comes, is
    asked for its real deadline then, and put back: a renewal costs nothing here.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, Key]] = []
        self._armed: Final[dict[Key, float]] = {}

    def __repr__(self) -> str:
        return f"Timers({len(self._armed)} armed, next {self.next_s()})"

    def arm(self, key: Key, due_s: float) -> None:
        """Look at `key` at `due_s`, or earlier if it was armed so."""
        if due_s < self._armed.get(key, float("inf")):
            self._armed[key] = due_s
            heapq.heappush(self._heap, (due_s, key))

    def next_s(self) -> float | None:
        """Give the time of the next look; None if nothing is armed."""
        while self._heap and self._armed.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float, due_of: Callable[[Key], float | None]) -> list[Key]:
        """Take the keys whose real deadline (None: it has none any more) has come."""
        found: list[Key] = []
        while (next_s := self.next_s()) is not None and next_s <= now:
            key = heapq.heappop(self._heap)[1]
            del self._armed[key]
            due_s = due_of(key)
            if due_s is None:
                continue
            if due_s <= now:
                found.append(key)
            else:
                self.arm(key, due_s)
        return found
