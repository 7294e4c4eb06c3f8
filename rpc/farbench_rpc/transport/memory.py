"""Frames between two threads of one process, with the same manners as over a network.

hub = MemoryListener()
channel = hub.connect()          # another thread may use it
channel.send([b"header"], deadline)
arrival = hub.receive()          # Arrival(peer, [b"header"])
"""

from __future__ import annotations

import itertools
import selectors
import threading
import time
from collections import deque

from farbench_rpc.address import Address
from farbench_rpc.errors import ConnectError, RemoteTimeout
from farbench_rpc.limits import HIGH_WATER
from farbench_rpc.transport.base import Arrival, Bell, Buffer, Frames, Pollable, Sent


class MemoryListener:
    """The end that many MemoryChannels reach."""

    def __init__(self, name: str = "local", high_water: int = HIGH_WATER) -> None:
        self.address: Address | None = None
        self.name = name
        self.high_water = high_water
        self._bell = Bell()
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._inbox: deque[Arrival] = deque()
        self._channels: dict[bytes, MemoryChannel] = {}
        self._gone: list[bytes] = []
        self._closed = False

    @property
    def pollables(self) -> tuple[Pollable, ...]:
        """Give the descriptor that becomes readable when something arrives."""
        return (self._bell.fileno(),)

    def connect(self) -> MemoryChannel:
        """Make a channel to here; ConnectError once closed."""
        with self._lock:
            if self._closed:
                raise ConnectError(f"{self.name} is closed")
            channel = MemoryChannel(self, b"m%d" % next(self._ids))
            self._channels[channel.id] = channel
            return channel

    def dial(self, deadline: float) -> MemoryChannel:
        """Make a channel, as a `Dial`; it is open at once."""
        return self.connect()

    def receive(self) -> Arrival | None:
        """Give the next message of any channel, None if there is none."""
        self._bell.clear()
        try:
            arrival = self._inbox.popleft()
        except IndexError:
            return None
        sender = self._channels.get(arrival.peer)
        if sender is not None:
            sender.taken()
        if self._inbox:
            self._bell.ring()  # level-triggered, as a socket is
        return arrival

    def send(self, peer: bytes, frames: Frames) -> Sent:
        """Hand a message over without waiting."""
        channel = self._channels.get(peer)
        if channel is None:
            return Sent.GONE
        return Sent.DONE if channel.offer(list(frames)) else Sent.FULL

    def origin(self, peer: bytes) -> str:
        """Give the name of this listener: a channel is in the same process."""
        return self.name

    def take_gone(self) -> list[bytes]:
        """Give the channels closed since the last call."""
        with self._lock:
            gone, self._gone = self._gone, []
            return gone

    def close(self) -> None:
        """Close; its channels find the connection ended."""
        with self._lock:
            self._closed = True
            channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.cut()
        self._bell.close()

    def deliver(self, arrival: Arrival) -> None:
        """Take a message from a channel."""
        self._inbox.append(arrival)
        self._bell.ring()

    def leave(self, peer: bytes) -> None:
        """Forget a channel that closed."""
        with self._lock:
            if self._channels.pop(peer, None) is not None:
                self._gone.append(peer)
        self._bell.ring()


class MemoryChannel:
    """The end that dials; made by MemoryListener.connect."""

    def __init__(self, listener: MemoryListener, peer_id: bytes) -> None:
        self.id = peer_id
        self.peer = listener.name
        self._listener = listener
        self._bell = Bell()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._bell, selectors.EVENT_READ)
        self._inbox: deque[list[Buffer]] = deque()
        self._room = threading.Semaphore(listener.high_water)
        self._cut = False
        self._closed = False

    @property
    def pollables(self) -> tuple[Pollable, ...]:
        """Give the descriptor that becomes readable when something arrives."""
        return (self._bell.fileno(),)

    def is_open(self) -> bool:
        """Tell that frames can travel; ConnectError when the listener closed."""
        if self._cut or self._closed:
            raise ConnectError(f"the connection to {self.peer} is closed")
        return True

    def stage(self) -> str:
        """Say what it waits for: nothing, it opens at once."""
        return "open"

    def send(self, frames: Frames, deadline: float) -> None:
        """Hand a message over; waits for room until `deadline`."""
        self.is_open()
        if not self._room.acquire(blocking=False):
            limit_s = max(0.0, deadline - time.monotonic())
            if not self._room.acquire(timeout=limit_s):
                raise RemoteTimeout(
                    f"{self.peer} took no message for {limit_s:.3g} s",
                    {"limit_s": limit_s, "elapsed_s": limit_s, "waited_for": "room to send"},
                )
            self.is_open()
        self._listener.deliver(Arrival(self.id, list(frames)))

    def receive(self) -> list[Buffer] | None:
        """Give the next message, None if there is none; ConnectError when it is over."""
        self._bell.clear()
        try:
            frames = self._inbox.popleft()
        except IndexError:
            self.is_open()
            return None
        if self._inbox or self._cut:
            self._bell.ring()
        return frames

    def wait(self, timeout_s: float) -> None:
        """Return when something may be received, on `wake`, or after `timeout_s`."""
        self._selector.select(timeout_s)

    def wake(self) -> None:
        """Make a `wait` of another thread return."""
        self._bell.ring()

    def abandon(self) -> None:
        """Make a `send` or `wait` of another thread end soon."""
        self.cut()

    def close(self) -> None:
        """Close it; the listener finds it gone."""
        if not self._closed:
            self._closed = True
            self._listener.leave(self.id)
            self._selector.close()
            self._bell.close()

    def offer(self, frames: list[Buffer]) -> bool:
        """Take a message from the listener; False when too many wait."""
        if len(self._inbox) >= self._listener.high_water:
            return False
        self._inbox.append(frames)
        self._bell.ring()
        return True

    def taken(self) -> None:
        """Make room for one more message."""
        self._room.release()

    def cut(self) -> None:
        """Learn that the listener closed."""
        self._cut = True
        self._room.release()
        self._bell.ring()
