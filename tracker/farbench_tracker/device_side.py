"""What devices say, and what follows from it."""

from __future__ import annotations

from typing import Final

from farbench_rpc.address import Address
from farbench_rpc.codec import encode
from farbench_rpc.errors import InvalidArgument, NotFound, QuotaExceeded, Refused
from farbench_rpc.messages import Beat, ErrorReply, LeaseEnded, Leave, Ok, Register, Registered
from farbench_tracker.decisions import Decision, Note, Reply
from farbench_tracker.device import Device, Peer
from farbench_tracker.fleet import Fleet
from farbench_tracker.leases import Lease
from farbench_tracker.queue import Waiter
from farbench_tracker.timers import Key

MAX_NAME: Final = 128
# A description must fit a page of a list and a grant, which hold more than the registration.
MAX_INFO: Final = 48 * 1024
_MAX_EPOCH: Final = 2**53


def register(fleet: Fleet, now: float, peer: Peer, host: str, said: Register) -> list[Decision]:
    """Take a device in, or back; `host` is where its connection comes from (empty: unknown).

    Raises:
        InvalidArgument: its id, name, port or epoch is out of range.
        QuotaExceeded: it describes itself at too great a length, or there are too many devices.
        Refused: another live device has its id.
    """
    _check(said)
    fresh = Device(
        said.id,
        said.name,
        dict(said.labels),
        dict(said.facts),
        _addresses(host, said),
        peer,
        seen_s=now,
        epoch=said.epoch,
    )
    if len(encode(fresh.info())) > MAX_INFO:
        raise QuotaExceeded(
            f"device {said.name!r} describes itself in more than {MAX_INFO} bytes; drop labels",
            {"limit": MAX_INFO},
        )
    device = fleet.registry.devices.get(said.id)
    if device is None:
        if len(fleet.registry.devices) >= fleet.settings.max_devices:
            limit = fleet.settings.max_devices
            raise QuotaExceeded(
                f"the tracker knows {limit} devices, its limit; raise max_devices", {"limit": limit}
            )
    else:
        _refuse_twin(device, peer)
    _leave_other(fleet, now, peer, said.id)
    if device is None:
        device = fresh
        fleet.registry.add(device)
    else:
        fleet.registry.update(device, fresh)
    settings = fleet.settings
    known = Registered(settings.beat_s, settings.renew_s, settings.ttl_s, device.epoch)
    fleet.decide(Reply(known), Note("device_registered", device.id, said.lease, who=device.name))
    _resume(fleet, now, device, said)
    return fleet.drain()


def beat(fleet: Fleet, now: float, peer: Peer, said: Beat) -> list[Decision]:
    """Note a sign of life; from a leased device it is a renewal.

    Raises:
        NotFound: the connection has not registered a device.
    """
    device = _device_of(fleet, peer)
    device.seen_s = now
    lease = fleet.leases.current.get(device.lease)
    if said.lease and (lease is None or lease.id != said.lease):
        reason = fleet.leases.ended.get(said.lease, "the tracker does not know this lease")
        fleet.decide(Reply(ErrorReply("lease_lost", reason)))
        if lease is None:
            _disown(fleet, now, device, said.lease, said.epoch, reason)
        return fleet.drain()
    fleet.decide(Reply(Ok()))
    if lease is not None and said.lease:
        lease.device_s = now
    elif lease is not None:
        # An idle beat from before the grant names an older epoch.
        if lease.stage != "granting" and said.epoch >= lease.epoch:
            fleet.end(now, lease, "device lost: it has ended the session", idle=True)
    elif device.state != "free":
        _claims_idle(fleet, now, device, proven=said.epoch >= device.epoch)
    return fleet.drain()


def lease_ended(fleet: Fleet, now: float, peer: Peer, said: LeaseEnded) -> list[Decision]:
    """Note that a device ended the session of a lease and is idle.

    Raises:
        NotFound: the connection has not registered a device.
    """
    device = _device_of(fleet, peer)
    device.seen_s = now
    fleet.decide(Reply(Ok()))
    if device.lease and device.lease == said.lease:
        fleet.end(now, fleet.leases.current[said.lease], said.reason, idle=True)
    elif device.state == "recovering":
        _claims_idle(fleet, now, device, proven=said.epoch >= device.epoch)
    return fleet.drain()


def leave(fleet: Fleet, now: float, peer: Peer, said: Leave) -> list[Decision]:
    """Take a device off the list that is stopped by its owner; a lease of it ends.

    Raises:
        NotFound: the connection has not registered a device.
    """
    device = _device_of(fleet, peer)
    reason = f"the device was stopped: {said.reason[:MAX_NAME] or 'by its owner'}"
    fleet.registry.disconnect(device)
    lease = fleet.leases.current.get(device.lease)
    if lease is not None:
        fleet.end(now, lease, reason)
    fleet.registry.forget(device)
    fleet.decide(Reply(Ok()), Note("device_left", device.id, reason=reason, who=device.name))
    return fleet.drain()


def confirmed(fleet: Fleet, now: float, device_id: str, lease_id: str) -> list[Decision]:
    """Take a device's Ok to a Grant; one that comes too late changes nothing."""
    lease = fleet.leases.current.get(lease_id)
    device = fleet.registry.devices.get(device_id)
    if device is not None:
        device.seen_s = now
    if lease is not None and lease.stage == "granting" and lease.device == device_id:
        fleet.go_live(now, lease)
    return fleet.drain()


def refused(fleet: Fleet, now: float, lease_id: str, why: str) -> list[Decision]:
    """Take a device's refusal of a Grant: the request waits for another device."""
    lease = fleet.leases.current.get(lease_id)
    if lease is not None and lease.stage == "granting":
        fleet.registry.devices[lease.device].seen_s = now
        device = fleet.registry.devices[lease.device]
        fleet.end(now, lease, f"the device refused: {why}")
        device.refused = True
    return fleet.drain()


def withheld(fleet: Fleet, now: float, lease_id: str, why: str) -> list[Decision]:
    """Take back a grant that its device was not told of: it rests, and the request waits on."""
    lease = fleet.leases.current.get(lease_id)
    if lease is not None and lease.stage == "granting":
        device = fleet.registry.devices[lease.device]
        fleet.end(now, lease, why)
        device.refused = True
    return fleet.drain()


def idle(fleet: Fleet, now: float, device_id: str, lease_id: str) -> list[Decision]:
    """Take a device's Ok to a Revoke: it is idle."""
    device = fleet.registry.devices.get(device_id)
    if device is not None and device.state == "recovering" and device.revoking == lease_id:
        device.seen_s = now
        # One that refused is not asked again at once: it would refuse as often as it is asked.
        _claims_idle(fleet, now, device, proven=not device.refused)
    return fleet.drain()


def gone(fleet: Fleet, now: float, peer: Peer) -> list[Decision]:
    """Note that the connection of a device is closed; its lease lives on for the TTL."""
    device = fleet.registry.of_peer(peer)
    if device is not None:
        _disconnect(fleet, now, device)
    return fleet.drain()


def _device_of(fleet: Fleet, peer: Peer) -> Device:
    device = fleet.registry.of_peer(peer)
    if device is None:
        raise NotFound("this connection has not registered a device; register first")
    return device


def _check(said: Register) -> None:
    for what, text in (("id", said.id), ("name", said.name)):
        if not 0 < len(text) <= MAX_NAME or not text.isprintable():
            raise InvalidArgument(
                f"the {what} of a device has 1 to {MAX_NAME} printable characters"
            )
    if not 0 <= said.epoch <= _MAX_EPOCH:
        raise InvalidArgument(f"epoch {said.epoch} is not between 0 and 2**53")
    if not 0 <= said.port <= 65535:
        raise InvalidArgument(f"port {said.port} is not between 0 and 65535")


def _refuse_twin(device: Device, peer: Peer) -> None:
    if device.state == "lost" or device.peer in (None, peer):
        return
    at = device.addresses[0] if device.addresses else "an unknown address"
    raise Refused(
        f"a live device {device.name!r} at {at} has this id ({device.id}); if this one is a copy, "
        "remove the copied state (its --state directory) so that it makes an id of its own",
        {"id": device.id, "name": device.name},
    )


def _addresses(host: str, said: Register) -> tuple[str, ...]:
    """List where to reach a device: as the tracker sees it first, then as it believes itself."""
    if said.port == 0:
        return ()
    hosts = dict.fromkeys(h for h in (host, *said.addresses) if h) or {"127.0.0.1": None}
    return tuple(str(Address(h, said.port)) for h in hosts)


def _leave_other(fleet: Fleet, now: float, peer: Peer, id_: str) -> None:
    """Part a connection from the device of another id that it registered before."""
    other = fleet.registry.of_peer(peer)
    if other is not None and other.id != id_:
        _disconnect(fleet, now, other)


def _disconnect(fleet: Fleet, now: float, device: Device) -> None:
    fleet.registry.disconnect(device)
    lease = fleet.leases.current.get(device.lease)
    if lease is None:
        fleet.lose(device, "its connection is closed")
    elif lease.stage == "granting":
        fleet.end(now, lease, "device lost: its connection is closed")


def _resume(fleet: Fleet, now: float, device: Device, said: Register) -> None:
    """Bring what a registering device serves in line with what the tracker knows."""
    lease = fleet.leases.current.get(device.lease)
    if lease is not None and lease.id == said.lease:
        lease.device_s = now
        if lease.stage == "granting":
            fleet.go_live(now, lease)
        return
    if lease is not None:
        fleet.end(now, lease, "device lost: it started again", idle=not said.lease)
    elif not said.lease:
        fleet.free(device)
    if not said.lease:
        return
    ended = fleet.leases.ended.get(said.lease)
    if ended is None and lease is None and now < fleet.recovered_s:
        _adopt(fleet, now, device, said)
    else:
        _disown(fleet, now, device, said.lease, said.epoch, ended or "the tracker forgot it")


def _adopt(fleet: Fleet, now: float, device: Device, said: Register) -> None:
    """Honour a lease from before the tracker started, if its client asks for it in time."""
    longest_s = fleet.settings.max_session_s
    unknown = Waiter("", "", "", 0, 0, now, now, longest_s, None)
    lease = Lease(
        said.lease, said.epoch, "", device.id, unknown, "recovering", now, now, now, now + longest_s
    )
    lease.client_s = fleet.recovered_s - fleet.settings.ttl_s
    fleet.leases.add(lease)
    device.lease = lease.id
    claimed = fleet.claims.pop(lease.id, None)
    if claimed is None:
        fleet.registry.move(device, "recovering", "the tracker was restarted")
    else:
        fleet.leases.confirm(lease)
        lease.client_s, lease.peer = now, claimed
        fleet.registry.move(device, "leased")
    fleet.timers.arm(Key("lease", lease.id), lease.due_s(fleet.settings))


def _disown(fleet: Fleet, now: float, device: Device, lease: str, epoch: int, reason: str) -> None:
    """Have a device end a lease that is not current."""
    device.hold_s = max(device.hold_s, now + fleet.settings.hold_s)
    fleet.revoke(device, lease, epoch, reason)


def _claims_idle(fleet: Fleet, now: float, device: Device, *, proven: bool) -> None:
    if proven or now >= device.hold_s:
        fleet.free(device)
        return
    device.says_idle = True
    fleet.registry.move(device, "recovering", device.reason)
    fleet.timers.arm(Key("device", device.id), device.hold_s)
