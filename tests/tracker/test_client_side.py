"""What clients ask of the tracker."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_rpc.errors import InvalidArgument, NoMatch, QuotaExceeded
from farbench_rpc.messages import (
    ErrorReply,
    LeaseCancel,
    LeaseGranted,
    LeaseQueued,
    LeaseRelease,
    LeaseRenew,
    LeaseRenewed,
    Ok,
)
from farbench_tracker import client_side, device_side
from farbench_tracker.settings import Settings
from tests.tracker.fakes import World, ask, grants, register, reply, revokes, told


def test_nothing_matches_is_said_at_once_and_why() -> None:
    world = World()
    world.device(register("d", facts={"arch": "aarch64"}))
    with pytest.raises(NoMatch, match=r"arch=riscv64 fits 0 \(there is aarch64\)"):
        world.request(ask("r", "arch=riscv64"))


def test_a_new_tracker_waits_for_its_devices_before_it_says_that_none_match() -> None:
    world = World(recovered=False)
    assert told(world.request(ask("r", "board=a")), LeaseQueued)
    [(request, answer)] = told(world.step(3.0), ErrorReply)
    assert (request, answer.code) == ("r", "no_match")


def test_a_device_that_comes_in_time_serves_an_early_request() -> None:
    world = World(recovered=False)
    world.request(ask("r", "board=a"))
    assert grants(world.device(register("d", labels={"board": "a"})))


def test_a_bad_requirement_is_refused_with_its_position() -> None:
    world = World()
    with pytest.raises(InvalidArgument, match="character 3") as caught:
        world.request(ask("r", "a="))
    assert caught.value.detail == {"position": 3}


@pytest.mark.parametrize(
    "said",
    [
        ask(""),
        ask("r" * 200),
        ask("r", user="u" * 200),
        ask("r", priority=10**9),
        ask("r", wait_s=-1.0),
        ask("r", wait_s=math.nan),
        ask("r", wait_s=math.inf),
        ask("r", session_timeout_s=0.0),
        ask("r", session_timeout_s=1e9),
    ],
)
def test_numbers_out_of_range_are_refused(said: object) -> None:
    world = World()
    world.device(register("d"))
    with pytest.raises(InvalidArgument):
        world.request(said)  # type: ignore[arg-type]


def test_higher_priority_first_then_the_order_of_arrival() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("holder")
    for name, priority in (("low", 0), ("first", 1), ("second", 1), ("high", 9)):
        world.request(ask(name, priority=priority, wait_s=600.0))
    served = []
    for _ in range(4):
        client_side.release(world.fleet, world.now, LeaseRelease(lease.lease))
        device_side.idle(world.fleet, world.now, "d", lease.lease)
        [(_, grant)] = grants(world.step(0.0))
        [(name, lease)] = told(world.confirm(grant, "d"), LeaseGranted)
        served.append(name)
    assert served == ["high", "first", "second", "low"]


def test_one_that_cannot_be_served_does_not_hold_up_others() -> None:
    world = World()
    world.device(register("a"))
    world.device(register("b"))
    world.lease("holder", "id=a")
    assert told(world.request(ask("stuck", "id=a", priority=9)), LeaseQueued)
    assert grants(world.request(ask("free", "id=b")))


def test_waiting_clients_hear_their_place_and_why() -> None:
    world = World()
    world.device(register("d", labels={"board": "a"}))
    world.lease("holder")
    [first] = told(world.request(ask("one", wait_s=600.0)), LeaseQueued)
    [second] = told(world.request(ask("two", "board=a", wait_s=600.0)), LeaseQueued)
    assert first == ("one", LeaseQueued(0, "1 device matches: 1 leased"))
    assert second == ("two", LeaseQueued(1, "1 device matches: 1 leased"))
    assert not told(world.step(1.0), LeaseQueued)  # nothing has changed
    client_side.cancel(world.fleet, world.now, LeaseCancel("one"))
    assert told(world.step(1.0), LeaseQueued)[0][1].position == 0


def test_rivals_for_other_devices_do_not_count_in_the_place() -> None:
    world = World()
    for name in ("a", "b"):
        world.device(register(name))
        world.lease(f"holder-{name}", f"id={name}")
    world.request(ask("one", "id=a"))
    [(_, queued)] = told(world.request(ask("two", "id=b")), LeaseQueued)
    assert queued.position == 0


def test_a_wait_ends_as_busy() -> None:
    world = World()
    world.device(register("d"))
    world.lease("holder")
    world.request(ask("r", wait_s=2.0))
    [(request, answer)] = told(world.step(2.0), ErrorReply)
    assert (request, answer.code) == ("r", "busy")
    assert answer.detail == {"waited_s": 2.0}
    assert "1 device matches: 1 leased" in answer.message or "recovering" in answer.message


def test_no_wait_is_busy_at_once_or_served() -> None:
    world = World()
    world.device(register("d"))
    assert grants(world.request(ask("one", wait_s=0.0)))
    [(request, answer)] = told(world.request(ask("two", wait_s=0.0)), ErrorReply)
    assert (request, answer.code) == ("two", "busy")


def test_one_that_left_is_not_served() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("holder")
    world.request(ask("dead"), peer="c1")
    world.request(ask("alive"), peer="c2")
    client_side.gone(world.fleet, world.now, "c1")
    client_side.release(world.fleet, world.now, LeaseRelease(lease.lease))
    device_side.idle(world.fleet, world.now, "d", lease.lease)
    [(_, grant)] = grants(world.step(0.0))
    assert told(world.confirm(grant, "d"), LeaseGranted)[0][0] == "alive"


def test_a_client_that_goes_while_it_is_granted_frees_the_device() -> None:
    world = World()
    world.device(register("d"))
    [(_, grant)] = grants(world.request(ask("r"), peer="c"))
    found = client_side.gone(world.fleet, world.now, "c")
    assert [r.lease for _, r in revokes(found)] == [grant.lease]
    assert not told(world.confirm(grant, "d"), LeaseGranted)


def test_a_lease_lives_as_long_as_both_renew() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("r")
    for _ in range(20):
        world.step(1.0)
        world.beat("d", lease.lease, lease.epoch)
        answer = reply(client_side.renew(world.fleet, world.now, "r", LeaseRenew((lease.lease,))))
        assert answer == LeaseRenewed((lease.lease,), {})


def test_a_silent_client_loses_the_lease_within_the_ttl() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("r")
    world.step(2.9)
    world.beat("d", lease.lease, lease.epoch)
    assert world.state("d") == "leased"
    assert revokes(world.step(0.1))[0][1].reason == "the client was silent for 3 s"
    answer = reply(client_side.renew(world.fleet, world.now, "r", LeaseRenew((lease.lease,))))
    assert answer == LeaseRenewed((), {lease.lease: "the client was silent for 3 s"})


def test_the_hard_cap_ends_a_lease_that_is_renewed() -> None:
    world = World()
    world.device(register("d"))
    [(_, grant)] = grants(world.request(ask("r", session_timeout_s=4.0)))
    world.confirm(grant, "d")
    for _ in range(3):
        world.step(1.0)
        world.beat("d", grant.lease, grant.epoch)
        client_side.renew(world.fleet, world.now, "r", LeaseRenew((grant.lease,)))
    assert revokes(world.step(1.0))[0][1].reason == "session_timeout of 4 s reached"


def test_release_is_ok_also_for_what_ended() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("r")
    for _ in range(2):
        found = client_side.release(world.fleet, world.now, LeaseRelease(lease.lease))
        assert reply(found) == Ok()


def test_cancel_answers_the_request_that_waits() -> None:
    world = World()
    world.device(register("d"))
    world.lease("holder")
    world.request(ask("r"))
    found = client_side.cancel(world.fleet, world.now, LeaseCancel("r"))
    assert reply(found) == Ok()
    assert [(r, a.code) for r, a in told(found, ErrorReply)] == [("r", "cancelled")]
    assert reply(client_side.cancel(world.fleet, world.now, LeaseCancel("unknown"))) == Ok()


def test_cancel_ends_a_lease_that_came_in_the_meantime() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("r")
    found = client_side.cancel(world.fleet, world.now, LeaseCancel("r"))
    assert [r.lease for _, r in revokes(found)] == [lease.lease]


def test_a_repeated_request_hears_the_same() -> None:
    world = World()
    world.device(register("d"))
    lease = world.lease("r")
    assert told(world.request(ask("r"), peer="again"), LeaseGranted) == [("r", lease)]
    world.request(ask("w", wait_s=1.0))
    assert told(world.request(ask("w", wait_s=1.0), peer="again"), LeaseQueued)
    [(_, busy)] = told(world.step(1.0), ErrorReply)
    assert told(world.request(ask("w", wait_s=1.0)), ErrorReply) == [("w", busy)]
    assert len(world.fleet.leases.current) == 1


def test_a_repeat_after_the_lease_ended_says_so() -> None:
    world = World()
    world.device(register("d"))
    world.lease("r")
    world.step(3.0)
    [(_, answer)] = told(world.request(ask("r")), ErrorReply)
    assert (answer.code, answer.message) == ("lease_lost", "the client was silent for 3 s")


def test_a_repeat_from_a_new_connection_survives_the_end_of_the_old() -> None:
    world = World()
    world.device(register("d"))
    world.lease("holder")
    world.request(ask("r"), peer="c1")
    world.request(ask("r"), peer="c2")
    client_side.gone(world.fleet, world.now, "c1")
    assert "r" in world.fleet.queue.waiters


def test_the_queue_is_capped() -> None:
    world = World(Settings(max_waiting=1))
    world.device(register("d"))
    world.lease("holder")
    world.request(ask("one"))
    with pytest.raises(QuotaExceeded, match="wait already"):
        world.request(ask("two"))


requests = st.lists(
    st.tuples(st.sampled_from(["", "board=a", "board=b", "odd", "!odd"]), st.integers(0, 2)),
    max_size=8,
)


@given(st.integers(1, 8), requests)
def test_the_order_of_the_device_list_does_not_matter(
    count: int, wanted: list[tuple[str, int]]
) -> None:
    """Give the same devices to the same requests, however the devices came in."""
    devices = [
        register(f"d{i}", labels={"board": "ab"[i % 2], "odd": str(i % 2 == 1)})
        for i in range(count)
    ]

    def play(order: list[int]) -> list[tuple[str, str]]:
        world = World()
        for i in order:
            device_side.register(world.fleet, world.now, f"p{i}", "h", devices[i])
        for number, (need, priority) in enumerate(wanted):
            said = ask(f"r{number}", need, priority=priority)
            try:
                client_side.request(world.fleet, world.now, "c", said)
            except NoMatch:
                continue
        found = grants(world.step(0.0))
        leases = world.fleet.leases.current
        return [(leases[grant.lease].waiter.request, id_) for id_, grant in found]

    forwards = list(range(count))
    assert play(forwards) == play(forwards[::-1])
