"""The devices that the tracker knows, by id and by connection."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Final

from farbench_tracker.device import Device, Peer, State
from farbench_tracker.pools import Pools


class Registry:
    """Devices by id and by connection, and the pools of those that fit a requirement."""

    def __init__(self) -> None:
        self.devices: Final[dict[str, Device]] = {}
        self.pools: Final = Pools(self.devices)
        self.changed: Final[set[str]] = set()  # ids of which the journal is to hear
        self._by_peer: Final[dict[Peer, Device]] = {}  # those with a connection
        self._ids: Final[list[str]] = []

    def __repr__(self) -> str:
        shown = ", ".join(f"{d.id} {d.state} epoch {d.epoch}" for d in self.devices.values())
        return f"Registry({shown})"

    def of_peer(self, peer: Peer) -> Device | None:
        """Give the device that speaks through a connection."""
        return self._by_peer.get(peer)

    def ids_after(self, cursor: str) -> list[str]:
        """Give the ids behind `cursor` in order."""
        return self._ids[bisect_right(self._ids, cursor) :]

    def add(self, device: Device) -> None:
        """Take in a device whose id is new."""
        insort(self._ids, device.id)
        self.devices[device.id] = device
        self.changed.add(device.id)
        self._bind(device)

    def update(self, device: Device, like: Device) -> None:
        """Give `device` the name, labels, facts, addresses and connection of `like`."""
        self.pools.leave(device)
        self._unbind(device)
        device.name, device.labels, device.facts = like.name, like.labels, like.facts
        device.addresses, device.peer, device.seen_s = like.addresses, like.peer, like.seen_s
        device.epoch = max(device.epoch, like.epoch)
        self.changed.add(device.id)
        self._bind(device)

    def disconnect(self, device: Device) -> None:
        """Forget the connection of a device."""
        self._unbind(device)
        device.peer = None
        self.changed.add(device.id)

    def forget(self, device: Device) -> None:
        """Drop a device."""
        self.pools.leave(device)
        self._unbind(device)
        del self.devices[device.id]
        self.changed.add(device.id)
        del self._ids[bisect_left(self._ids, device.id)]

    def move(self, device: Device, state: State, reason: str = "") -> None:
        """Change the state of a device and tell its pools."""
        old, device.state, device.reason = device.state, state, reason
        self.pools.moved(device, old)

    def _bind(self, device: Device) -> None:
        if device.peer is not None:
            self._by_peer[device.peer] = device
        self.pools.join(device)

    def _unbind(self, device: Device) -> None:
        if device.peer is not None and self._by_peer.get(device.peer) is device:
            del self._by_peer[device.peer]
