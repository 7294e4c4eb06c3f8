"""Who waits for a device: in order of priority, then of arrival."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from typing import Final

from farbench_tracker.device import Peer
from farbench_tracker.pools import Pools, Rank


@dataclass(slots=True)
class Waiter:
    """A request that is not served yet; `order` counts arrivals and is kept when it waits again."""

    request: str
    requirement: str
    user: str
    priority: int
    order: int
    arrived_s: float
    deadline_s: float
    session_timeout_s: float
    peer: Peer
    told: tuple[int, str] | None = None  # the place and reason that its client knows

    @property
    def rank(self) -> Rank:
        """Give its place in the order of service."""
        return (-self.priority, self.order, self.request)


class Queue:
    """The waiting requests; each stands in the pool of its requirement as well."""

    def __init__(self, pools: Pools) -> None:
        self.waiters: Final[dict[str, Waiter]] = {}
        self._pools: Final = pools
        self._ranks: Final[list[Rank]] = []
        self._of_peer: Final[dict[Peer, set[str]]] = {}
        self.changed: Final[set[str]] = set()  # requests of which the journal is to hear

    def __repr__(self) -> str:
        return f"Queue({', '.join(rank[2] for rank in self._ranks)})"

    def __len__(self) -> int:
        return len(self._ranks)

    def add(self, waiter: Waiter) -> None:
        """Queue a request by its rank."""
        self.waiters[waiter.request] = waiter
        self.changed.add(waiter.request)
        insort(self._ranks, waiter.rank)
        self._of_peer.setdefault(waiter.peer, set()).add(waiter.request)
        self._pools.add_waiter(self._pools.get(waiter.requirement), waiter.rank)

    def remove(self, request: str) -> Waiter:
        """Take a request out."""
        waiter = self.waiters.pop(request)
        self.changed.add(request)
        del self._ranks[bisect_left(self._ranks, waiter.rank)]
        self._pools.get(waiter.requirement).drop_waiter(waiter.rank)
        self._leave_peer(waiter)
        return waiter

    def of_peer(self, peer: Peer) -> list[str]:
        """Give the requests that wait behind a connection, in order of their names."""
        return sorted(self._of_peer.get(peer, ()))

    def rebind(self, waiter: Waiter, peer: Peer) -> None:
        """Let a request wait behind another connection."""
        self._leave_peer(waiter)
        waiter.peer = peer
        self._of_peer.setdefault(peer, set()).add(waiter.request)

    def after(self, rank: Rank | None) -> list[Waiter]:
        """Give the waiters behind a rank in the order of service; None: all."""
        start = 0 if rank is None else bisect_right(self._ranks, rank)
        return [self.waiters[request] for _, _, request in self._ranks[start:]]

    def _leave_peer(self, waiter: Waiter) -> None:
        known = self._of_peer.get(waiter.peer, set())
        known.discard(waiter.request)
        if not known:
            self._of_peer.pop(waiter.peer, None)
