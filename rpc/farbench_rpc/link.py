"""A conversation kept up from inside a poll loop: dials anew by itself, waits for names alone.

    link = Link.to("tracker.lan:9190", role="device")
    while running:
        for item in link.pollables: ...                # they change; register them each round
        poller.poll(link.patience_ms(1000))
        while (heard := link.receive()) is not None:
            match heard.message:
                case Welcome(): link.ask(register)     # the link has come up
                case ErrorReply(code="connect"): ...   # it went down; it is being dialled anew
                case Grant(): link.answer(heard.request_id, Ok())

A device uses it to talk to its tracker beside its own server.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable

from farbench_rpc import limits
from farbench_rpc.address import Address, parse_address
from farbench_rpc.codec import decode, encode
from farbench_rpc.errors import ConnectError, RemoteTimeout, RpcError
from farbench_rpc.greet import hello, read_welcome
from farbench_rpc.messages import VERSION, Message, Welcome
from farbench_rpc.pending import Push
from farbench_rpc.replies import error_reply
from farbench_rpc.transport.base import Channel, Dial, Frames, Pollable, check_caps
from farbench_rpc.transport.sockets import SocketSettings
from farbench_rpc.transport.zmq import ZmqChannel

_FIRST_RETRY_S = 0.2
_LAST_RETRY_S = 10.0


class Link:
    """A connection that is dialled again, after 0.2 s to 10 s, for as long as it is not closed."""

    def __init__(
        self,
        dial: Dial,
        role: str,
        *,
        agent: str = "",
        timeout_s: float = limits.CONNECT_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.welcome: Welcome | None = None
        self.last_error: RpcError | None = None
        self._dial, self._role, self._agent = dial, role, agent
        self._timeout_s, self._clock = timeout_s, clock
        self._channel: Channel | None = None
        self._greeted = False
        self._deadline = 0.0
        self._retry_s = _FIRST_RETRY_S
        self._next_dial = clock()
        self._asked = 0
        self._heard: deque[Push] = deque()
        self._closed = False

    @classmethod
    def to(
        cls,
        address: Address | str,
        role: str,
        *,
        agent: str = "",
        timeout_s: float = limits.CONNECT_TIMEOUT_S,
        settings: SocketSettings | None = None,
    ) -> Link:
        """Keep up a connection over TCP."""
        if isinstance(address, str):
            address = parse_address(address)
        return cls(ZmqChannel.dial(address, settings), role, agent=agent, timeout_s=timeout_s)

    @property
    def is_up(self) -> bool:
        """Tell whether Hello was answered and the connection stands."""
        return self.welcome is not None

    @property
    def pollables(self) -> tuple[Pollable, ...]:
        """Give what to poll for input now."""
        return self._channel.pollables if self._channel is not None else ()

    def patience_ms(self, longest_ms: int) -> int:
        """Say how long a poll may last before `receive` must be called."""
        if self.is_up or self._closed:
            return longest_ms
        due = self._deadline if self._channel is not None else self._next_dial
        return max(0, min(longest_ms, int((due - self._clock()) * 1000) + 1))

    def receive(self) -> Push | None:
        """Give what was heard next; dials, greets and notices the end meanwhile."""
        if not self._heard and not self._closed:
            try:
                self._step()
            except RpcError as error:
                self._drop(error)
        return self._heard.popleft() if self._heard else None

    def ask(self, message: Message, frames: Frames = ()) -> int:
        """Send a request; gives the id its answer is heard with. ConnectError while down."""
        self._asked += 1
        self._send(message, self._asked, frames)
        return self._asked

    def answer(self, request_id: int, message: Message, frames: Frames = ()) -> None:
        """Answer what the far side asked; nothing is sent while down (it will ask again)."""
        if self.is_up:
            # The end of the connection is heard by `receive`, as of any other.
            with contextlib.suppress(ConnectError):
                self._send(message, request_id, frames)

    def reconnect(self, why: str) -> None:
        """Drop the connection and dial anew, where the far side seems not to hear."""
        if self._channel is not None:
            self._drop(ConnectError(why))

    def close(self) -> None:
        """Close for good; may be called twice."""
        self._closed = True
        self.welcome = None
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _send(self, message: Message, request_id: int, frames: Frames) -> None:
        if self._channel is None or self.welcome is None:
            raise ConnectError(f"not connected: {self.last_error or 'still dialling'}")
        check_caps(frames)
        header = encode(message, request_id, self.welcome.version[1])
        try:
            self._channel.send([header, *frames], 0.0)
        except (RemoteTimeout, ConnectError) as error:
            # A far side that takes nothing any more is as good as gone.
            self._drop(error)
            raise ConnectError(error.message) from error

    def _step(self) -> None:
        now = self._clock()
        if self._channel is None:
            if now < self._next_dial:
                return
            self._greeted = False
            self._deadline = now + self._timeout_s
            self._channel = self._dial(time.monotonic() + min(1.0, self._timeout_s))
        if not self._greeted and self._channel.is_open():
            self._channel.send([hello(self._role, self._agent)], 0.0)
            self._greeted = True
        if not self.is_up and now >= self._deadline:
            raise RemoteTimeout(f"no {self._channel.stage()} from {self._channel.peer} in time")
        frames = self._channel.receive()
        if frames is None:
            return
        minor = self.welcome.version[1] if self.welcome is not None else VERSION[1]
        _, request_id, message = decode(frames[0], minor)
        if self.welcome is None:
            self.welcome = message = read_welcome(message, self._channel.peer)
            self._retry_s = _FIRST_RETRY_S
            self.last_error = None
        self._heard.append(Push(message, frames[1:], request_id))

    def _drop(self, error: RpcError) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        self.welcome = None
        self.last_error = error
        self._next_dial = self._clock() + self._retry_s
        self._retry_s = min(2 * self._retry_s, _LAST_RETRY_S)
        down = ConnectError(error.message, {"cause": error.code})
        self._heard.append(Push(error_reply(down), [], 0))
