"""The channel over TCP: one DEALER socket, one connection, no silent reconnection.

    channel = ZmqChannel.dial(parse_address("board.lan:9190"))(deadline)
    while not channel.is_open(): channel.wait(0.1)

A name with several addresses is tried address by address. A connection that ends is over: the
layer above dials anew, so that the far side always hears a Hello first.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import zmq

from farbench_rpc import limits
from farbench_rpc.address import Address
from farbench_rpc.errors import ConnectError, RemoteTimeout
from farbench_rpc.moment import Moment
from farbench_rpc.transport.base import Bell, Buffer, Dial, Frames, Pollable
from farbench_rpc.transport.resolve import resolve, why_refused
from farbench_rpc.transport.sockets import (
    EVENT_HANDSHAKE_FAILED,
    NOBLOCK,
    Monitor,
    SocketSettings,
    has_input,
    make_socket,
    receive_rest,
    send_all,
)

_PROBE_S = 0.5
LOOK_S = 0.0005


class ZmqChannel:
    """A connection to one listener over TCP."""

    def __init__(self, address: Address, deadline: float, settings: SocketSettings) -> None:
        left_s = max(0.1, deadline - time.monotonic())
        self.peer = str(address)
        # A service that takes the connection and says nothing must show before the deadline.
        self._settings = replace(settings, handshake_s=min(settings.handshake_s, 0.6 * left_s))
        self._candidates = list(resolve(address, left_s))
        self._failed: list[str] = []
        self._bell = Bell()
        self._moment = Moment(LOOK_S)
        self._error: ConnectError | None = None
        self._connected = self._open = self._abandoned = False
        try:
            self._start()
        except ConnectError:
            self._bell.close()
            raise

    @staticmethod
    def dial(address: Address, settings: SocketSettings | None = None) -> Dial:
        """Give a Dial that connects to `address` each time it is called."""
        chosen = settings or SocketSettings()
        return lambda deadline: ZmqChannel(address, deadline, chosen)

    @property
    def pollables(self) -> tuple[Pollable, ...]:
        """Give the sockets to poll; they change while the connection opens."""
        return (self._sock, self._monitor.socket, self._bell.fileno())

    def is_open(self) -> bool:
        """Tell whether the handshake is done; ConnectError says why it never will be."""
        self._watch()
        if self._error is not None:
            raise self._error
        return self._open

    def stage(self) -> str:
        """Say what the connection waits for."""
        if self._open:
            return "open"
        return "handshake" if self._connected else "connection"

    def send(self, frames: Frames, deadline: float) -> None:
        """Send a message; waits for room until `deadline`, frames above 64 KiB are not copied."""
        if self._error is not None:
            raise self._error
        started = time.monotonic()
        while True:
            try:
                send_all(self._sock, frames)
                return
            except zmq.Again:
                self._wait_for_room(started, deadline)
            except BaseException:
                # Interrupted between frames: what was begun cannot be taken back.
                self._error = ConnectError(f"the connection to {self.peer} broke while sending")
                raise

    def receive(self) -> list[Buffer] | None:
        """Give the next message, None if there is none; ConnectError when it is over."""
        try:
            header = self._sock.recv(NOBLOCK, copy=False)
        except zmq.Again:
            if self._monitor.pending():
                self._watch()
            if self._error is not None:
                raise self._error from None
            return None
        frames: list[Buffer] = [header.bytes]
        if header.more:
            # Payload keeps every processor busy that it passes: none is left to look.
            self._moment.waited(math.inf)
            if not receive_rest(self._sock, frames, limits.MAX_MESSAGE):
                self._error = ConnectError(f"{self.peer} sent a message beyond the caps")
                raise self._error
        return frames

    def wait(self, timeout_s: float) -> None:
        """Return when something may be received, on `wake`, or after `timeout_s`."""
        started = time.perf_counter()
        if self._moment.brings(self._has_input, timeout_s):
            return
        for item, _ in self._poller.poll(max(1, int(timeout_s * 1000))):
            if item is self._sock:
                self._moment.waited(time.perf_counter() - started)
                return
            if item == self._bell.fileno():
                self._bell.clear()

    def _has_input(self) -> bool:
        return has_input(self._sock)

    def wake(self) -> None:
        """Make a `wait` of another thread return."""
        self._bell.ring()

    def abandon(self) -> None:
        """Make a `send` or `wait` of another thread end soon."""
        self._abandoned = True
        self._bell.ring()

    def close(self) -> None:
        """Close it; what is queued may still go out for the linger time."""
        self._stop()
        self._bell.close()
        if self._error is None:
            self._error = ConnectError(f"the connection to {self.peer} is closed")

    def _start(self) -> None:
        self._connected = self._open = False
        self._target = self._candidates.pop(0)
        try:
            self._sock = make_socket(zmq.DEALER, self._settings)
        except zmq.ZMQError as cause:  # no descriptor is left, say
            raise ConnectError(f"no socket to connect to {self.peer}: {cause}") from cause
        try:
            self._monitor = Monitor(self._sock)
            self._sock.connect(self._target.zmq)
        except zmq.ZMQError as cause:
            self._sock.close(0)
            raise ConnectError(f"cannot connect to {self.peer}: {cause}") from cause
        self._poller = zmq.Poller()
        for item in self.pollables:
            self._poller.register(item, zmq.POLLIN)

    def _stop(self) -> None:
        if not self._sock.closed:
            self._monitor.close()
            self._sock.close()

    def _wait_for_room(self, started: float, deadline: float) -> None:
        self._watch()
        if self._abandoned and self._error is None:
            self._error = ConnectError(f"the connection to {self.peer} is closed")
        if self._error is not None:
            raise self._error
        now = time.monotonic()
        if now >= deadline:
            limit_s = max(0.0, deadline - started)
            raise RemoteTimeout(
                f"{self.peer} took no message for {limit_s:.3g} s",
                {"limit_s": limit_s, "elapsed_s": now - started, "waited_for": "room to send"},
            )
        self._sock.poll(max(1, min(100, int((deadline - now) * 1000))), zmq.POLLOUT)

    def _watch(self) -> None:
        while self._error is None:
            happened = self._monitor.next()
            if happened is None:
                return
            event, _ = happened
            if event & zmq.EVENT_CONNECTED:
                self._connected = True
            elif event & zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._open = True
            elif event & (zmq.EVENT_CLOSED | zmq.EVENT_DISCONNECTED | EVENT_HANDSHAKE_FAILED):
                self._fail(event)

    def _fail(self, event: int) -> None:
        if self._open:
            self._error = ConnectError(f"the connection to {self.peer} was closed by the far side")
            return
        self._failed.append(f"{self._target}: {self._reason(event)}")
        if self._candidates:
            self._stop()
            self._start()
            return
        self._error = ConnectError(f"cannot connect to {self.peer}: " + "; ".join(self._failed))

    def _reason(self, event: int) -> str:
        if event & zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            return "the key is not authorised"
        if self._connected:
            return "something answers there, but it does not speak our protocol, or hangs"
        return why_refused(self._target, _PROBE_S)
