"""A model of the fleet under a fake clock: any order of events, losses and restarts.

Devices and clients live in the test. Messages travel in queues that a broken connection may cut. A
device keeps time itself: unless a beat of its was answered within the TTL it ends its session, and
may need all of the kill budget for it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from farbench_rpc.errors import RpcError
from farbench_rpc.messages import (
    Beat,
    ErrorReply,
    Grant,
    LeaseCancel,
    LeaseEnded,
    LeaseGranted,
    LeaseRelease,
    LeaseRenew,
    LeaseRenewed,
    LeaseRequest,
    Message,
    Ok,
    Register,
    Revoke,
)
from farbench_tracker import client_side, clock, device_side
from farbench_tracker.decisions import Decision, Reply, ToClient, ToDevice
from farbench_tracker.fleet import Fleet
from farbench_tracker.records import DeviceRecord, LeaseRecord, Records, WaiterRecord
from farbench_tracker.recovery import Clocks, restore, take_changes
from farbench_tracker.settings import Settings

SETTINGS = Settings()
Record = DeviceRecord | LeaseRecord | WaiterRecord
DEVICES = 3
NEEDS = ("", "board=a", "board=b", "id=d1", "!slow", "board in (a|b)")


@dataclass
class FakeDevice:
    """A device as it sees itself."""

    id: str
    board: str
    conn: str = ""
    serving: Grant | None = None
    renewed_s: float = 0.0
    epoch: int = 0
    up: list[tuple[float, Message | tuple[str, str]]] = field(default_factory=list)
    down: list[tuple[float, Message]] = field(default_factory=list)

    def until_s(self) -> float:
        """Give the time at which its session is over at the latest."""
        return self.renewed_s + SETTINGS.hold_s


@dataclass
class FakeClient:
    """One request and what became of it."""

    request: str
    conn: str
    said: LeaseRequest
    answer: LeaseGranted | ErrorReply | None = None
    excused: bool = False  # it left, or its tracker died


class FleetModel(RuleBasedStateMachine):
    """Events in any order, and what must hold after each."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.names = itertools.count()
        self.fleet = Fleet(SETTINGS, self.now, self.make_id)
        self.devices = {f"d{i}": FakeDevice(f"d{i}", "ab"[i % 2]) for i in range(DEVICES)}
        self.clients: dict[str, FakeClient] = {}
        self.told: dict[str, str] = {}  # leases whose token a client got, and their devices
        self.kept: dict[tuple[str, str], Record] = {}  # what a journal holds

    def make_id(self) -> str:
        """Give a name that was not used before."""
        return f"x{next(self.names)}"

    # --- carrying out ---------------------------------------------------------------------------

    def carry_out(self, decisions: list[Decision], to: FakeDevice | None, sent_s: float) -> None:
        """Do what the fleet decided, once the journal has it."""
        self.commit()
        for decision in decisions:
            match decision:
                case Reply(message) if to is not None:
                    to.down.append((sent_s, message))
                case ToDevice(device, message):
                    assert self.fleet.registry.devices[device].peer == self.devices[device].conn
                    self.devices[device].down.append((sent_s, message))
                case ToClient(request, message):
                    self.hear(request, message)
                case _:
                    pass

    def commit(self) -> None:
        """Write what changed."""
        changed, gone = take_changes(self.fleet, Clocks(self.now, self.now))
        self.kept |= {("device", d.id): d for d in changed.devices}
        self.kept |= {("lease", x.id): x for x in changed.leases}
        self.kept |= {("waiter", w.request): w for w in changed.waiters}
        for key in gone:
            self.kept.pop(key, None)

    def records(self) -> Records:
        """Read the journal."""
        found = self.kept.values()
        return Records(
            tuple(r for r in found if isinstance(r, DeviceRecord)),
            tuple(r for r in found if isinstance(r, LeaseRecord)),
            tuple(r for r in found if isinstance(r, WaiterRecord)),
        )

    def hear(self, request: str, message: Message) -> None:
        """Give a client what it was told."""
        client = self.clients[request]
        if isinstance(message, (LeaseGranted, ErrorReply)):
            assert client.answer is None, "a request is answered once"
            client.answer = message
        if isinstance(message, LeaseGranted):
            self.told[message.lease] = message.device.id

    def advance(self) -> None:
        """Let the fleet do what is due."""
        self.carry_out(clock.advance(self.fleet, self.now), None, self.now)
        due_s = clock.next_due_s(self.fleet)
        assert due_s is None or due_s > self.now

    # --- devices --------------------------------------------------------------------------------

    @initialize()
    def start(self) -> None:
        """Begin with every device at hand."""
        for device in self.devices.values():
            self.register(device)
            self.deliver_all(device)
        self.advance()

    def register(self, device: FakeDevice) -> None:
        """Connect and register."""
        device.conn = self.make_id()
        lease = device.serving.lease if device.serving else ""
        said = Register(
            device.id, device.id, {"board": device.board}, {}, 1, (), device.epoch, lease
        )
        device.up.append((self.now, said))

    def cut(self, device: FakeDevice, arrives: bool) -> None:
        """Close the connection; what is under way arrives or not."""
        while arrives and device.up:
            self.deliver_up(device)
        device.up.clear()
        device.down.clear()
        conn, device.conn = device.conn, ""
        self.carry_out(device_side.gone(self.fleet, self.now, conn), None, self.now)

    devices_ = st.sampled_from([f"d{i}" for i in range(DEVICES)])

    @rule(which=devices_, arrives=st.booleans())
    def break_connection(self, which: str, arrives: bool) -> None:
        """Cut a device off; it goes on serving."""
        if self.devices[which].conn:
            self.cut(self.devices[which], arrives)
        self.advance()

    @rule(which=devices_, arrives=st.booleans())
    def kill_device(self, which: str, arrives: bool) -> None:
        """End the process of a device, and all it runs with it."""
        device = self.devices[which]
        if device.conn:
            self.cut(device, arrives)
        device.serving = None
        self.advance()

    @rule(which=devices_)
    def come_back(self, which: str) -> None:
        """Connect a device again."""
        if not self.devices[which].conn:
            self.register(self.devices[which])

    @rule(which=devices_)
    def beat(self, which: str) -> None:
        """Send a sign of life."""
        device = self.devices[which]
        if device.conn:
            lease = device.serving.lease if device.serving else ""
            device.up.append((self.now, Beat(lease, device.epoch)))

    @rule(which=devices_)
    def end_session(self, which: str) -> None:
        """End a session by the device's own will."""
        device = self.devices[which]
        if device.conn and device.serving:
            ended = LeaseEnded(device.serving.lease, device.serving.epoch, "closed")
            device.serving = None
            device.up.append((self.now, ended))

    @rule(which=devices_)
    def deliver_to_tracker(self, which: str) -> None:
        """Let one message of a device arrive."""
        if self.devices[which].up:
            self.deliver_up(self.devices[which])
        self.advance()

    @rule(which=devices_)
    def deliver_to_device(self, which: str) -> None:
        """Let one message for a device arrive."""
        if self.devices[which].down:
            self.deliver_down(self.devices[which])

    @rule()
    def deliver_everything(self) -> None:
        """Let all messages arrive."""
        for device in self.devices.values():
            self.deliver_all(device)

    def deliver_all(self, device: FakeDevice) -> None:
        """Let the messages of one device arrive until none is left."""
        while device.up or device.down:
            if device.up:
                self.deliver_up(device)
            if device.down:
                self.deliver_down(device)
            self.advance()

    def deliver_up(self, device: FakeDevice) -> None:
        """Hand one message to the tracker."""
        sent_s, said = device.up.pop(0)
        fleet, now = self.fleet, self.now
        try:
            match said:
                case Register():
                    found = device_side.register(fleet, now, device.conn, "h", said)
                case Beat():
                    found = device_side.beat(fleet, now, device.conn, said)
                case LeaseEnded():
                    found = device_side.lease_ended(fleet, now, device.conn, said)
                case ("confirmed", lease):
                    found = device_side.confirmed(fleet, now, device.id, lease)
                case ("refused", lease):
                    found = device_side.refused(fleet, now, lease, "busy")
                case (_, lease):
                    found = device_side.idle(fleet, now, device.id, lease)
        except RpcError as error:
            found = [Reply(ErrorReply(error.code, error.message))]
        self.carry_out(found, device, sent_s)

    def deliver_down(self, device: FakeDevice) -> None:
        """Hand one message to the device."""
        sent_s, said = device.down.pop(0)
        match said:
            case Grant():
                self.take_grant(device, said)
            case Revoke():
                if device.serving and device.serving.lease == said.lease:
                    device.serving = None
                device.up.append((self.now, ("idle", said.lease)))
            case Ok() if device.serving:
                device.renewed_s = max(device.renewed_s, sent_s)
            case _:
                pass

    def take_grant(self, device: FakeDevice, grant: Grant) -> None:
        """Begin to serve, unless the device still serves what a client holds."""
        assert grant.epoch > device.epoch, "epochs grow"
        old = device.serving
        assert old is None or old.lease not in self.told, "granted while it was held"
        device.epoch, device.serving, device.renewed_s = grant.epoch, grant, self.now
        device.up.append((self.now, ("confirmed", grant.lease)))

    @rule(which=devices_)
    def refuse_next(self, which: str) -> None:
        """Let a device refuse the grant that comes next."""
        device = self.devices[which]
        if device.down and isinstance(device.down[0][1], Grant):
            grant = device.down.pop(0)[1]
            assert isinstance(grant, Grant)
            device.up.append((self.now, ("refused", grant.lease)))

    # --- clients --------------------------------------------------------------------------------

    @rule(
        need=st.sampled_from(NEEDS),
        priority=st.integers(0, 2),
        wait_s=st.sampled_from([0.0, 1.0, 30.0]),
        cap_s=st.sampled_from([2.0, 600.0]),
    )
    def ask(self, need: str, priority: int, wait_s: float, cap_s: float) -> None:
        """Ask for a device."""
        name = self.make_id()
        said = LeaseRequest(need, name, priority, cap_s, wait_s)
        self.clients[name] = FakeClient(name, f"c{name}", said)
        self.request(self.clients[name])
        self.advance()

    def request(self, client: FakeClient) -> None:
        """Say what a client asks for."""
        try:
            found = client_side.request(self.fleet, self.now, client.conn, client.said)
        except RpcError as error:
            client.answer = ErrorReply(error.code, error.message)
            return
        self.carry_out(found, None, self.now)

    def held(self) -> list[FakeClient]:
        """List the clients that hold a lease, as far as they know."""
        return [c for c in self.clients.values() if isinstance(c.answer, LeaseGranted)]

    @precondition(lambda self: self.held())
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        """Renew a lease."""
        client = data.draw(st.sampled_from(self.held()))
        assert isinstance(client.answer, LeaseGranted)
        said = LeaseRenew((client.answer.lease,))
        found = client_side.renew(self.fleet, self.now, client.conn, said)
        assert isinstance(found[0], Reply)
        assert isinstance(found[0].message, LeaseRenewed)
        self.advance()

    @precondition(lambda self: self.held())
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        """Give a lease back."""
        client = data.draw(st.sampled_from(self.held()))
        assert isinstance(client.answer, LeaseGranted)
        said = LeaseRelease(client.answer.lease)
        self.carry_out(client_side.release(self.fleet, self.now, said), None, self.now)
        self.advance()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), politely=st.booleans())
    def leave(self, data: st.DataObject, politely: bool) -> None:
        """Withdraw a request, or die."""
        client = data.draw(st.sampled_from(list(self.clients.values())))
        client.excused = True
        if politely:
            cancel = LeaseCancel(client.request)
            found = client_side.cancel(self.fleet, self.now, cancel)
        else:
            found = client_side.gone(self.fleet, self.now, client.conn)
        self.carry_out(found, None, self.now)
        self.advance()

    # --- time and the tracker -------------------------------------------------------------------

    @rule(step_s=st.sampled_from([0.05, 0.5, 1.0, 2.0, 3.0, 4.0, 16.0]))
    def pass_time(self, step_s: float) -> None:
        """Let time pass; devices that are out of touch end their sessions in it."""
        self.now += step_s
        for device in self.devices.values():
            if device.serving and self.now >= device.until_s():
                device.serving = None
        self.advance()

    @rule(remembers=st.booleans())
    def restart_tracker(self, remembers: bool) -> None:
        """Kill the tracker and start a new one, with its journal or without."""
        for device in self.devices.values():
            device.up.clear()
            device.down.clear()
            device.conn = ""
        self.fleet = Fleet(SETTINGS, self.now, self.make_id)
        waiting = [c for c in self.clients.values() if c.answer is None and not c.excused]
        if not remembers:
            self.kept.clear()
            for client in waiting:
                client.excused = True
            return
        restore(self.fleet, Clocks(self.now, self.now), self.records())
        for client in waiting:
            client.conn = self.make_id()
            self.request(client)
        self.advance()

    # --- what must hold -------------------------------------------------------------------------

    @invariant()
    def leases_and_devices_agree(self) -> None:
        """Hold one lease a device at most, and know it from both sides."""
        held = [lease.device for lease in self.fleet.leases.current.values()]
        assert len(held) == len(set(held))
        for device in self.fleet.registry.devices.values():
            lease = self.fleet.leases.current.get(device.lease)
            assert (lease is None) == (device.lease == "")
            assert lease is None or (lease.device, lease.epoch) == (device.id, device.epoch)
            busy = device.state in ("granting", "leased")
            assert not busy or lease is not None
            assert device.state != "free" or (lease is None and device.peer is not None)

    @invariant()
    def the_journal_knows_every_epoch_and_lease(self) -> None:
        """Keep what a tracker that is killed now would need."""
        self.commit()
        for device in self.fleet.registry.devices.values():
            record = self.kept["device", device.id]
            assert isinstance(record, DeviceRecord)
            assert record.epoch == device.epoch
        current = self.fleet.leases.current.values()
        held = {("lease", lease.id) for lease in current if lease.stage != "granting"}
        assert held == {key for key in self.kept if key[0] == "lease"}

    @invariant()
    def leases_need_both_ends(self) -> None:
        """Keep no lease that an end has not renewed, nor one beyond its cap."""
        for lease in self.fleet.leases.current.values():
            if lease.stage == "live":
                assert lease.client_s + SETTINGS.ttl_s > self.now
                assert lease.device_s + SETTINGS.ttl_s > self.now
                assert lease.hard_end_s > self.now

    @invariant()
    def nobody_waits_beside_a_free_device(self) -> None:
        """Serve whoever can be served."""
        pools = self.fleet.registry.pools
        for waiter in self.fleet.queue.waiters.values():
            pool = pools.get(waiter.requirement)
            fits = [
                d
                for d in self.fleet.registry.devices.values()
                if pool.requirement.matches(d) and d.state == "free"
            ]
            assert not fits
            assert waiter.deadline_s > self.now

    @invariant()
    def free_devices_serve_nobody(self) -> None:
        """Offer no device that still runs what a client holds."""
        for device in self.fleet.registry.devices.values():
            serving = self.devices[device.id].serving
            if device.state == "free" and serving is not None:
                assert serving.lease not in self.told

    @invariant()
    def pools_count_right(self) -> None:
        """Keep counts that a recount confirms."""
        devices = self.fleet.registry.devices.values()
        for need in NEEDS:
            pool = self.fleet.registry.pools.get(need)
            fits = [d for d in devices if pool.requirement.matches(d)]
            assert pool.members == {d.id for d in fits}
            for state in ("free", "granting", "leased", "recovering", "lost"):
                assert pool.states[state] == sum(1 for d in fits if d.state == state)
            free = [(d.used_s, d.id) for d in fits if d.state == "free"]
            first = pool.first_free(self.fleet.registry.devices)
            assert (first.id if first else None) == (min(free)[1] if free else None)

    def teardown(self) -> None:
        """In the end every request was answered and every device is free again."""
        for _ in range(40):
            self.pass_time(1.0)
            for device in self.devices.values():
                if not device.conn:
                    self.register(device)
                self.beat(device.id)
                self.deliver_all(device)
        self.advance()
        for client in self.clients.values():
            assert client.answer is not None or client.excused
        states = {d.id: d.state for d in self.fleet.registry.devices.values()}
        assert states == dict.fromkeys(self.devices, "free")
        assert not self.fleet.leases.current
        assert not self.fleet.queue.waiters


FleetModel.TestCase.settings = hypothesis_settings(
    max_examples=120, stateful_step_count=40, deadline=None
)
TestFleet = FleetModel.TestCase


class LongFleetModel(FleetModel):
    """The same, played much longer."""


LongFleetModel.TestCase.settings = hypothesis_settings(
    max_examples=5000, stateful_step_count=80, deadline=None
)
TestFleetAtLength = pytest.mark.slow(LongFleetModel.TestCase)
