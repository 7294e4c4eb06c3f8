"""The dialling end of a conversation: ask, tell, and hear events; used by any thread.

    with Client.connect("board.lan:9190", role="client") as client:
        reply = client.ask(Ping(), timeout_s=2)
        client.ask(measure, on_event=lambda event: print(event.message))

        pending = [client.begin(call) for call in calls]      # pipelined
        replies = [p.wait(timeout_s=5) for p in pending]

Whichever thread waits reads the socket, for all threads; there is no thread of its own, so a
request costs no hand-over. A connection that ended is dialled anew by the next request. Replies
that come after their request timed out are dropped. An error of the far side is raised as the
class of its code.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable

from farbench_rpc import limits
from farbench_rpc.address import Address, parse_address
from farbench_rpc.codec import decode, encode
from farbench_rpc.errors import Cancelled, ConnectError, ProtocolError, RemoteTimeout, RpcError
from farbench_rpc.greet import greet
from farbench_rpc.messages import ErrorReply, Message, SessionLost, Welcome
from farbench_rpc.pending import Pending, Push, Reply
from farbench_rpc.replies import to_error
from farbench_rpc.transport.base import Buffer, Channel, Dial, Frames, check_caps
from farbench_rpc.transport.sockets import SocketSettings
from farbench_rpc.transport.zmq import ZmqChannel

__all__ = ["Client", "Pending", "Push", "Reply"]


class Client:
    """A conversation with one listener; see the module's text."""

    def __init__(
        self,
        dial: Dial,
        role: str,
        *,
        timeout_s: float = limits.CONNECT_TIMEOUT_S,
        agent: str = "",
        on_push: Callable[[Push], None] | None = None,
    ) -> None:
        """Dial and exchange Hello and Welcome; ConnectError, RemoteTimeout, VersionMismatch."""
        self._dial, self._role, self._agent = dial, role, agent
        self._timeout_s = timeout_s
        self._on_push = on_push
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._turn = threading.Condition(self._lock)
        self._owner = 0  # the thread that may touch the channel, 0: none
        self._wanted = 0  # threads that want it in order to send
        self._waiting = 0  # threads that sleep until it is free, or until their reply is there
        self._closed = False
        self._pending: dict[int, Pending] = {}
        self._pushes: deque[Push] = deque()
        self._channel: Channel | None
        self.welcome: Welcome
        self._channel, self.welcome = greet(dial, role, agent, timeout_s)

    @classmethod
    def connect(
        cls,
        address: Address | str,
        role: str,
        *,
        timeout_s: float = limits.CONNECT_TIMEOUT_S,
        agent: str = "",
        on_push: Callable[[Push], None] | None = None,
        settings: SocketSettings | None = None,
    ) -> Client:
        """Connect over TCP; the error says refused, unknown name, not our protocol or version."""
        if isinstance(address, str):
            address = parse_address(address)
        dial = ZmqChannel.dial(address, settings)
        return cls(dial, role, timeout_s=timeout_s, agent=agent, on_push=on_push)

    @property
    def peer(self) -> str:
        """Name where it leads to, for people."""
        return self._channel.peer if self._channel else "a closed connection"

    def ask(
        self,
        message: Message,
        frames: Frames = (),
        *,
        timeout_s: float = limits.ASK_TIMEOUT_S,
        on_event: Callable[[Reply], None] | None = None,
    ) -> Reply:
        """Send a request and wait for its reply; `on_event` is called in this thread meanwhile.

        Raises RemoteTimeout (detail: limit_s, elapsed_s, waited_for), ConnectError, Cancelled when
        the client is closed meanwhile, and what the far side raised.
        """
        pending = Pending(self, next(self._ids), message.KIND)
        started = time.monotonic()
        try:
            # The turn is kept from sending to reading.
            self._start(pending, message, frames, started + timeout_s)
            return self._await(pending, started, timeout_s, on_event)
        finally:
            self._pending.pop(pending.id, None)
            self._give_back()

    def begin(
        self,
        message: Message,
        frames: Frames = (),
        *,
        timeout_s: float = limits.ASK_TIMEOUT_S,
    ) -> Pending:
        """Send a request without waiting for its reply; `wait` or `close` the result."""
        pending = Pending(self, next(self._ids), message.KIND)
        try:
            self._start(pending, message, frames, time.monotonic() + timeout_s)
        except BaseException:
            self.drop(pending)
            raise
        finally:
            self._give_back()
        return pending

    def tell(
        self,
        message: Message,
        frames: Frames = (),
        *,
        request_id: int = 0,
        timeout_s: float = limits.ASK_TIMEOUT_S,
    ) -> None:
        """Send what wants no answer; with `request_id`, more of a request, or a push's answer."""
        try:
            deadline = time.monotonic() + timeout_s
            channel = self._take_to_send(deadline)
            self._send(channel, [encode(message, request_id, self.minor), *frames], deadline)
        finally:
            self._give_back()

    def fail(self, error: RpcError) -> None:
        """End every request that waits with `error`."""
        with self._lock:
            for pending in list(self._pending.values()):
                pending.end(error)
            self._turn.notify_all()
            self._nudge()

    def close(self) -> None:
        """Close; requests that wait in other threads end as Cancelled. May be called twice."""
        self._closed = True
        self.fail(Cancelled("the connection was closed by this side"))
        me = threading.get_ident()
        with self._lock:
            while self._owner not in (0, me):
                if self._channel is not None:
                    self._channel.abandon()
                self._sleep(0.1)
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def __enter__(self) -> Client:
        """Give itself, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    @property
    def minor(self) -> int:
        """Give the minor version both sides use."""
        return self.welcome.version[1]

    # --- for Pending ----------------------------------------------------------------------------

    def wait(
        self, pending: Pending, timeout_s: float, on_event: Callable[[Reply], None] | None
    ) -> Reply:
        """Wait for the reply of `pending`, reading for everybody where nobody else does."""
        try:
            return self._await(pending, time.monotonic(), timeout_s, on_event)
        finally:
            self.drop(pending)

    def drop(self, pending: Pending) -> None:
        """Forget a request; what comes for it later is dropped."""
        self._pending.pop(pending.id, None)

    def glance(self, pending: Pending) -> None:
        """Read what is there, if nobody else does; raise the error of `pending` if it has one."""
        try:
            if self._take_to_read(pending, 0.0) and self._channel is not None:
                self._drain(self._channel, pending)
        finally:
            self._give_back()
        if pending.error is not None:
            self.drop(pending)
            raise pending.error

    # --- whose turn it is -----------------------------------------------------------------------

    def _take_to_send(self, deadline: float) -> Channel:
        me = threading.get_ident()
        with self._lock:
            self._wanted += 1
            try:
                # A thread that was interrupted while it held the turn finds it its own again.
                while self._owner not in (0, me):
                    self._nudge()
                    left_s = deadline - time.monotonic()
                    if left_s <= 0:
                        raise RemoteTimeout(
                            "another thread sends for too long", {"waited_for": "turn to send"}
                        )
                    self._sleep(left_s)
                if self._closed:
                    raise Cancelled("the connection was closed by this side")
                self._owner = me
            finally:
                self._wanted -= 1
                if self._owner != me and self._waiting:
                    self._turn.notify_all()  # readers stood back for this thread
        if self._channel is None:
            limit_s = min(self._timeout_s, max(0.0, deadline - time.monotonic()))
            self._channel, self.welcome = greet(self._dial, self._role, self._agent, limit_s)
        return self._channel

    def _take_to_read(self, pending: Pending, deadline: float) -> bool:
        me = threading.get_ident()
        if self._owner == me:
            return True
        with self._lock:
            while self._owner or self._wanted:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or pending.progressed or self._closed:
                    return False
                self._sleep(left_s)
            if pending.progressed or self._closed:
                return False
            self._owner = me
            return True

    def _give_back(self) -> None:
        if self._owner == threading.get_ident():
            with self._lock:
                self._owner = 0
                if self._waiting:
                    self._turn.notify_all()

    def _sleep(self, longest_s: float) -> None:
        self._waiting += 1
        try:
            self._turn.wait(longest_s)
        finally:
            self._waiting -= 1

    def _nudge(self) -> None:
        if self._channel is not None:
            self._channel.wake()

    # --- reading --------------------------------------------------------------------------------

    def _await(
        self,
        pending: Pending,
        started: float,
        timeout_s: float,
        on_event: Callable[[Reply], None] | None,
    ) -> Reply:
        deadline = started + timeout_s
        while True:
            pending.progressed = False
            if pending.events or self._pushes:
                self._give_back()  # what is called may ask in its turn
                self._hear(pending, on_event)
            if pending.error is not None:
                raise pending.error
            if pending.reply is not None:
                return pending.reply
            if self._closed:
                raise Cancelled("the connection was closed by this side")
            if time.monotonic() >= deadline:
                raise self._too_late(pending, timeout_s, started)
            self._read_until(pending, deadline)

    def _read_until(self, pending: Pending, deadline: float) -> None:
        try:
            if not self._take_to_read(pending, deadline):
                return
            channel = self._channel
            if channel is None:
                pending.end(ConnectError("the connection ended before the reply"))
                return
            while not (pending.progressed or self._wanted or self._closed or self._pushes):
                # Waiting comes first: right after a request there is nothing to read yet, and
                # looking would only hold up the thread that is to carry it.
                channel.wait(deadline - time.monotonic())
                self._drain(channel, pending)
                if self._channel is None or time.monotonic() >= deadline:
                    return
        finally:
            self._give_back()

    def _drain(self, channel: Channel, until: Pending | None = None) -> None:
        try:
            while (frames := channel.receive()) is not None:
                self._dispatch(frames)
                if until is not None and until.progressed:
                    return
                if self._waiting:
                    with self._lock:
                        self._turn.notify_all()  # it may be what another thread waits for
        except (ConnectError, ProtocolError) as error:
            self._break(error)

    def _dispatch(self, frames: list[Buffer]) -> None:
        try:
            _, request_id, message = decode(frames[0], self.welcome.version[1])
        except ProtocolError as bad:
            request = bad.detail.pop("request", 0)
            unreadable = self._pending.get(int(request))
            if unreadable is None:
                raise
            unreadable.end(bad)
            return
        if request_id > 0:
            pending = self._pending.get(request_id)
            if pending is None:
                return
            if message.EVENT:
                pending.events.append(Reply(message, frames[1:]))
            elif type(message) is ErrorReply:
                pending.end(to_error(message))
            else:
                pending.reply = Reply(message, frames[1:])
            pending.progressed = True
        else:
            self._pushes.append(Push(message, frames[1:], request_id))

    def _hear(self, pending: Pending, on_event: Callable[[Reply], None] | None) -> None:
        while self._pushes:
            self._pushed(self._pushes.popleft())
        while pending.events:
            event = pending.events.popleft()
            if on_event is not None:
                on_event(event)

    def _pushed(self, push: Push) -> None:
        if self._on_push is not None:
            self._on_push(push)
        elif type(push.message) is SessionLost:
            lost = push.message
            self.fail(to_error(ErrorReply(lost.code, lost.reason)))
        elif type(push.message) is ErrorReply:
            self.fail(to_error(push.message))

    # --- sending --------------------------------------------------------------------------------

    def _start(self, pending: Pending, message: Message, frames: Frames, deadline: float) -> None:
        channel = self._take_to_send(deadline)
        header = encode(message, pending.id, self.welcome.version[1])
        self._pending[pending.id] = pending
        self._send(channel, [header, *frames], deadline)

    def _send(self, channel: Channel, frames: Frames, deadline: float) -> None:
        if len(frames) > 1:
            check_caps(frames[1:])
        try:
            channel.send(frames, deadline)
        except RemoteTimeout:
            raise
        except ConnectError as error:
            self._break(error)
            raise
        except BaseException as cause:
            self._break(ConnectError(f"interrupted while sending: {type(cause).__name__}"))
            raise

    def _break(self, error: RpcError) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        for pending in list(self._pending.values()):
            pending.end(error)

    def _too_late(self, pending: Pending, limit_s: float, started: float) -> RemoteTimeout:
        elapsed_s = time.monotonic() - started
        return RemoteTimeout(
            f"no answer to {pending.kind} from {self.peer} within {limit_s:g} s",
            {"limit_s": limit_s, "elapsed_s": elapsed_s, "waited_for": pending.kind},
        )
