"""Which devices a requirement fits, kept up to date."""

from __future__ import annotations

import pytest

from farbench_tracker.errors import RequirementError
from farbench_tracker.pools import IDLE_POOLS
from farbench_tracker.registry import Registry
from tests.tracker.fakes import World, ask, grants, register


def world_of(*boards: str) -> World:
    """Make a world with a device for each board."""
    world = World()
    for i, board in enumerate(boards):
        world.device(register(f"d{i}", labels={"board": board}))
    return world


def test_one_pool_for_all_spellings() -> None:
    pools = world_of("a").fleet.registry.pools
    assert pools.get("board = a") is pools.get("board=a")


def test_a_bad_text_makes_no_pool() -> None:
    with pytest.raises(RequirementError):
        Registry().pools.get("a=")


def test_the_longest_unused_device_is_granted_first() -> None:
    world = world_of("a", "a")
    order = []
    for name in ("r0", "r1", "r2"):
        lease = world.lease(name)
        order.append(lease.device.id)
        world.step(0.1)
        device = world.fleet.registry.devices[lease.device.id]
        world.beat(device.id, epoch=device.epoch)
    assert order == ["d0", "d1", "d0"]


def test_a_change_of_labels_moves_a_device() -> None:
    world = world_of("a")
    pool = world.fleet.registry.pools.get("board=b")
    assert pool.members == set()
    world.device(register("d0", labels={"board": "b"}))
    assert pool.members == {"d0"}
    assert grants(world.request(ask("r", "board=b")))


def test_unused_pools_are_dropped_and_made_again() -> None:
    world = world_of("a")
    pools = world.fleet.registry.pools
    kept = pools.get("board=a")
    for i in range(IDLE_POOLS + 10):
        pools.get(f"cores>={i}")
    again = pools.get("board=a")
    assert again is not kept
    assert again.members == {"d0"}
    assert len(repr(pools).split("Pool(")) <= IDLE_POOLS + 2


def test_a_pool_with_waiters_is_kept() -> None:
    world = world_of("a")
    world.lease("holder")
    world.request(ask("r", "board=a"))
    pools = world.fleet.registry.pools
    kept = pools.get("board=a")
    for i in range(IDLE_POOLS + 10):
        pools.get(f"cores>={i}")
    assert pools.get("board=a") is kept


def test_stale_offers_do_not_pile_up() -> None:
    world = world_of("a")
    pool = world.fleet.registry.pools.get("!never")
    world.fleet.registry.pools.get("board=a")
    for i in range(300):
        lease = world.lease(f"r{i}", "board=a")
        world.step(0.01)
        world.beat("d0", epoch=lease.epoch)
    assert pool.first_free(world.fleet.registry.devices) is world.fleet.registry.devices["d0"]
    assert pool.offers <= 70
