"""A pool: the devices that one requirement fits, the free ones in order, and who waits for them.

Requirements repeat (a fleet knows some tens of them), so each text is matched against a device
once, when either is new. After that a change of state costs one step in each pool of the device.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping
from typing import Final

from farbench_tracker.device import Device, State
from farbench_tracker.requirement import Requirement, parse

IDLE_POOLS: Final = 256  # pools without waiters that are kept for the next request
_EXACT_OVERLAPS: Final = 64  # beyond so many pools with waiters, positions are upper bounds

# Order of a waiter: higher priority first, then earlier arrival.
Rank = tuple[int, int, str]


class Pool:
    """The members of one requirement; `waiting` is sorted, the head is served first."""

    def __init__(self, requirement: Requirement) -> None:
        self.requirement: Final = requirement
        self.text: Final = str(requirement)
        self.members: Final[set[str]] = set()
        self.states: Final[Counter[State]] = Counter()
        self.waiting: Final[list[Rank]] = []
        self._free: list[tuple[float, str]] = []  # (used_s, id); entries may be stale

    def __repr__(self) -> str:
        return f"Pool({self.text!r}, {dict(self.states)}, {len(self.waiting)} waiting)"

    @property
    def offers(self) -> int:
        """Count what is remembered of free devices, stale entries included."""
        return len(self._free)

    def put_free(self, device: Device, devices: Mapping[str, Device]) -> None:
        """Offer a free device."""
        heapq.heappush(self._free, (device.used_s, device.id))
        # In a pool that nobody asks from, offers are never taken out.
        if len(self._free) > 2 * len(self.members) + 64:
            self._rebuild(devices)

    def first_free(self, devices: Mapping[str, Device]) -> Device | None:
        """Give the member that is free and longest unused; equals by id."""
        while self._free:
            used_s, id_ = self._free[0]
            device = devices.get(id_)
            if device is not None and self._is_offer(device, used_s):
                return device
            heapq.heappop(self._free)
        return None

    def add_waiter(self, rank: Rank) -> None:
        """Queue a waiter in order."""
        insort(self.waiting, rank)

    def drop_waiter(self, rank: Rank) -> None:
        """Take a waiter out of the queue."""
        del self.waiting[bisect_left(self.waiting, rank)]

    def ahead_of(self, rank: Rank) -> int:
        """Count the waiters of this pool that are served before `rank`."""
        return bisect_left(self.waiting, rank)

    def reason(self) -> str:
        """Say why the head of the queue is not served."""
        if not self.members:
            return "no device matches yet"
        states = ", ".join(f"{n} {state}" for state, n in sorted(self.states.items()) if n)
        known = "1 device matches" if len(self.members) == 1 else f"{len(self.members)} match"
        return f"{known}: {states}"

    def _is_offer(self, device: Device, used_s: float) -> bool:
        return device.state == "free" and device.used_s == used_s and device.id in self.members

    def _rebuild(self, devices: Mapping[str, Device]) -> None:
        kept = {entry for entry in self._free if entry[1] in devices}
        self._free = [e for e in kept if self._is_offer(devices[e[1]], e[0])]
        heapq.heapify(self._free)


class Pools:
    """Every pool in use, by the text of its requirement."""

    def __init__(self, devices: Mapping[str, Device]) -> None:
        self.version = 0  # grows when a device comes, goes, or describes itself anew
        self._devices: Final = devices
        self._of_device: Final[dict[str, dict[str, Pool]]] = {}
        self._by_text: Final[dict[str, Pool]] = {}  # in the order of last use
        self._ready: Final[dict[str, Pool]] = {}  # may have both a waiter and a free device
        self._overlaps: Final[dict[tuple[str, str], bool]] = {}

    def __repr__(self) -> str:
        return f"Pools({list(self._by_text.values())})"

    def get(self, text: str) -> Pool:
        """Give the pool of a requirement, made when it is new.

        Raises:
            RequirementError: the text is not a requirement.
        """
        pool = self._by_text.pop(text, None)
        if pool is None:
            requirement = parse(text)
            pool = self._by_text.pop(str(requirement), None) or self._make(requirement)
        self._by_text[pool.text] = pool
        self._evict()
        return pool

    def join(self, device: Device) -> None:
        """Put a device into every pool whose requirement it fits."""
        self._changed()
        for pool in self._by_text.values():
            self._enter(pool, device)

    def leave(self, device: Device) -> None:
        """Take a device out of its pools."""
        self._changed()
        for pool in self._of_device.pop(device.id, {}).values():
            pool.members.discard(device.id)
            pool.states[device.state] -= 1

    def moved(self, device: Device, old: State) -> None:
        """Note that the state of a device changed."""
        for pool in self._of_device.get(device.id, {}).values():
            pool.states[old] -= 1
            pool.states[device.state] += 1
            if device.state == "free":
                pool.put_free(device, self._devices)
                self._ready[pool.text] = pool

    def add_waiter(self, pool: Pool, rank: Rank) -> None:
        """Queue a waiter at its pool."""
        pool.add_waiter(rank)
        self._ready[pool.text] = pool

    def take_ready(self) -> list[Pool]:
        """Give the pools that may have work, and forget that they do."""
        found = [pool for pool in self._ready.values() if pool.waiting]
        self._ready.clear()
        return found

    def with_waiters(self) -> list[Pool]:
        """Give the pools at which somebody waits."""
        return [pool for pool in self._by_text.values() if pool.waiting]

    def position(self, pool: Pool, rank: Rank, waited: list[Pool]) -> int:
        """Count those ahead of a waiter that want a device which it could use, too.

        `waited` are the pools with waiters; among many of them this is an upper bound.
        """
        exact = len(waited) <= _EXACT_OVERLAPS
        rivals = (p for p in waited if p is pool or not exact or self._overlap(p, pool))
        return sum(rival.ahead_of(rank) for rival in rivals)

    def _changed(self) -> None:
        self.version += 1
        self._overlaps.clear()

    def _overlap(self, one: Pool, other: Pool) -> bool:
        key = (one.text, other.text) if one.text < other.text else (other.text, one.text)
        known = self._overlaps.get(key)
        if known is None:
            known = self._overlaps[key] = not one.members.isdisjoint(other.members)
        return known

    def _make(self, requirement: Requirement) -> Pool:
        pool = Pool(requirement)
        pinned = requirement.pinned("id")
        candidates = self._devices if pinned is None else {pinned} & self._devices.keys()
        for id_ in candidates:
            self._enter(pool, self._devices[id_])
        return pool

    def _enter(self, pool: Pool, device: Device) -> None:
        if not pool.requirement.matches(device):
            return
        pool.members.add(device.id)
        pool.states[device.state] += 1
        self._of_device.setdefault(device.id, {})[pool.text] = pool
        if device.state == "free":
            pool.put_free(device, self._devices)
            self._ready[pool.text] = pool

    def _evict(self) -> None:
        """Drop the pool that was not asked for longest, unless somebody waits there."""
        if len(self._by_text) <= IDLE_POOLS:
            return
        old = next((p for p in self._by_text.values() if not p.waiting), None)
        if old is None or old is next(reversed(self._by_text.values())):
            return
        del self._by_text[old.text]
        self._ready.pop(old.text, None)
        self._overlaps.clear()
        for id_ in old.members:
            del self._of_device[id_][old.text]
