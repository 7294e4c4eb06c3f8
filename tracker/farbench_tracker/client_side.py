"""What clients ask, and what follows from it."""

from __future__ import annotations

import math
from typing import Final

from farbench_rpc.errors import Cancelled, InvalidArgument, NoMatch, QuotaExceeded
from farbench_rpc.messages import (
    LeaseCancel,
    LeaseRelease,
    LeaseRenew,
    LeaseRenewed,
    LeaseRequest,
    Ok,
)
from farbench_tracker.decisions import Decision, Note, Reply, ToClient
from farbench_tracker.device import Peer
from farbench_tracker.errors import RequirementError
from farbench_tracker.fleet import Fleet
from farbench_tracker.leases import Lease
from farbench_tracker.pools import Pool
from farbench_tracker.queue import Waiter

MAX_TEXT: Final = 128
MAX_PRIORITY: Final = 1_000_000


def request(fleet: Fleet, now: float, peer: Peer, said: LeaseRequest) -> list[Decision]:
    """Queue a request for a device; a repeat of one hears what that one heard.

    Raises:
        InvalidArgument: the requirement cannot be read, or a number is out of range.
        QuotaExceeded: too many wait.
        NoMatch: no device that the tracker knows can satisfy it, with what comes nearest.
    """
    if _repeat(fleet, now, peer, said.request):
        return fleet.drain()
    _check(fleet, said)
    pool = pool_of(fleet, said.requirement)
    if not pool.members and now >= fleet.recovered_s:
        raise NoMatch(fleet.why_none(pool), {"requirement": pool.text})
    if len(fleet.queue) >= fleet.settings.max_waiting:
        limit = fleet.settings.max_waiting
        raise QuotaExceeded(f"{limit} requests wait already; try later", {"limit": limit})
    fleet.arrivals += 1
    waiter = Waiter(
        said.request,
        pool.text,
        said.user,
        said.priority,
        fleet.arrivals,
        now,
        now + said.wait_s,
        said.session_timeout_s,
        peer,
    )
    fleet.wait(now, waiter)
    return fleet.drain()


def renew(fleet: Fleet, now: float, peer: Peer, said: LeaseRenew) -> list[Decision]:
    """Keep leases alive, and tell which of them ended and why."""
    alive: list[str] = []
    ended: dict[str, str] = {}
    for id_ in said.leases:
        lease = fleet.leases.current.get(id_)
        if lease is not None:
            _renewed(fleet, now, peer, lease)
            alive.append(id_)
        elif id_ in fleet.leases.ended:
            ended[id_] = fleet.leases.ended[id_]
        elif now < fleet.recovered_s:
            fleet.claims[id_] = peer  # its device may be on its way back to this new tracker
            alive.append(id_)
        else:
            ended[id_] = "the tracker does not know this lease; it ended, or its device is lost"
    fleet.decide(Reply(LeaseRenewed(tuple(alive), ended)))
    return fleet.drain()


def release(fleet: Fleet, now: float, said: LeaseRelease) -> list[Decision]:
    """End a lease that its client is done with."""
    fleet.decide(Reply(Ok()))
    fleet.claims.pop(said.lease, None)
    lease = fleet.leases.current.get(said.lease)
    if lease is not None:
        fleet.end(now, lease, "released by its client", wanted=False)
    return fleet.drain()


def cancel(fleet: Fleet, now: float, said: LeaseCancel) -> list[Decision]:
    """Withdraw a request; a lease that it got in the meantime ends."""
    fleet.decide(Reply(Ok()))
    lease = fleet.leases.of_request(said.request)
    if fleet.remembered.pop(said.request, None) is not None:
        fleet.queue.changed.add(said.request)
    if said.request in fleet.queue.waiters:
        fleet.queue.remove(said.request)
        fleet.refuse(now, said.request, Cancelled("the request was withdrawn"))
    elif lease is not None:
        waits = lease.stage == "granting"
        fleet.end(now, lease, "withdrawn by its client", wanted=False)
        if waits:
            fleet.refuse(now, said.request, Cancelled("the request was withdrawn"))
    return fleet.drain()


def gone(fleet: Fleet, now: float, peer: Peer) -> list[Decision]:
    """Note that a client's connection is closed: what it waits for is moot, leases have the TTL."""
    for waiting in fleet.queue.of_peer(peer):
        fleet.queue.remove(waiting)
        fleet.decide(Note("waiter_left", reason="its connection is closed"))
    for lease in fleet.leases.granting_to(peer):
        fleet.end(now, lease, "the client is gone", wanted=False)
    return fleet.drain()


def pool_of(fleet: Fleet, text: str) -> Pool:
    """Give the pool of a requirement; InvalidArgument if it cannot be read."""
    try:
        return fleet.registry.pools.get(text)
    except RequirementError as error:
        raise InvalidArgument(str(error), {"position": error.position}) from error


def _repeat(fleet: Fleet, now: float, peer: Peer, request_id: str) -> bool:
    """Answer a request that was made before; its client may speak through a new connection."""
    remembered = fleet.remembered.pop(request_id, None)
    if remembered is not None:
        remembered.peer = peer
        fleet.wait(now, remembered)
        return True
    waiter = fleet.queue.waiters.get(request_id)
    if waiter is not None:
        fleet.queue.rebind(waiter, peer)
        waiter.told = None
        fleet.fresh.append(request_id)
        return True
    lease = fleet.leases.of_request(request_id)
    if lease is not None:
        lease.peer = lease.waiter.peer = peer
        if lease.answer is not None:
            fleet.decide(ToClient(request_id, lease.answer))
        return True
    known = fleet.answers.get(now, request_id)
    if known is not None:
        fleet.decide(ToClient(request_id, known))
    return known is not None


def _renewed(fleet: Fleet, now: float, peer: Peer, lease: Lease) -> None:
    lease.client_s, lease.peer = now, peer
    if lease.stage == "recovering":
        fleet.leases.confirm(lease)
        fleet.registry.move(fleet.registry.devices[lease.device], "leased")


def _check(fleet: Fleet, said: LeaseRequest) -> None:
    settings = fleet.settings
    if not 0 < len(said.request) <= MAX_TEXT or len(said.user) > MAX_TEXT:
        raise InvalidArgument(f"request has 1 to {MAX_TEXT} characters, user at most {MAX_TEXT}")
    if abs(said.priority) > MAX_PRIORITY:
        raise InvalidArgument(f"priority {said.priority} is beyond {MAX_PRIORITY}")
    _check_time("session_timeout", said.session_timeout_s, settings.max_session_s)
    _check_time("wait", said.wait_s, settings.max_wait_s, zero=True)


def _check_time(what: str, value_s: float, most_s: float, *, zero: bool = False) -> None:
    if math.isfinite(value_s) and value_s <= most_s and (value_s > 0 or (zero and value_s == 0)):
        return
    least = "from 0" if zero else "over 0 and"
    raise InvalidArgument(f"{what} of {value_s:g} s; it is {least} up to {most_s:g} s here")
