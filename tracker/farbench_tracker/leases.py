"""Leases: who holds which device, until when, and how the last ones ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from farbench_rpc.messages import LeaseGranted
from farbench_tracker.device import Peer
from farbench_tracker.queue import Waiter
from farbench_tracker.settings import Settings

Stage = Literal["granting", "live", "recovering"]
MAX_ENDED: Final = 20_000


@dataclass(slots=True)
class Lease:
    """A device promised (granting), held (live), or held before the tracker started (recovering).

    Both ends renew: the earlier of their silences, or the hard end, ends it.
    """

    id: str
    epoch: int
    token: str
    device: str
    waiter: Waiter
    stage: Stage
    granted_s: float
    client_s: float  # when its client was last heard
    device_s: float  # when its device was last heard
    hard_end_s: float
    peer: Peer | None = None  # the client's connection
    answer: LeaseGranted | None = None  # what its client was told

    def due_s(self, settings: Settings) -> float:
        """Give the time at which it ends if nobody says a word."""
        if self.stage == "granting":
            return self.granted_s + settings.confirm_s
        heard_s = min(self.client_s, self.device_s)
        return min(heard_s + settings.ttl_s, self.hard_end_s)

    def why_due(self, settings: Settings) -> str:
        """Say why it ends at `due_s`."""
        if self.stage == "granting":
            return f"the device did not confirm within {settings.confirm_s:g} s"
        if self.hard_end_s <= min(self.client_s, self.device_s) + settings.ttl_s:
            return f"session_timeout of {self.waiter.session_timeout_s:g} s reached"
        if self.stage == "recovering":
            return "the tracker was restarted and no client asked for this lease"
        if self.device_s < self.client_s:
            return f"device lost: silent for {settings.ttl_s:g} s"
        return f"the client was silent for {settings.ttl_s:g} s"


class Leases:
    """The leases that are not over, and for a while why the others ended."""

    def __init__(self) -> None:
        self.current: Final[dict[str, Lease]] = {}
        self._granting: Final[dict[str, Lease]] = {}
        self.ended: Final[dict[str, str]] = {}  # oldest first
        self._of_request: Final[dict[str, Lease]] = {}
        self.changed: Final[set[str]] = set()  # ids of which the journal is to hear

    def __repr__(self) -> str:
        shown = ", ".join(f"{x.id} {x.stage} {x.device}@{x.epoch}" for x in self.current.values())
        return f"Leases({shown})"

    def add(self, lease: Lease) -> None:
        """Take in a lease."""
        self.current[lease.id] = lease
        self.changed.add(lease.id)
        if lease.stage == "granting":
            self._granting[lease.id] = lease
        if lease.waiter.request:
            self._of_request[lease.waiter.request] = lease

    def of_request(self, request: str) -> Lease | None:
        """Give the lease that serves a request."""
        return self._of_request.get(request)

    def confirm(self, lease: Lease) -> None:
        """Note that the device serves a lease."""
        lease.stage = "live"
        self.changed.add(lease.id)
        self._granting.pop(lease.id, None)

    def end(self, lease: Lease, reason: str) -> None:
        """Close a lease and remember why."""
        del self.current[lease.id]
        self.changed.add(lease.id)
        self._granting.pop(lease.id, None)
        self._of_request.pop(lease.waiter.request, None)
        self.ended[lease.id] = reason
        if len(self.ended) > MAX_ENDED:
            del self.ended[next(iter(self.ended))]

    def granting_to(self, peer: Peer) -> list[Lease]:
        """Give the leases whose grant is under way for a connection, in order of their ids."""
        found = (lease for lease in self._granting.values() if lease.peer == peer)
        return sorted(found, key=lambda lease: lease.id)
