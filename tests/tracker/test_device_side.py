"""What devices say to the tracker."""

from __future__ import annotations

import pytest

from farbench_rpc.errors import InvalidArgument, NotFound, QuotaExceeded, Refused
from farbench_rpc.messages import (
    Beat,
    ErrorReply,
    LeaseEnded,
    LeaseGranted,
    LeaseRenew,
    LeaseRenewed,
    Leave,
    Ok,
    Registered,
)
from farbench_tracker import client_side, device_side
from farbench_tracker.settings import Settings
from tests.tracker.fakes import World, ask, grants, register, reply, revokes, told


def test_a_registered_device_is_free_and_told_the_times() -> None:
    world = World()
    answer = reply(world.device(register("d", epoch=7)))
    assert answer == Registered(beat_s=5.0, renew_s=1.0, ttl_s=3.0, epoch=7)
    assert world.state("d") == "free"


def test_the_address_the_tracker_sees_comes_first() -> None:
    world = World()
    world.device(register("d", addresses=("192.168.1.5", "10.0.0.1", "fe80::1")))
    addresses = world.fleet.registry.devices["d"].addresses
    assert addresses == ("10.0.0.1:7000", "192.168.1.5:7000", "[fe80::1]:7000")


def test_an_unknown_origin_is_this_machine() -> None:
    world = World()
    device_side.register(world.fleet, world.now, "p", "", register("d"))
    assert world.fleet.registry.devices["d"].addresses == ("127.0.0.1:7000",)


def test_a_twin_is_refused_with_advice() -> None:
    world = World()
    world.device(register("d", name="first"), peer="p1")
    with pytest.raises(Refused, match=r"'first' at 10\.0\.0\.1:7000.*remove the copied state"):
        world.device(register("d", name="second"), peer="p2")
    assert world.fleet.registry.devices["d"].name == "first"


def test_a_device_keeps_its_id_after_a_broken_connection() -> None:
    world = World()
    world.device(register("d"), peer="p1")
    device_side.gone(world.fleet, world.now, "p1")
    assert world.state("d") == "lost"
    world.device(register("d", labels={"new": "1"}), peer="p2")
    assert world.state("d") == "free"
    assert world.fleet.registry.devices["d"].labels == {"new": "1"}
    assert len(world.fleet.registry.devices) == 1


def test_a_silent_device_is_lost_after_three_beats() -> None:
    world = World()
    world.device(register("d"))
    world.step(14.9)
    assert world.state("d") == "free"
    world.step(0.2)
    assert world.state("d") == "lost"
    assert world.fleet.registry.devices["d"].reason == "silent for 15 s"
    world.beat("d")
    assert world.state("d") == "free"


def test_a_beating_device_is_not_lost() -> None:
    world = World()
    world.device(register("d"))
    for _ in range(10):
        world.step(5.0)
        assert reply(world.beat("d")) == Ok()
    assert world.state("d") == "free"


def test_a_lost_device_is_forgotten_in_the_end() -> None:
    world = World(Settings(forget_s=100.0))
    world.device(register("d"))
    world.step(20.0)
    world.step(81.0)
    assert world.fleet.registry.devices == {}


def test_a_stranger_must_register_first() -> None:
    world = World()
    with pytest.raises(NotFound, match="register first"):
        device_side.beat(world.fleet, world.now, "nobody", Beat())


def test_a_grant_is_confirmed_before_the_client_hears() -> None:
    world = World()
    world.device(register("d"))
    found = world.request(ask("r"))
    [(id_, grant)] = grants(found)
    assert not told(found, LeaseGranted)
    [(request, granted)] = told(world.confirm(grant, id_), LeaseGranted)
    assert (request, granted.lease, granted.epoch, granted.token) == (
        "r",
        grant.lease,
        1,
        grant.token,
    )
    assert granted.device.state == "leased"


def test_a_grant_that_is_not_confirmed_goes_to_another_device() -> None:
    world = World()
    world.device(register("a"))
    world.device(register("b"))
    [(first, grant)] = grants(world.request(ask("r")))
    assert first == "a"
    found = world.step(2.0)
    [(second, _)] = grants(found)
    assert second == "b"
    assert [(d, r.lease) for d, r in revokes(found)] == [("a", grant.lease)]
    assert world.state("a") == "recovering"
    assert not told(world.confirm(grant, "a"), LeaseGranted)  # too late


def test_a_refused_grant_goes_to_another_device() -> None:
    world = World()
    world.device(register("a"))
    world.device(register("b"))
    [(_, grant)] = grants(world.request(ask("r")))
    device_side.refused(world.fleet, world.now, grant.lease, "draining")
    [(second, _)] = grants(world.step(0.0))
    assert second == "b"
    assert world.fleet.registry.devices["a"].reason == "the device refused: draining"


def test_a_device_that_ends_the_session_is_free_at_once() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("r")
    ended = LeaseEnded(lease.lease, lease.epoch, "session closed")
    device_side.lease_ended(world.fleet, world.now, "d", ended)
    assert world.state("d") == "free"
    assert world.fleet.leases.ended[lease.lease] == "session closed"


def test_a_revoked_device_is_free_when_it_says_so() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("r")
    [(_, revoke)] = revokes(world.step(3.0))
    assert world.state("d") == "recovering"
    device_side.idle(world.fleet, world.now, "d", "another")
    assert world.state("d") == "recovering"
    device_side.idle(world.fleet, world.now, "d", revoke.lease)
    assert world.state("d") == "free"
    assert revoke.lease == lease.lease


def test_an_idle_beat_with_the_epoch_of_the_lease_proves_it_over() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("r")
    world.beat("d", epoch=lease.epoch - 1)  # sent before the grant came
    assert world.state("d") == "leased"
    world.beat("d", epoch=lease.epoch)
    assert world.state("d") == "free"


def test_a_claim_to_be_idle_counts_after_ttl_and_kill_budget() -> None:
    world = World()
    world.device(register("d"))
    world.lease("r")
    world.step(3.0)
    world.beat("d", epoch=0)  # no proof: it may not have seen the grant
    assert world.state("d") == "recovering"
    world.step(0.9)
    assert world.state("d") == "recovering"
    world.step(0.1)
    assert world.state("d") == "free"


def test_a_silent_leased_device_ends_its_lease_as_lost() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("r")
    for _ in range(3):
        world.step(0.99)
        client_side.renew(world.fleet, world.now, "r", LeaseRenew((lease.lease,)))
    world.step(0.03)
    answer = reply(client_side.renew(world.fleet, world.now, "r", LeaseRenew((lease.lease,))))
    assert answer.ended == {lease.lease: "device lost: silent for 3 s"}  # type: ignore[attr-defined]


def test_a_beat_for_an_ended_lease_is_told_and_revoked_again() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("r")
    world.step(3.0)
    found = world.beat("d", lease=lease.lease, epoch=lease.epoch)
    assert reply(found) == ErrorReply("lease_lost", "the client was silent for 3 s")
    assert [r.lease for _, r in revokes(found)] == [lease.lease]


def test_a_lease_outlives_a_short_break_of_the_devices_connection() -> None:
    world = World()
    world.device(register("d"), peer="p1")
    lease = world.lease("r")
    device_side.gone(world.fleet, world.now, "p1")
    world.step(1.0)
    client_side.renew(world.fleet, world.now, "r", LeaseRenew((lease.lease,)))
    found = world.device(register("d", lease=lease.lease, epoch=1), peer="p2")
    assert not revokes(found)
    assert world.state("d") == "leased"


def test_a_device_that_started_again_has_lost_its_lease() -> None:
    world = World()
    world.device(register("d"), peer="p1")
    lease = world.lease("r")
    device_side.gone(world.fleet, world.now, "p1")
    world.device(register("d", epoch=1), peer="p2")
    assert world.state("d") == "free"
    assert world.fleet.leases.ended[lease.lease] == "device lost: it started again"


def test_a_grant_cut_off_by_a_closed_connection_goes_elsewhere_at_once() -> None:
    world = World()
    world.device(register("a"))
    world.device(register("b"))
    world.request(ask("r"))
    device_side.gone(world.fleet, world.now, "a")
    [(second, _)] = grants(world.step(0.0))
    assert (second, world.state("a")) == ("b", "lost")


def test_epochs_go_on_from_the_highest_the_device_saw() -> None:
    world = World()
    world.device(register("d", epoch=41))
    assert world.lease("r").epoch == 42


def test_a_lease_from_before_the_tracker_started_is_honoured() -> None:
    world = World(recovered=False)
    found = world.device(register("d", lease="old", epoch=5))
    assert not revokes(found)
    assert world.state("d") == "recovering"
    answer = reply(client_side.renew(world.fleet, world.now, "c", LeaseRenew(("old",))))
    assert answer.alive == ("old",)  # type: ignore[attr-defined]
    assert world.state("d") == "leased"


def test_an_old_lease_is_honoured_if_its_client_comes_first() -> None:
    world = World(recovered=False)
    client_side.renew(world.fleet, world.now, "c", LeaseRenew(("old",)))
    world.device(register("d", lease="old", epoch=5))
    assert world.state("d") == "leased"


def test_an_old_lease_that_no_client_asks_for_ends_after_one_ttl() -> None:
    world = World(recovered=False)
    world.device(register("d", lease="old", epoch=5))
    world.step(2.0)
    world.beat("d", lease="old", epoch=5)
    found = world.step(1.0)
    [(_, revoke)] = revokes(found)
    assert "no client asked" in revoke.reason


def test_an_unknown_lease_is_revoked_later() -> None:
    world = World()
    [(_, revoke)] = revokes(world.device(register("d", lease="old", epoch=5)))
    assert revoke.lease == "old"
    assert world.state("d") == "recovering"


@pytest.mark.parametrize(
    ("said", "error", "about"),
    [
        (register("", name="x"), InvalidArgument, "id"),
        (register("a\nb", name="x"), InvalidArgument, "id"),
        (register("d", name="x" * 200), InvalidArgument, "name"),
        (register("d", epoch=-1), InvalidArgument, "epoch"),
        (register("d", port=70000), InvalidArgument, "port"),
        (register("d", labels={"a": "x" * 50_000}), QuotaExceeded, "drop labels"),
    ],
)
def test_nonsense_is_refused(said: object, error: type[Exception], about: str) -> None:
    world = World()
    with pytest.raises(error, match=about):
        world.device(said)  # type: ignore[arg-type]
    assert world.fleet.registry.devices == {}


def test_the_number_of_devices_is_capped() -> None:
    world = World(Settings(max_devices=1))
    world.device(register("a"))
    with pytest.raises(QuotaExceeded, match="max_devices"):
        world.device(register("b"))
    world.device(register("a"))


def test_a_device_that_refuses_rests_before_it_is_asked_again() -> None:
    world = World()
    world.device(register("d"))
    [(_, grant)] = grants(world.request(ask("r")))
    device_side.refused(world.fleet, world.now, grant.lease, "its disk is full")
    device_side.idle(world.fleet, world.now, "d", grant.lease)
    assert not grants(world.step(0.0))
    assert world.state("d") == "recovering"
    assert world.fleet.registry.devices["d"].reason == "the device refused: its disk is full"
    assert [d for d, _ in grants(world.step(world.fleet.settings.hold_s))] == ["d"]


def test_a_device_that_leaves_is_forgotten_and_its_lease_over() -> None:
    world = World()
    world.device(register("d", epoch=3))
    lease = world.lease("r")
    found = device_side.leave(world.fleet, world.now, "d", Leave("updates"))
    assert reply(found) == Ok()
    assert not revokes(found)  # it has gone: nobody is left to be told
    assert "d" not in world.fleet.registry.devices
    renewed = reply(client_side.renew(world.fleet, world.now, "r", LeaseRenew((lease.lease,))))
    assert isinstance(renewed, LeaseRenewed)
    assert renewed.ended == {lease.lease: "the device was stopped: updates"}
    # Whoever asks now hears that there is none, and it may come back.
    world.step(60.0)
    world.device(register("d", epoch=4))
    assert world.state("d") == "free"


def test_only_a_registered_device_may_leave() -> None:
    world = World()
    with pytest.raises(NotFound, match="register first"):
        device_side.leave(world.fleet, world.now, "nobody", Leave())
