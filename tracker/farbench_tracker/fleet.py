"""The state of the fleet and its transitions: pure, so that every race can be played in a test.

Events come in through `device_side`, `client_side` and `clock`; each hands back the decisions it
led to. Nothing here reads a clock, a socket or a random number: `now` is an argument (seconds of a
monotonic clock) and ids come from `make_id`.

    free -> granting -> leased -> recovering -> free        a device; from each state -> lost
    waiting -> granting -> live -> ended                    a request and its lease

A device is granted only while it is free, and it becomes free only by a proof that it is idle, or
by a claim to be idle after it has been out of touch long enough to have ended its session itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from farbench_rpc.errors import RpcError
from farbench_rpc.messages import ErrorReply, Grant, LeaseGranted, Revoke
from farbench_tracker.answers import Answers
from farbench_tracker.decisions import Decision, Note, ToClient, ToDevice
from farbench_tracker.device import Device, Peer
from farbench_tracker.explain import explain
from farbench_tracker.leases import Lease, Leases
from farbench_tracker.pools import Pool
from farbench_tracker.queue import Queue, Waiter
from farbench_tracker.registry import Registry
from farbench_tracker.settings import Settings
from farbench_tracker.timers import Key, Timers

_EXPLAINED: Final = 256


class Fleet:
    """Devices, queue and leases of one tracker."""

    def __init__(self, settings: Settings, now: float, make_id: Callable[[], str]) -> None:
        self.settings: Final = settings
        self.registry: Final = Registry()
        self.queue: Final = Queue(self.registry.pools)
        self.leases: Final = Leases()
        self.timers: Final = Timers()
        self.answers: Final = Answers(settings.answer_s)
        # Leases of a tracker that ran before this one are honoured until then.
        self.recovered_s: Final = now + settings.ttl_s
        self.claims: Final[dict[str, Peer]] = {}
        # Requests that waited at the tracker before this one; their clients come back for them.
        self.remembered: Final[dict[str, Waiter]] = {}
        self.fresh: Final[list[str]] = []  # requests that were not told their place yet
        self.arrivals = 0
        self._make_id: Final = make_id
        self._out: list[Decision] = []
        self._explained: Final[dict[str, tuple[int, str]]] = {}
        self.timers.arm(Key("recovery"), self.recovered_s)

    def __repr__(self) -> str:
        return f"Fleet({self.registry}, {self.queue}, {self.leases})"

    # --- decisions ------------------------------------------------------------------------------

    def decide(self, *decisions: Decision) -> None:
        """Add decisions of the event in hand."""
        self._out.extend(decisions)

    def drain(self) -> list[Decision]:
        """Take the decisions of the event in hand."""
        taken, self._out = self._out, []
        return taken

    # --- devices --------------------------------------------------------------------------------

    def free(self, device: Device) -> None:
        """Offer a device that is proven idle."""
        device.revoking, device.says_idle, device.refused = "", False, False
        self.registry.move(device, "free")
        self.timers.arm(Key("device", device.id), device.seen_s + self.settings.lost_s)

    def lose(self, device: Device, reason: str) -> None:
        """Note that a device is out of touch; it stays listed and may come back."""
        self.registry.move(device, "lost", reason)
        self.timers.arm(Key("device", device.id), device.seen_s + self.settings.forget_s)
        self.decide(Note("device_lost", device.id, reason=reason))

    def revoke(self, device: Device, lease: str, epoch: int, reason: str) -> None:
        """Tell a device to end a lease; it is not granted before it is known to be idle."""
        device.revoking, device.says_idle = lease, False
        self.registry.move(device, "recovering", reason)
        self.timers.arm(Key("device", device.id), device.seen_s + self.settings.lost_s)
        self.decide(ToDevice(device.id, Revoke(lease, epoch, reason)))

    # --- leases ---------------------------------------------------------------------------------

    def grant(self, now: float, waiter: Waiter, device: Device) -> None:
        """Promise a free device to a waiter; its epoch grows."""
        self.queue.remove(waiter.request)
        device.epoch += 1
        self.registry.changed.add(device.id)
        lease = Lease(
            id=self._make_id(),
            epoch=device.epoch,
            token=self._make_id(),
            device=device.id,
            waiter=waiter,
            stage="granting",
            granted_s=now,
            client_s=now,
            device_s=now,
            hard_end_s=now + waiter.session_timeout_s,
            peer=waiter.peer,
        )
        self.leases.add(lease)
        device.lease, device.holder = lease.id, waiter.user
        self.registry.move(device, "granting")
        self.timers.arm(Key("lease", lease.id), lease.due_s(self.settings))
        settings = self.settings
        told = Grant(
            lease.id,
            lease.epoch,
            lease.token,
            settings.ttl_s,
            waiter.session_timeout_s,
            waiter.user,
        )
        self.decide(ToDevice(device.id, told))

    def go_live(self, now: float, lease: Lease) -> None:
        """Hand a confirmed lease to its client."""
        device, waiter = self.registry.devices[lease.device], lease.waiter
        self.leases.confirm(lease)
        self.queue.changed.add(waiter.request)  # the journal kept its place until now
        lease.client_s = lease.device_s = now
        lease.hard_end_s = now + waiter.session_timeout_s
        self.registry.move(device, "leased")
        self.timers.arm(Key("lease", lease.id), lease.due_s(self.settings))
        lease.answer = self.answer(lease, now - waiter.arrived_s)
        self.decide(
            ToClient(waiter.request, lease.answer),
            Note("lease_granted", device.id, lease.id, who=waiter.user),
        )

    def answer(self, lease: Lease, waited_s: float) -> LeaseGranted:
        """Say what the client of a lease needs to know."""
        device, settings = self.registry.devices[lease.device], self.settings
        return LeaseGranted(
            lease.id, lease.epoch, lease.token, device.info(), settings.ttl_s, settings.renew_s,
            waited_s,
        )  # fmt: skip

    def end(
        self, now: float, lease: Lease, reason: str, *, idle: bool = False, wanted: bool = True
    ) -> None:
        """End a lease; `idle`: its device is done with it, `wanted`: an unmet request waits on."""
        device, waiter = self.registry.devices[lease.device], lease.waiter
        met = lease.stage != "granting"
        self.leases.end(lease, reason)
        device.lease = device.holder = ""
        device.used_s = now
        # A grant under way may reach the device at any later time, but then no client holds its
        # token. Its clock counts from the last renewal that it heard of, at the latest.
        device.hold_s = (lease.device_s if met else now) + self.settings.hold_s
        if idle:
            self.free(device)
        elif device.peer is None:
            self.lose(device, "its connection is closed")
        else:
            self.revoke(device, lease.id, lease.epoch, reason)
        self.decide(Note("lease_ended", device.id, lease.id, reason))
        if met and waiter.request:
            lost = ErrorReply("lease_lost", reason, {"reason": reason, "epoch": lease.epoch})
            self.answers.keep(now, waiter.request, lost)
        elif not met and wanted:
            self.wait(now, waiter)

    # --- requests -------------------------------------------------------------------------------

    def wait(self, now: float, waiter: Waiter) -> None:
        """Queue a request, anew or again at its old place."""
        self.queue.add(waiter)
        self.fresh.append(waiter.request)
        if waiter.deadline_s > now:
            self.timers.arm(Key("wait", waiter.request), waiter.deadline_s)

    def refuse(self, now: float, request: str, error: RpcError) -> None:
        """Give a request up, and tell why."""
        answer = ErrorReply(error.code, error.message, dict(error.detail))
        self.answers.keep(now, request, answer)
        self.decide(ToClient(request, answer), Note("refused", reason=error.message))

    def why_none(self, pool: Pool) -> str:
        """Say why no device fits a requirement."""
        version = self.registry.pools.version
        known, text = self._explained.get(pool.text, (-1, ""))
        if known != version:
            text = explain(pool.requirement, self.registry.devices.values()).text
            if len(self._explained) >= _EXPLAINED:
                self._explained.clear()
            self._explained[pool.text] = (version, text)
        return text
