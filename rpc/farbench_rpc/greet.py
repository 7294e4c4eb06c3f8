"""The first words of a connection: dial, Hello, Welcome, and why it failed."""

from __future__ import annotations

import time

from farbench_rpc.codec import decode, encode
from farbench_rpc.errors import ProtocolError, RemoteTimeout
from farbench_rpc.messages import VERSION, ErrorReply, Hello, Message, Welcome
from farbench_rpc.replies import to_error, version_mismatch
from farbench_rpc.transport.base import Channel, Dial


def greet(dial: Dial, role: str, agent: str, timeout_s: float) -> tuple[Channel, Welcome]:
    """Dial and exchange Hello and Welcome; raises ConnectError, RemoteTimeout, VersionMismatch."""
    started = time.monotonic()
    deadline = started + timeout_s
    channel = dial(deadline)
    try:
        while not channel.is_open():
            _wait(channel, channel.stage(), started, timeout_s)
        channel.send([hello(role, agent)], deadline)
        while (frames := channel.receive()) is None:
            _wait(channel, "welcome", started, timeout_s)
        return channel, read_welcome(decode(frames[0]).message, channel.peer)
    except BaseException:
        channel.close()
        raise


def hello(role: str, agent: str) -> bytes:
    """Write the header of a Hello, with the fields that every minor version has."""
    return encode(Hello(role=role, version=VERSION, agent=agent), 0, 0)


def read_welcome(message: Message, peer: str) -> Welcome:
    """Check the answer to Hello; raises what it says instead of a welcome."""
    if type(message) is ErrorReply:
        raise to_error(message)
    if type(message) is not Welcome:
        raise ProtocolError(f"{peer} answered Hello with {message.KIND}")
    if message.version[0] != VERSION[0]:
        raise version_mismatch("this side", message.version)
    if message.version[1] > VERSION[1]:
        raise ProtocolError(f"{peer} chose a minor version that was not offered")
    return message


def _wait(channel: Channel, waited_for: str, started: float, limit_s: float) -> None:
    elapsed_s = time.monotonic() - started
    if elapsed_s >= limit_s:
        raise RemoteTimeout(
            f"no {waited_for} from {channel.peer} within {limit_s:g} s; {_ADVICE[waited_for]}",
            {"limit_s": limit_s, "elapsed_s": elapsed_s, "waited_for": waited_for},
        )
    channel.wait(limit_s - elapsed_s)


_ADVICE = {
    "connection": "nothing answers at that address: is the machine up and reachable?",
    "handshake": "it takes connections but says nothing: not our protocol, or hung",
    "welcome": "it speaks ZeroMQ but not farbench, or is too busy",
    "open": "it does not go on",
}
