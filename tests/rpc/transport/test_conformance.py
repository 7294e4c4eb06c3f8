"""What every transport owes the layers above, over each of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from farbench_rpc.address import parse_address
from farbench_rpc.errors import ConnectError, RemoteTimeout
from farbench_rpc.limits import CHUNK, MAX_FRAMES
from farbench_rpc.transport.base import Arrival, Channel, Dial, Listener, Sent
from farbench_rpc.transport.memory import MemoryListener
from farbench_rpc.transport.sockets import SocketSettings
from farbench_rpc.transport.zmq import ZmqChannel
from farbench_rpc.transport.zmq_listener import ZmqListener

LOW = SocketSettings(send_high_water=4, receive_high_water=4)


class Ends:
    """A listener, and channels to it."""

    def __init__(self, place: str) -> None:
        self.listener: Listener
        self.dial: Dial
        if place == "memory":
            hub = MemoryListener("memory", LOW.send_high_water)
            self.listener, self.dial = hub, hub.dial
        else:
            tcp = ZmqListener.bind(parse_address(place), settings=LOW)
            assert tcp.address is not None
            self.listener, self.dial = tcp, ZmqChannel.dial(tcp.address, LOW)
        self.channels: list[Channel] = []

    def connect(self) -> Channel:
        """Give a channel that is open."""
        channel = self.dial(time.monotonic() + 10)
        self.channels.append(channel)

        def is_open() -> bool:
            if not channel.is_open():
                channel.wait(1)
            return channel.is_open()

        until(is_open)
        return channel

    def arrival(self) -> Arrival:
        """Wait for the next message at the listener."""
        return until(self.listener.receive)

    def close(self) -> None:
        """Close all."""
        for channel in self.channels:
            channel.close()
        self.listener.close()


T = TypeVar("T")


def until(found: Callable[[], T | None], limit_s: float = 10) -> T:
    """Ask again until there is something."""
    deadline = time.monotonic() + limit_s
    while True:
        result = found()
        if result:
            return result
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture
def ends(place: str) -> Iterator[Ends]:
    both = Ends(place)
    yield both
    both.close()


def received(channel: Channel) -> list[bytes]:
    """Wait for the next message of a channel."""

    def look() -> list[bytes] | None:
        frames = channel.receive()
        if frames is None:
            channel.wait(1)
            return None
        return [bytes(f) for f in frames]

    return until(look)


def test_there_and_back(ends: Ends) -> None:
    channel = ends.connect()
    channel.send([b"header", b"", b"x" * 300_000], time.monotonic() + 5)
    peer, frames = ends.arrival()
    assert [bytes(f) for f in frames] == [b"header", b"", b"x" * 300_000]
    assert ends.listener.send(peer, [b"answer", memoryview(b"y" * CHUNK)]) is Sent.DONE
    assert received(channel) == [b"answer", b"y" * CHUNK]
    assert channel.receive() is None
    assert ends.listener.receive() is None


def test_order_is_kept_and_peers_are_apart(ends: Ends) -> None:
    one, two = ends.connect(), ends.connect()
    for i in range(3):
        one.send([b"1%d" % i], time.monotonic() + 5)
        two.send([b"2%d" % i], time.monotonic() + 5)
    by_peer: dict[bytes, list[bytes]] = {}
    for _ in range(6):
        peer, frames = ends.arrival()
        by_peer.setdefault(peer, []).append(bytes(frames[0]))
    assert sorted(by_peer.values()) == [[b"10", b"11", b"12"], [b"20", b"21", b"22"]]


def test_a_listener_that_does_not_read_stops_a_sender_at_its_deadline(ends: Ends) -> None:
    channel = ends.connect()

    def flood() -> None:
        for _ in range(1000):
            channel.send([b"h", bytes(CHUNK)], time.monotonic() + 0.3)

    with pytest.raises(RemoteTimeout, match="took no message") as caught:
        flood()
    assert caught.value.detail["waited_for"] == "room to send"
    first = ends.arrival()
    assert bytes(first.frames[0]) == b"h"


def test_a_channel_that_does_not_read_never_stops_a_listener(ends: Ends) -> None:
    slow, other = ends.connect(), ends.connect()
    slow.send([b"slow"], time.monotonic() + 5)
    peer = ends.arrival().peer
    outcome = [ends.listener.send(peer, [b"h", bytes(CHUNK)]) for _ in range(200)]
    assert Sent.FULL in outcome
    other.send([b"other"], time.monotonic() + 5)
    fine = ends.arrival().peer
    assert ends.listener.send(fine, [b"fine"]) is Sent.DONE
    assert received(other) == [b"fine"]
    for _ in range(outcome.count(Sent.DONE)):
        assert received(slow) == [b"h", bytes(CHUNK)]


def test_the_end_of_a_channel_is_noticed(ends: Ends) -> None:
    channel = ends.connect()
    channel.send([b"hello"], time.monotonic() + 5)
    peer = ends.arrival().peer
    assert ends.listener.take_gone() == []
    channel.close()

    def gone() -> list[bytes]:
        assert ends.listener.receive() is None
        return ends.listener.take_gone()

    assert until(gone) == [peer]
    assert ends.listener.send(peer, [b"late"]) is Sent.GONE
    assert ends.listener.take_gone() == []


def test_the_end_of_a_listener_is_noticed(ends: Ends) -> None:
    channel = ends.connect()
    channel.send([b"hello"], time.monotonic() + 5)
    ends.arrival()
    ends.listener.close()
    with pytest.raises(ConnectError, match="clos"):
        received(channel)
    with pytest.raises(ConnectError, match="clos"):
        channel.send([b"more"], time.monotonic() + 1)


def test_a_wait_ends_by_wake_and_by_time(ends: Ends) -> None:
    channel = ends.connect()
    channel.receive()
    channel.wait(0.01)
    woken = threading.Event()

    def sleeper() -> None:
        channel.wait(60)
        woken.set()

    thread = threading.Thread(target=sleeper)
    thread.start()
    channel.wake()
    assert woken.wait(10)
    thread.join()


def test_the_origin_is_a_host(ends: Ends, place: str) -> None:
    ends.connect().send([b"hello"], time.monotonic() + 5)
    peer = ends.arrival().peer
    assert ends.listener.origin(peer) in {"memory", "127.0.0.1", "::1"}
    assert ends.listener.origin(b"nobody") in {"", "memory"}


def test_close_twice_is_fine(ends: Ends) -> None:
    channel = ends.connect()
    for _ in range(2):
        channel.close()
        ends.listener.close()
    channel.wake()


@pytest.mark.parametrize("ends", ["127.0.0.1:0"], indirect=False)
def test_too_many_frames_are_dropped(ends: str) -> None:
    both = Ends(ends)
    channel = both.connect()
    channel.send([b"h"] + [b"f"] * (MAX_FRAMES + 1), time.monotonic() + 5)
    channel.send([b"h"] + [bytes(CHUNK)] * 5, time.monotonic() + 5)
    channel.send([b"good"], time.monotonic() + 5)
    assert [bytes(f) for f in both.arrival().frames] == [b"good"]
    both.close()
