"""The endpoint: hello first, versions, caps, slow and vanished peers, strangers' bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farbench_rpc.codec import decode, encode
from farbench_rpc.errors import InvalidArgument, RpcError
from farbench_rpc.limits import CHUNK, MAX_FRAMES
from farbench_rpc.messages import (
    VERSION,
    Called,
    ErrorReply,
    Grant,
    Hello,
    Message,
    Ok,
    Ping,
    Revoke,
    Welcome,
)
from farbench_rpc.server import Endpoint, EndpointSettings, Incoming
from farbench_rpc.transport.base import Buffer
from farbench_rpc.transport.memory import MemoryChannel, MemoryListener
from farbench_rpc.transport.sockets import SocketSettings

PING = Ping()


class Bench:
    """An endpoint over memory, everything in one thread."""

    def __init__(self, settings: EndpointSettings | None = None) -> None:
        self._channels: list[MemoryChannel] = []
        chosen = settings or EndpointSettings()
        self.hub = MemoryListener("bench", chosen.socket.send_high_water)
        self.endpoint = Endpoint(self.hub, "device", welcome={"ttl_s": 3.0}, settings=chosen)

    def stranger(self) -> MemoryChannel:
        """Give a channel that has said nothing."""
        self._channels.append(self.hub.connect())
        return self._channels[-1]

    def close(self) -> None:
        """Close all."""
        for channel in self._channels:
            channel.close()
        self.endpoint.close()

    def connect(self, minor: int = VERSION[1]) -> MemoryChannel:
        """Give a channel that has said Hello."""
        channel = self.stranger()
        say(channel, Hello("client", (VERSION[0], minor), "test"))
        assert self.endpoint.receive() is None
        assert isinstance(heard(channel)[0], Welcome)
        return channel

    def ask(self, channel: MemoryChannel, message: Message = PING, request: int = 1) -> Incoming:
        """Give a request as the endpoint sees it."""
        say(channel, message, request)
        incoming = self.endpoint.receive()
        assert incoming is not None
        return incoming


def say(channel: MemoryChannel, message: Message, request: int = 0) -> None:
    channel.send([encode(message, request)], time.monotonic() + 5)


def raw(channel: MemoryChannel, *frames: Buffer) -> None:
    channel.send(frames, time.monotonic() + 5)


def heard(channel: MemoryChannel) -> tuple[Message, int]:
    frames = channel.receive()
    assert frames is not None
    found = decode(frames[0])
    return found.message, found.request_id


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


@pytest.fixture
def narrow() -> Iterator[Bench]:
    sockets = SocketSettings(send_high_water=4, receive_high_water=4)
    made = Bench(EndpointSettings(socket=sockets, max_backlog=8, max_peers=2))
    yield made
    made.close()


def test_hello_comes_first(bench: Bench) -> None:
    channel = bench.stranger()
    say(channel, Ping(), 4)
    assert bench.endpoint.receive() is None
    error, request = heard(channel)
    assert isinstance(error, ErrorReply)
    assert (request, error.code, error.message) == (4, "protocol", "say Hello first")
    assert bench.endpoint.peers == ()


def test_welcome_tells_role_version_and_settings(bench: Bench) -> None:
    channel = bench.stranger()
    say(channel, Hello("client", (VERSION[0], VERSION[1] + 5), "me"))
    assert bench.endpoint.receive() is None
    assert heard(channel) == (Welcome("device", VERSION, {"ttl_s": 3.0}), 0)
    (peer,) = bench.endpoint.peers
    assert (peer.role, peer.agent, peer.minor, peer.host) == ("client", "me", VERSION[1], "bench")


def test_another_major_version_hears_both(bench: Bench) -> None:
    channel = bench.stranger()
    body = {"role": "client", "version": [9, 1], "more": 1}
    raw(channel, msgpack.packb([1, "hello", 0, body]))
    assert bench.endpoint.receive() is None
    error, _ = heard(channel)
    assert isinstance(error, ErrorReply)
    assert error.code == "version"
    assert error.detail == {"ours": ".".join(map(str, VERSION)), "theirs": "9.1"}
    assert bench.endpoint.peers == ()


def test_request_and_reply(bench: Bench) -> None:
    channel = bench.connect()
    incoming = bench.ask(channel, Ping(), 9)
    assert incoming.message == Ping()
    assert bench.endpoint.event(incoming, Called(1))
    assert bench.endpoint.reply(incoming, Ok(), [b"frame"])
    assert heard(channel) == (Called(1), 9)
    assert channel.receive() == [encode(Ok(), 9), b"frame"]


def test_what_wants_no_answer_gets_none_but_an_error(bench: Bench) -> None:
    channel = bench.connect()
    incoming = bench.ask(channel, Ping(), 0)
    assert bench.endpoint.reply(incoming, Ok())
    assert channel.receive() is None
    bench.endpoint.error(incoming, RpcError("no", {"x": 1}))
    assert heard(channel) == (ErrorReply("infra", "no", {"x": 1}), 0)


def test_pushes_have_negative_ids_and_are_answered(bench: Bench) -> None:
    channel = bench.connect()
    (peer,) = bench.endpoint.peers
    grant = Grant("l", 1, "t", 3.0, 60.0)
    assert bench.endpoint.push(peer, grant) == -1
    assert bench.endpoint.push(peer, Revoke("l", 1, "over")) == -2
    assert heard(channel) == (grant, -1)
    say(channel, Ok(), -1)
    answer = bench.endpoint.receive()
    assert answer is not None
    assert (answer.request_id, answer.message) == (-1, Ok())
    assert bench.endpoint.tell(peer, Revoke("l", 1, "over"))


def test_a_bad_message_is_answered_with_its_id(bench: Bench) -> None:
    channel = bench.connect()
    raw(channel, msgpack.packb([0, "free", 17, {"arrays": ["x"]}]))
    assert bench.endpoint.receive() is None
    error, request = heard(channel)
    assert isinstance(error, ErrorReply)
    assert request == 17
    assert "arrays[0]" in error.message
    assert bench.ask(channel).message == Ping()


def test_random_bytes_of_a_stranger_get_no_answer(bench: Bench) -> None:
    channel = bench.stranger()
    raw(channel, b"\xff\x00junk")
    assert bench.endpoint.receive() is None
    assert channel.receive() is None
    assert bench.endpoint.refused["not a message"] == 1


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=3))
def test_fuzzed_frames_grow_nothing(frames: list[bytes]) -> None:
    bench = Bench()
    known, stranger = bench.connect(), bench.stranger()
    for channel in (known, stranger):
        raw(channel, *frames)
        bench.endpoint.receive()
    assert len(bench.endpoint.peers) == 1
    while known.receive() is not None:
        pass
    assert bench.ask(known).message == Ping()
    bench.close()


def test_a_second_hello_starts_anew(bench: Bench) -> None:
    channel = bench.connect()
    (before,) = bench.endpoint.peers
    say(channel, Hello("client"))
    assert bench.endpoint.receive() is None
    (after,) = bench.endpoint.peers
    assert before.gone
    assert after is not before
    assert bench.endpoint.take_gone() == [before]


def test_a_closed_channel_is_gone(bench: Bench) -> None:
    channel = bench.connect()
    incoming = bench.ask(channel)
    channel.close()
    assert bench.endpoint.receive() is None
    assert bench.endpoint.take_gone() == [incoming.peer]
    assert bench.endpoint.take_gone() == []
    assert not bench.endpoint.reply(incoming, Ok())
    assert bench.endpoint.push(incoming.peer, Ping()) == 0


def test_too_many_peers_are_refused(narrow: Bench) -> None:
    for _ in range(2):
        narrow.connect()
    channel = narrow.stranger()
    say(channel, Hello("client"))
    assert narrow.endpoint.receive() is None
    error, _ = heard(channel)
    assert isinstance(error, ErrorReply)
    assert "serves 2 peers and takes no more" in error.message


def test_a_forgotten_peer_must_say_hello_again(bench: Bench) -> None:
    cut, other = bench.connect(), bench.connect()
    forgotten, kept = bench.ask(cut).peer, bench.ask(other).peer
    bench.endpoint.forget(forgotten)
    assert bench.endpoint.peers == (kept,)
    assert bench.endpoint.take_gone() == [forgotten]
    say(cut, Ping(), 2)
    assert bench.endpoint.receive() is None
    assert isinstance(heard(cut)[0], ErrorReply)


def test_a_slow_peer_is_kept_for_then_cut(narrow: Bench) -> None:
    slow, fine = narrow.connect(), narrow.connect()
    to_slow, to_fine = narrow.ask(slow), narrow.ask(fine)
    assert narrow.endpoint.patience_ms(1000) == 1000
    assert all(narrow.endpoint.event(to_slow, Called(i)) for i in range(12))
    assert narrow.endpoint.patience_ms(1000) < 1000
    assert narrow.endpoint.reply(to_fine, Ok())
    assert not narrow.endpoint.event(to_slow, Called(12))
    assert narrow.endpoint.take_gone() == [to_slow.peer]
    assert narrow.endpoint.patience_ms(1000) == 1000
    assert heard(fine) == (Ok(), 1)


def test_a_slow_peer_that_reads_again_loses_nothing(narrow: Bench) -> None:
    slow = narrow.connect()
    incoming = narrow.ask(slow)
    for i in range(12):
        assert narrow.endpoint.event(incoming, Called(i))
    got: list[int] = []
    while len(got) < 12:
        message, _ = heard(slow)
        assert isinstance(message, Called)
        got.append(message.elapsed_ns)
        assert narrow.endpoint.receive() is None
    assert got == list(range(12))


def test_caps_hold_for_what_is_sent(bench: Bench) -> None:
    incoming = bench.ask(bench.connect())
    with pytest.raises(InvalidArgument, match="frames"):
        bench.endpoint.reply(incoming, Ok(), [b""] * (MAX_FRAMES + 1))
    with pytest.raises(InvalidArgument, match="bytes"):
        bench.endpoint.reply(incoming, Ok(), [bytes(CHUNK * 2)])
