"""The keeper: renewals, what ends a lease, and a thread that ends."""

from __future__ import annotations

import threading

from farbench.keeper import Keeper
from farbench.lease import Lease
from farbench_rpc.errors import LeaseLost, RemoteTimeout
from farbench_rpc.messages import DeviceInfo, LeaseGranted, LeaseRenew, LeaseRenewed

INFO = DeviceInfo("id-1", "pi", "leased", {}, {}, (), 3)


def make_lease(name: str = "L1") -> tuple[Lease, list[LeaseLost]]:
    granted = LeaseGranted(name, 3, "token", INFO, ttl_s=3.0, renew_s=1.0, queued_s=0.0)
    lease = Lease(granted, lambda lease: None)
    told: list[LeaseLost] = []
    lease.on_end = told.append
    return lease, told


def test_a_round_renews_every_lease() -> None:
    asked: list[LeaseRenew] = []

    def renew(message: LeaseRenew, timeout_s: float) -> LeaseRenewed:
        asked.append(message)
        return LeaseRenewed(message.leases, {})

    keeper = Keeper(renew, 1000.0, 3000.0)
    first, second = make_lease("L1")[0], make_lease("L2")[0]
    keeper.hold(first)
    keeper.hold(second)
    keeper.round()
    assert set(asked[0].leases) == {"L1", "L2"}
    keeper.drop(first)
    keeper.round()
    assert asked[1].leases == ("L2",)
    keeper.close()


def test_a_lease_that_the_tracker_ended_is_lost_with_the_reason() -> None:
    keeper = Keeper(lambda m, t: LeaseRenewed((), {"L1": "device lost"}), 1000.0, 3000.0)
    lease, told = make_lease()
    keeper.hold(lease)
    keeper.round()
    assert lease.ended == "device lost"
    assert keeper.held() == ()
    assert told[0].detail == {"reason": "device lost", "epoch": 3}
    assert "pi" in told[0].message
    keeper.close()


def test_a_tracker_that_is_silent_ends_a_lease_only_after_its_ttl() -> None:
    def renew(message: LeaseRenew, timeout_s: float) -> LeaseRenewed:
        raise RemoteTimeout("no answer")

    keeper = Keeper(renew, 1000.0, ttl_s=3.0)
    lease, told = make_lease()
    keeper.hold(lease)
    keeper.round(now=lambda: 0.0)
    assert not lease.ended
    keeper.round(now=lambda: float("inf"))
    assert "tracker was not reached" in lease.ended
    assert len(told) == 1
    keeper.close()


def test_the_thread_renews_by_itself_and_ends_at_close() -> None:
    renewed = threading.Event()

    def renew(message: LeaseRenew, timeout_s: float) -> LeaseRenewed:
        renewed.set()
        return LeaseRenewed(message.leases, {})

    before = set(threading.enumerate())  # other trackers of this test run have keepers too
    keeper = Keeper(renew, 0.01, 3.0)
    keeper.hold(make_lease()[0])
    assert renewed.wait(10)
    (thread,) = set(threading.enumerate()) - before
    keeper.close()
    assert not thread.is_alive()


def test_a_lease_is_released_once() -> None:
    released: list[str] = []
    granted = LeaseGranted("L1", 3, "token", INFO, ttl_s=3.0, renew_s=1.0, queued_s=0.0)
    lease = Lease(granted, lambda lease: released.append(lease.id))
    lease.release()
    lease.release()
    assert released == ["L1"]
    assert "released" in repr(lease)
