"""A device's own view of its lease: epochs, tokens, and its own clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from farbench_device_runtime.identity import Identity, StateError
from farbench_device_runtime.leases import Lease, accept, check_open
from farbench_rpc.errors import LeaseLost, Refused
from farbench_rpc.messages import Grant, SessionOpen


def grant(lease: str = "a", epoch: int = 5, ttl_s: float = 3.0) -> Grant:
    return Grant(lease, epoch, "token", ttl_s, 60.0)


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    return Identity(tmp_path, "0" * 32, epoch=4)


@pytest.fixture
def lease(identity: Identity) -> Lease:
    return accept(grant(), None, identity, 100.0)


def test_a_grant_raises_the_epoch(lease: Lease, identity: Identity) -> None:
    assert identity.epoch == 5
    with pytest.raises(Refused, match="epoch 4"):
        accept(grant(epoch=4), None, identity, 0.0)


def test_a_repeat_gets_the_same_lease(lease: Lease, identity: Identity) -> None:
    assert accept(grant(), lease, identity, 101.0) is lease
    with pytest.raises(Refused, match="still serving"):
        accept(grant("b", 6), lease, identity, 101.0)


def test_is_over_when_not_renewed_by_its_own_clock(lease: Lease) -> None:
    assert lease.over(102.9) is None
    lost = lease.over(103.0)
    assert lost is not None
    assert lost.detail["reason"] == "not renewed"
    lease.renew(102.0)
    assert lease.over(104.9) is None
    lease.renew(90.0)
    assert lease.deadline == 105.0


def test_the_session_timeout_is_a_hard_cap(lease: Lease) -> None:
    for now in range(100, 160):
        lease.renew(float(now))
    lost = lease.over(160.0)
    assert lost is not None
    assert lost.detail["reason"] == "session_timeout"


def test_a_lease_without_an_end_is_never_over(identity: Identity) -> None:
    forever = Grant("a", 9, "t", float("inf"), float("inf"))
    assert accept(forever, None, identity, 0.0).over(1e12) is None


@pytest.mark.parametrize("ttl_s", [0.0, -1.0, float("nan")])
def test_a_lease_needs_a_ttl(identity: Identity, ttl_s: float) -> None:
    with pytest.raises(Refused):
        accept(grant(ttl_s=ttl_s), None, identity, 0.0)


def test_only_the_token_of_the_lease_opens_it(lease: Lease) -> None:
    check_open(SessionOpen("a", 5, "token"), lease)
    for lease_id, epoch, token, error in (
        ("b", 5, "token", LeaseLost),
        ("a", 4, "token", Refused),
        ("a", 5, "tokem", Refused),
        ("a", 5, "", Refused),
        ("a", 5, "t\u00f6ken", Refused),
    ):
        with pytest.raises(error):
            check_open(SessionOpen(lease_id, epoch, token), lease)
    with pytest.raises(LeaseLost):
        check_open(SessionOpen("a", 5, "token"), None)


def test_an_epoch_that_cannot_be_kept_is_not_served(identity: Identity) -> None:
    identity.folder /= "gone"
    for _ in range(2):
        with pytest.raises(StateError, match="cannot write"):
            accept(grant(), None, identity, 0.0)
    assert identity.epoch == 4
