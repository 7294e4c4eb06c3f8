"""Between the fleet and its journal: what changed, and a fleet made of what was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farbench_tracker.device import Device
from farbench_tracker.fleet import Fleet
from farbench_tracker.leases import Lease
from farbench_tracker.queue import Waiter
from farbench_tracker.records import DeviceRecord, LeaseRecord, Records, WaiterRecord
from farbench_tracker.timers import Key

_RESTARTED = "the tracker was restarted; not heard of since"


@dataclass(frozen=True)
class Clocks:
    """One moment by both clocks: monotonic, by which the fleet lives, and the wall's."""

    monotonic_s: float
    wall_s: float

    def at(self, monotonic_s: float) -> float:
        """Give the wall's time of a monotonic one."""
        return self.wall_s + (monotonic_s - self.monotonic_s)

    def back(self, wall_s: float, least_s: float, most_s: float) -> float:
        """Give the monotonic time of a wall's, between two: the wall's clock may have jumped."""
        return min(max(self.monotonic_s + (wall_s - self.wall_s), least_s), most_s)


def take_changes(fleet: Fleet, clocks: Clocks) -> tuple[Records, list[tuple[str, str]]]:
    """Give what the journal must write and forget since it was asked last."""
    devices, leases, queue = fleet.registry.changed, fleet.leases.changed, fleet.queue.changed
    kept_devices = [d for id_ in devices if (d := fleet.registry.devices.get(id_)) is not None]
    # A lease is written once its device confirmed it; until then its request keeps its place.
    kept_leases = [
        x for id_ in leases if (x := fleet.leases.current.get(id_)) is not None
        and x.stage != "granting"
    ]  # fmt: skip
    kept_waiters = [w for request in queue if (w := _waiting(fleet, request)) is not None]
    records = Records(
        tuple(_device_record(d, clocks) for d in kept_devices),
        tuple(_lease_record(x, clocks) for x in kept_leases),
        tuple(_waiter_record(w, clocks) for w in kept_waiters),
    )
    gone = [("device", id_) for id_ in devices - {d.id for d in kept_devices}]
    gone += [("lease", id_) for id_ in leases - {x.id for x in kept_leases}]
    gone += [("waiter", request) for request in queue - {w.request for w in kept_waiters}]
    forget_changes(fleet)
    return records, gone


def forget_changes(fleet: Fleet) -> None:
    """Start anew to note what changes."""
    for changed in (fleet.registry.changed, fleet.leases.changed, fleet.queue.changed):
        changed.clear()


def mark_again(fleet: Fleet, records: Records, gone: Sequence[tuple[str, str]]) -> None:
    """Put changes back that could not be written, to be taken again."""
    marks = {"device": fleet.registry.changed, "lease": fleet.leases.changed,
             "waiter": fleet.queue.changed}  # fmt: skip
    marks["device"].update(d.id for d in records.devices)
    marks["lease"].update(x.id for x in records.leases)
    marks["waiter"].update(w.request for w in records.waiters)
    for table, id_ in gone:
        marks[table].add(id_)


def restore(fleet: Fleet, clocks: Clocks, kept: Records) -> None:
    """Give a new fleet what the one before it knew: devices are lost until they are heard.

    Leases are honoured for one TTL, in which both ends must renew; requests wait for their clients
    as long.
    """
    now, settings = clocks.monotonic_s, fleet.settings
    for record in kept.devices:
        seen_s = clocks.back(record.seen_at, now - settings.forget_s, now)
        device = Device(
            record.id, record.name, record.labels, record.facts, record.addresses, None, seen_s,
            epoch=record.epoch, reason=_RESTARTED, hold_s=now + settings.hold_s,
        )  # fmt: skip
        fleet.registry.add(device)
        fleet.timers.arm(Key("device", device.id), device.seen_s + settings.forget_s)
    for lease in kept.leases:
        _restore_lease(fleet, clocks, lease)
    for waiter in kept.waiters:
        fleet.remembered[waiter.request] = _waiter(fleet, clocks, waiter)
        fleet.arrivals = max(fleet.arrivals, waiter.place)


def _restore_lease(fleet: Fleet, clocks: Clocks, record: LeaseRecord) -> None:
    now, device = clocks.monotonic_s, fleet.registry.devices.get(record.device)
    if device is None or record.epoch < device.epoch:
        fleet.leases.changed.add(record.id)  # granted anew since: nobody may hold it
        return
    waiter = _waiter(fleet, clocks, record.waiter)
    hard_end_s = clocks.back(record.hard_end_at, now, now + waiter.session_timeout_s)
    lease = Lease(
        record.id, record.epoch, record.token, record.device, waiter, "recovering",
        clocks.back(record.granted_at, now - fleet.settings.max_session_s, now), now, now,
        hard_end_s,
    )  # fmt: skip
    fleet.leases.add(lease)
    lease.answer = fleet.answer(lease, 0.0)
    device.lease, device.holder = lease.id, waiter.user
    fleet.registry.move(device, "recovering", _RESTARTED)
    fleet.timers.arm(Key("lease", lease.id), lease.due_s(fleet.settings))


def _waiting(fleet: Fleet, request: str) -> Waiter | None:
    waiter = fleet.queue.waiters.get(request)
    if waiter is not None:
        return waiter
    lease = fleet.leases.of_request(request)
    return lease.waiter if lease is not None and lease.stage == "granting" else None


def _device_record(device: Device, clocks: Clocks) -> DeviceRecord:
    return DeviceRecord(
        device.id, device.name, device.labels, device.facts, device.addresses, device.epoch,
        clocks.at(device.seen_s),
    )  # fmt: skip


def _lease_record(lease: Lease, clocks: Clocks) -> LeaseRecord:
    return LeaseRecord(
        lease.id, lease.epoch, lease.token, lease.device, clocks.at(lease.granted_s),
        clocks.at(lease.hard_end_s), _waiter_record(lease.waiter, clocks),
    )  # fmt: skip


def _waiter_record(waiter: Waiter, clocks: Clocks) -> WaiterRecord:
    return WaiterRecord(
        waiter.request, waiter.requirement, waiter.user, waiter.priority, waiter.order,
        clocks.at(waiter.arrived_s), clocks.at(waiter.deadline_s), waiter.session_timeout_s,
    )  # fmt: skip


def _waiter(fleet: Fleet, clocks: Clocks, record: WaiterRecord) -> Waiter:
    now, longest_s = clocks.monotonic_s, fleet.settings.max_wait_s
    return Waiter(
        record.request, record.requirement, record.user, record.priority, record.place,
        clocks.back(record.arrived_at, now - longest_s, now),
        clocks.back(record.deadline_at, now, now + longest_s), record.session_timeout_s, None,
    )  # fmt: skip
