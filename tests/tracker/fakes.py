"""A fleet with a fake clock, and short ways to hand events in."""

from __future__ import annotations

import itertools
from typing import TypeVar

from farbench_rpc.messages import (
    Beat,
    ErrorReply,
    Grant,
    LeaseGranted,
    LeaseQueued,
    LeaseRequest,
    Register,
    Revoke,
)
from farbench_tracker import client_side, clock, device_side
from farbench_tracker.decisions import Decision, Reply, ToClient, ToDevice
from farbench_tracker.fleet import Fleet
from farbench_tracker.requirement import FactValue
from farbench_tracker.settings import Settings

T = TypeVar("T", LeaseGranted, LeaseQueued, ErrorReply)


def register(
    id_: str,
    *,
    name: str = "",
    labels: dict[str, str] | None = None,
    facts: dict[str, FactValue] | None = None,
    lease: str = "",
    epoch: int = 0,
    port: int = 7000,
    addresses: tuple[str, ...] = (),
) -> Register:
    """Make a registration."""
    return Register(
        id_, name or id_, dict(labels or {}), dict(facts or {}), port, addresses, epoch, lease
    )


def ask(
    request: str,
    requirement: str = "",
    *,
    priority: int = 1,
    wait_s: float = 60.0,
    session_timeout_s: float = 600.0,
    user: str = "ann",
) -> LeaseRequest:
    """Make a request."""
    return LeaseRequest(requirement, request, priority, session_timeout_s, wait_s, user)


class World:
    """A fleet, the time, and all that it decided so far."""

    def __init__(self, settings: Settings | None = None, *, recovered: bool = True) -> None:
        names = itertools.count()
        self.settings = settings or Settings()
        self.now = 1000.0
        self.fleet = Fleet(self.settings, self.now, lambda: f"L{next(names)}")
        if recovered:
            self.now += self.settings.ttl_s
            self.step(0.0)

    def step(self, seconds: float) -> list[Decision]:
        """Let time pass; give what it brings about."""
        self.now += seconds
        return clock.advance(self.fleet, self.now)

    def device(self, said: Register, peer: str = "") -> list[Decision]:
        """Register a device; its connection is named as its id unless told otherwise."""
        found = device_side.register(self.fleet, self.now, peer or said.id, "10.0.0.1", said)
        return found + self.step(0.0)

    def beat(self, id_: str, lease: str = "", epoch: int = 0) -> list[Decision]:
        """Give a sign of life."""
        return device_side.beat(self.fleet, self.now, id_, Beat(lease, epoch)) + self.step(0.0)

    def request(self, said: LeaseRequest, peer: str = "") -> list[Decision]:
        """Ask for a device."""
        found = client_side.request(self.fleet, self.now, peer or said.request, said)
        return found + self.step(0.0)

    def confirm(self, grant: Grant, id_: str) -> list[Decision]:
        """Let a device confirm."""
        found = device_side.confirmed(self.fleet, self.now, id_, grant.lease)
        return found + self.step(0.0)

    def lease(self, request: str, requirement: str = "") -> LeaseGranted:
        """Ask for a device and have it confirmed."""
        [(id_, grant)] = grants(self.request(ask(request, requirement)))
        [(_, granted)] = told(self.confirm(grant, id_), LeaseGranted)
        return granted

    def state(self, id_: str) -> str:
        """Give the state of a device."""
        return self.fleet.registry.devices[id_].state


def grants(decisions: list[Decision]) -> list[tuple[str, Grant]]:
    """Pick the grants, with the devices they go to."""
    found = [d for d in decisions if isinstance(d, ToDevice)]
    return [(d.device, d.message) for d in found if isinstance(d.message, Grant)]


def revokes(decisions: list[Decision]) -> list[tuple[str, Revoke]]:
    """Pick the revocations, with the devices they go to."""
    found = [d for d in decisions if isinstance(d, ToDevice)]
    return [(d.device, d.message) for d in found if isinstance(d.message, Revoke)]


def told(decisions: list[Decision], kind: type[T]) -> list[tuple[str, T]]:
    """Pick what clients are told of one kind, with their requests."""
    found = [d for d in decisions if isinstance(d, ToClient)]
    return [(d.request, d.message) for d in found if isinstance(d.message, kind)]


def reply(decisions: list[Decision]) -> object:
    """Give the answer to the event."""
    [found] = [d.message for d in decisions if isinstance(d, Reply)]
    return found
