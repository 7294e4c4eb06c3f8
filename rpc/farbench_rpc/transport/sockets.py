"""Options of every zmq socket of ours, its monitor, and sending whole messages.

libzmq's defaults linger for ever, know no heartbeat and take frames of any size; none of that
stays. Every socket is monitored, since only its monitor tells refused, closed and not our
protocol apart.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass

import zmq

from farbench_rpc import limits
from farbench_rpc.transport.base import Buffer, Frames, size_of

# Plain numbers: a flag of zmq is an enum, whose `|` and `&` cost more than the call they are for.
NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)
_RCVMORE = int(zmq.RCVMORE)
_EVENTS = int(zmq.EVENTS)
_POLLIN = int(zmq.POLLIN)

_COPY_BELOW = 64 * 1024
_names = itertools.count(1)

EVENT_HANDSHAKE_FAILED = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)
_WATCHED = (
    zmq.EVENT_ACCEPTED
    | zmq.EVENT_CONNECTED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | EVENT_HANDSHAKE_FAILED
)


@dataclass(frozen=True)
class SocketSettings:
    """Limits of one socket; sizes in bytes, times in seconds, high water in messages."""

    max_frame: int = limits.MAX_FRAME
    send_high_water: int = limits.HIGH_WATER
    receive_high_water: int = limits.HIGH_WATER
    linger_s: float = limits.LINGER_S
    heartbeat_s: float = limits.HEARTBEAT_S
    heartbeat_timeout_s: float = limits.HEARTBEAT_TIMEOUT_S
    handshake_s: float = limits.HANDSHAKE_S


def context() -> zmq.Context[zmq.Socket[bytes]]:
    """Give the context of this process (another one after a fork)."""
    return zmq.Context.instance()


def make_socket(kind: int, settings: SocketSettings) -> zmq.Socket[bytes]:
    """Open a socket with our limits set."""
    sock = context().socket(kind)
    options = {
        zmq.LINGER: int(settings.linger_s * 1000),
        zmq.IPV6: 1,
        zmq.MAXMSGSIZE: settings.max_frame,
        zmq.SNDHWM: settings.send_high_water,
        zmq.RCVHWM: settings.receive_high_water,
        zmq.HEARTBEAT_IVL: int(settings.heartbeat_s * 1000),
        zmq.HEARTBEAT_TIMEOUT: int(settings.heartbeat_timeout_s * 1000),
        zmq.HEARTBEAT_TTL: int(settings.heartbeat_timeout_s * 1000),
        zmq.HANDSHAKE_IVL: int(settings.handshake_s * 1000),
        zmq.TCP_KEEPALIVE: 1,
        zmq.TCP_KEEPALIVE_IDLE: 30,
        zmq.TCP_KEEPALIVE_INTVL: 10,
        zmq.TCP_KEEPALIVE_CNT: 3,
        zmq.RECONNECT_IVL: -1,  # whoever dialled decides, with a new socket and a new Hello
    }
    for option, value in options.items():
        sock.setsockopt(option, value)
    return sock


def bound_port(sock: zmq.Socket[bytes]) -> int:
    """Give the port of the latest bind."""
    endpoint = bytes(sock.getsockopt(zmq.LAST_ENDPOINT))
    return int(endpoint.rstrip(b"\0").rpartition(b":")[2])


def send_all(sock: zmq.Socket[bytes], frames: Frames) -> None:
    """Send a message without waiting; large frames are not copied. Raises zmq.ZMQError.

    Only the first frame can be refused: libzmq takes the rest of a message that it has begun.
    """
    last = len(frames) - 1
    for i, frame in enumerate(frames):
        sock.send(frame, _MORE if i < last else NOBLOCK, copy=size_of(frame) < _COPY_BELOW)


def receive_rest(sock: zmq.Socket[bytes], frames: list[Buffer], max_bytes: int) -> bool:
    """Append the payload frames of a message that has some; False if it broke a cap (dropped)."""
    total = 0
    fits = more = True
    while more:
        frame = sock.recv(NOBLOCK, copy=False)
        more = frame.more
        total += len(frame)
        fits = fits and len(frames) <= limits.MAX_FRAMES and total <= max_bytes
        if fits:
            frames.append(frame.buffer)
    return fits


def has_input(sock: zmq.Socket[bytes]) -> bool:
    """Tell whether a message can be received; much cheaper than to try in vain."""
    return bool(int(sock.getsockopt(_EVENTS)) & _POLLIN)


class Monitor:
    """What happens to a socket's connections, read without waiting."""

    def __init__(self, sock: zmq.Socket[bytes]) -> None:
        self._watched = sock
        endpoint = f"inproc://farbench-monitor-{next(_names)}"
        sock.monitor(endpoint, _WATCHED)
        self.socket = context().socket(zmq.PAIR)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(endpoint)

    def pending(self) -> bool:
        """Tell cheaply whether `next` has something."""
        return has_input(self.socket)

    def next(self) -> tuple[int, int] | None:
        """Give (event, value), None if nothing happened; the value is a descriptor or a code."""
        try:
            head = self.socket.recv(NOBLOCK)
        except zmq.Again:
            return None
        while self.socket.getsockopt(_RCVMORE):
            self.socket.recv(NOBLOCK)
        event, value = struct.unpack("=Hi", head)
        return int(event), int(value)

    def close(self) -> None:
        """Stop monitoring; before the socket itself is closed."""
        if not self._watched.closed:
            self._watched.disable_monitor()
        self.socket.close()
