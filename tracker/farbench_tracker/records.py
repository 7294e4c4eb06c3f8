"""What the journal holds, as plain rows: times are seconds of the wall clock since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import msgpack

from farbench_tracker.requirement import FactValue


@dataclass(frozen=True)
class DeviceRecord:
    """A device as it described itself, and the highest epoch that it was granted with."""

    id: str
    name: str
    labels: Mapping[str, str]
    facts: Mapping[str, FactValue]
    addresses: tuple[str, ...]
    epoch: int
    seen_at: float

    def row(self) -> tuple[object, ...]:
        """Give it as SQLite takes it."""
        packed = (msgpack.packb(part) for part in (self.labels, self.facts, self.addresses))
        return (self.id, self.name, *packed, self.epoch, self.seen_at)

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> DeviceRecord:
        """Read a row; ValueError where it is damaged."""
        id_, name, labels, facts, addresses, epoch, seen_at = row
        known = {k: tuple(v) if isinstance(v, list) else v for k, v in _unpacked(facts).items()}
        return cls(id_, name, _unpacked(labels), known, tuple(_unpacked(addresses)), epoch, seen_at)


@dataclass(frozen=True)
class WaiterRecord:
    """A request that is not served; `place` is its place among equals."""

    request: str
    requirement: str
    user: str
    priority: int
    place: int
    arrived_at: float
    deadline_at: float
    session_timeout_s: float

    def row(self) -> tuple[object, ...]:
        """Give it as SQLite takes it."""
        return astuple(self)

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> WaiterRecord:
        """Read a row."""
        return cls(*row)


@dataclass(frozen=True)
class LeaseRecord:
    """A lease that its client holds, and the request that it serves."""

    id: str
    epoch: int
    token: str
    device: str
    granted_at: float
    hard_end_at: float
    waiter: WaiterRecord

    def row(self) -> tuple[object, ...]:
        """Give it as SQLite takes it."""
        own = (self.id, self.epoch, self.token, self.device, self.granted_at, self.hard_end_at)
        return (*own, *self.waiter.row())

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> LeaseRecord:
        """Read a row."""
        id_, epoch, token, device, granted_at, hard_end_at, *waiter = row
        served = WaiterRecord.of_row(tuple(waiter))
        return cls(id_, epoch, token, device, granted_at, hard_end_at, served)


@dataclass(frozen=True)
class Records:
    """All records, or those that a turn changed."""

    devices: tuple[DeviceRecord, ...] = ()
    leases: tuple[LeaseRecord, ...] = ()
    waiters: tuple[WaiterRecord, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.devices or self.leases or self.waiters)


def _unpacked(data: bytes) -> Any:
    try:
        return msgpack.unpackb(data)
    except Exception as cause:  # msgpack has no common class of its own for what is damaged
        raise ValueError(f"a row is damaged: {cause}") from cause
