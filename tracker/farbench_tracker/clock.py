"""What time brings about: ends of leases, lost devices, grants to those who wait, and news of it.

The service hands in events as they come, then calls `advance` once. So requests and devices that
came together are matched together, and the order among them does not matter.
"""

from __future__ import annotations

import heapq

from farbench_rpc.errors import Busy, NoMatch
from farbench_rpc.messages import LeaseQueued
from farbench_tracker.decisions import Decision, Note, ToClient
from farbench_tracker.device import Device
from farbench_tracker.fleet import Fleet
from farbench_tracker.pools import Pool
from farbench_tracker.queue import Waiter
from farbench_tracker.timers import Key

_TELL = Key("tell")


def advance(fleet: Fleet, now: float) -> list[Decision]:
    """Do all that is due, serve who can be served, and tell those who wait."""
    overdue: list[str] = []
    tell = False
    # What is due may make other things due, such as a device that was silent all through a lease.
    while keys := fleet.timers.pop_due(now, lambda key: _due_s(fleet, key)):
        overdue += [key.id for key in keys if key.what == "wait"]
        tell = tell or _TELL in keys
        for key in keys:
            _bring_about(fleet, now, key)
    # A request whose grant was not confirmed is tried elsewhere, though its time may be up; but
    # not again and again while a rack of devices has lost power.
    _give_up_due(fleet, now - fleet.settings.confirm_s, now, fleet.fresh)
    _serve(fleet, now)
    _give_up_due(fleet, now, now, [*overdue, *fleet.fresh])
    _tell(fleet, now, everybody=tell)
    return fleet.drain()


def _bring_about(fleet: Fleet, now: float, key: Key) -> None:
    match key.what:
        case "lease":
            lease = fleet.leases.current[key.id]
            fleet.end(now, lease, lease.why_due(fleet.settings))
        case "device":
            _device_due(fleet, now, fleet.registry.devices[key.id])
        case "recovery":
            _recovered(fleet, now)
        case _:
            pass  # waits and news come after the grants


def next_due_s(fleet: Fleet) -> float | None:
    """Give the time at which `advance` must be called again; None if nothing is due."""
    return fleet.timers.next_s()


def _due_s(fleet: Fleet, key: Key) -> float | None:
    match key.what:
        case "lease":
            lease = fleet.leases.current.get(key.id)
            return None if lease is None else lease.due_s(fleet.settings)
        case "device":
            device = fleet.registry.devices.get(key.id)
            return None if device is None else _device_due_s(fleet, device)
        case "wait":
            waiter = fleet.queue.waiters.get(key.id)
            return None if waiter is None else waiter.deadline_s
        case _:
            return 0.0  # these never move


def _device_due_s(fleet: Fleet, device: Device) -> float | None:
    if device.lease:
        return None  # the lease keeps the time
    if device.state == "lost":
        return device.seen_s + fleet.settings.forget_s
    lost_s = device.seen_s + fleet.settings.lost_s
    return min(lost_s, device.hold_s) if device.says_idle else lost_s


def _device_due(fleet: Fleet, now: float, device: Device) -> None:
    if device.state == "lost":
        fleet.registry.forget(device)
        fleet.decide(Note("device_forgotten", device.id))
    elif device.seen_s + fleet.settings.lost_s <= now:
        fleet.lose(device, f"silent for {fleet.settings.lost_s:g} s")
    else:
        fleet.free(device)  # it says that it is idle, and has had the time to become so


def _recovered(fleet: Fleet, now: float) -> None:
    """End the patience of a new tracker: devices that exist have had the time to come back."""
    fleet.claims.clear()
    for request in fleet.remembered:
        fleet.queue.changed.add(request)
        fleet.decide(Note("waiter_left", reason="its client did not come back"))
    fleet.remembered.clear()
    for waiter in fleet.queue.after(None):
        pool = fleet.registry.pools.get(waiter.requirement)
        if not pool.members:
            fleet.queue.remove(waiter.request)
            fleet.refuse(now, waiter.request, _no_match(fleet, pool))


def _serve(fleet: Fleet, now: float) -> None:
    """Grant free devices, best rank first; only pools in which something changed are looked at."""
    devices = fleet.registry.devices
    heads = [(pool.waiting[0], pool.text, pool) for pool in fleet.registry.pools.take_ready()]
    heapq.heapify(heads)
    while heads:
        rank, text, pool = heapq.heappop(heads)
        device = pool.first_free(devices)
        if device is None:
            continue
        fleet.grant(now, fleet.queue.waiters[rank[2]], device)
        if pool.waiting:
            heapq.heappush(heads, (pool.waiting[0], text, pool))


def _give_up_due(fleet: Fleet, until_s: float, now: float, requests: list[str]) -> None:
    """Give up those of the requests that wait for nothing after `until_s`."""
    for request in requests:
        waiter = fleet.queue.waiters.get(request)
        if waiter is not None and waiter.deadline_s <= until_s:
            _give_up(fleet, now, waiter)


def _give_up(fleet: Fleet, now: float, waiter: Waiter) -> None:
    pool = fleet.registry.pools.get(waiter.requirement)
    fleet.queue.remove(waiter.request)
    waited_s = now - waiter.arrived_s
    if not pool.members:
        fleet.refuse(now, waiter.request, _no_match(fleet, pool))
        return
    text = (
        f"no device came free within {waiter.deadline_s - waiter.arrived_s:g} s for "
        f"{pool.text or 'any device'} ({pool.reason()}); wait longer or see `farbench queue`"
    )
    fleet.refuse(now, waiter.request, Busy(text, {"waited_s": waited_s}))


def _no_match(fleet: Fleet, pool: Pool) -> NoMatch:
    return NoMatch(fleet.why_none(pool), {"requirement": pool.text})


def _tell(fleet: Fleet, now: float, *, everybody: bool) -> None:
    """Tell waiters their place: new ones at once, all when it is time and theirs has changed."""
    waiters = fleet.queue.waiters
    listed = list(waiters) if everybody else [r for r in fleet.fresh if r in waiters]
    fleet.fresh.clear()
    pools = fleet.registry.pools
    waited = pools.with_waiters() if listed else []
    for request in listed:
        waiter = waiters[request]
        pool = pools.get(waiter.requirement)
        told = (pools.position(pool, waiter.rank, waited), pool.reason())
        if told != waiter.told:
            waiter.told = told
            fleet.decide(ToClient(request, LeaseQueued(*told)))
    if waiters:
        fleet.timers.arm(_TELL, now + fleet.settings.tell_s)
