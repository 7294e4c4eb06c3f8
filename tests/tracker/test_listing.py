"""Pages of devices and of the queue."""

from __future__ import annotations

import pytest

from farbench_rpc.codec import encode
from farbench_rpc.errors import InvalidArgument
from farbench_rpc.limits import MAX_HEADER
from farbench_rpc.messages import ListDevices, ListQueue
from farbench_tracker.listing import device_page, queue_page
from tests.tracker.fakes import World, ask, register


def all_devices(world: World, requirement: str = "") -> list[str]:
    """Read every page; each must fit."""
    found: list[str] = []
    cursor = ""
    while True:
        page = device_page(world.fleet, ListDevices(requirement, cursor))
        assert len(encode(page)) <= MAX_HEADER
        found += [device.id for device in page.devices]
        cursor = page.cursor
        if not cursor:
            return found


def test_many_devices_come_as_pages_in_order() -> None:
    world = World()
    for i in range(700):
        world.device(register(f"d{i:04}", labels={"odd": str(i % 2 == 1), "text": "x" * 100}))
    assert all_devices(world) == [f"d{i:04}" for i in range(700)]
    assert all_devices(world, "odd") == [f"d{i:04}" for i in range(1, 700, 2)]
    assert all_devices(world, "id=d0333") == ["d0333"]
    assert all_devices(world, "nothing") == []


def test_large_descriptions_make_small_pages() -> None:
    world = World()
    for i in range(5):
        world.device(register(f"d{i}", labels={"text": "x" * 40_000}))
    assert len(all_devices(world)) == 5


def test_a_page_shows_state_holder_and_address() -> None:
    world = World()
    world.device(register("d", name="board one"))
    lease = world.lease("r")
    [device] = device_page(world.fleet, ListDevices()).devices
    assert (device.name, device.state, device.holder) == ("board one", "leased", "ann")
    assert (device.lease, device.epoch, device.addresses) == (lease.lease, 1, ("10.0.0.1:7000",))


def test_a_bad_requirement_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="character 3"):
        device_page(World().fleet, ListDevices("a="))


def test_the_queue_comes_as_pages_in_the_order_of_service() -> None:
    world = World()
    world.device(register("d"))
    world.lease("holder")
    for i in range(600):
        world.request(ask(f"r{i:03}", priority=i % 2))
    world.step(0.5)
    found = []
    cursor = ""
    while True:
        page = queue_page(world.fleet, world.now, ListQueue(cursor))
        assert len(encode(page)) <= MAX_HEADER
        found += list(page.entries)
        cursor = page.cursor
        if not cursor:
            break
    assert [entry.request for entry in found] == [f"r{i:03}" for i in range(1, 600, 2)] + [
        f"r{i:03}" for i in range(0, 600, 2)
    ]
    assert (found[0].user, found[0].waited_s) == ("ann", 0.5)
    assert found[0].reason == "1 device matches: 1 leased"


def test_a_strange_cursor_is_refused() -> None:
    world = World()
    with pytest.raises(InvalidArgument, match="not a cursor"):
        queue_page(world.fleet, world.now, ListQueue("here"))
