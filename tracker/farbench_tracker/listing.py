"""Devices and queue as pages that fit a header frame."""

from __future__ import annotations

from typing import Final

from farbench_rpc.codec import encode
from farbench_rpc.errors import InvalidArgument
from farbench_rpc.messages import (
    DeviceInfo,
    DevicePage,
    ListDevices,
    ListQueue,
    Message,
    QueueEntry,
    QueuePage,
)
from farbench_tracker.errors import RequirementError
from farbench_tracker.fleet import Fleet
from farbench_tracker.pools import Rank
from farbench_tracker.requirement import parse

PAGE_BYTES: Final = 56 * 1024
PAGE_ITEMS: Final = 256
# Devices looked at for one page, so that a requirement that fits few does not hold up the rest.
PAGE_LOOKS: Final = 2_000


def device_page(fleet: Fleet, said: ListDevices) -> DevicePage:
    """Give the devices behind the cursor that match; a page may be empty and not the last.

    Raises:
        InvalidArgument: the requirement cannot be read.
    """
    try:
        requirement = parse(said.requirement)
    except RequirementError as error:
        raise InvalidArgument(str(error), {"position": error.position}) from error
    ids = fleet.registry.ids_after(said.cursor)
    found: list[DeviceInfo] = []
    room, last = _Room(), said.cursor
    for id_ in ids[:PAGE_LOOKS]:
        device = fleet.registry.devices[id_]
        if requirement.matches(device):
            info = device.info()
            if not room.take(info):
                return DevicePage(tuple(found), last)
            found.append(info)
        last = id_
    return DevicePage(tuple(found), last if len(ids) > PAGE_LOOKS else "")


def queue_page(fleet: Fleet, now: float, said: ListQueue) -> QueuePage:
    """Give the waiting requests behind the cursor, in the order of service.

    Raises:
        InvalidArgument: the cursor is not one that a page gave.
    """
    found: list[QueueEntry] = []
    room, last = _Room(), said.cursor
    for waiter in fleet.queue.after(_rank(said.cursor)):
        entry = QueueEntry(
            waiter.request,
            waiter.user,
            waiter.requirement,
            waiter.priority,
            now - waiter.arrived_s,
            fleet.registry.pools.get(waiter.requirement).reason(),
        )
        if not room.take(entry):
            return QueuePage(tuple(found), last)
        found.append(entry)
        last = f"{-waiter.priority}:{waiter.order}:{waiter.request}"
    return QueuePage(tuple(found))


def _rank(cursor: str) -> Rank | None:
    if not cursor:
        return None
    try:
        priority, order, request = cursor.split(":", 2)
        return int(priority), int(order), request
    except ValueError:
        raise InvalidArgument(f"{cursor[:40]!r} is not a cursor of this list") from None


class _Room:
    """What a page has room for still."""

    def __init__(self) -> None:
        self._bytes = PAGE_BYTES
        self._items = PAGE_ITEMS

    def take(self, part: Message) -> bool:
        self._bytes -= len(encode(part))
        self._items -= 1
        return self._bytes >= 0 and self._items >= 0
