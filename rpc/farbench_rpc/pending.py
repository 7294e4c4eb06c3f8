"""A request under way: its events so far, its reply or its error once there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from farbench_rpc import limits
from farbench_rpc.errors import RpcError
from farbench_rpc.messages import Message
from farbench_rpc.transport.base import Buffer, Frames


class Reply(NamedTuple):
    """A message that came for a request, and its payload frames."""

    message: Message
    frames: list[Buffer]


class Push(NamedTuple):
    """A message that no request asked for; answer a negative `request_id` by `tell`."""

    message: Message
    frames: list[Buffer]
    request_id: int


class Waits(Protocol):
    """What a pending request needs of its client."""

    def wait(
        self, pending: Pending, timeout_s: float, on_event: Callable[[Reply], None] | None
    ) -> Reply:
        """Wait for the reply."""

    def drop(self, pending: Pending) -> None:
        """Forget the request."""

    def glance(self, pending: Pending) -> None:
        """Raise the error of the request if it has come."""

    def tell(
        self, message: Message, frames: Frames = (), *, request_id: int = 0, timeout_s: float = 0.0
    ) -> None:
        """Send more of the request."""


class Pending:
    """A request that was sent; made by Client.begin. `wait` or `close` it."""

    __slots__ = ("_client", "error", "events", "id", "kind", "progressed", "reply")

    def __init__(self, client: Waits, request_id: int, kind: str) -> None:
        self._client = client
        self.id = request_id
        self.kind = kind
        self.events: deque[Reply] = deque()
        self.reply: Reply | None = None
        self.error: RpcError | None = None
        self.progressed = False

    def send(
        self, message: Message, frames: Frames = (), *, timeout_s: float = limits.ASK_TIMEOUT_S
    ) -> None:
        """Send more of this request; raises its error at once if one has come."""
        self._client.glance(self)
        self._client.tell(message, frames, request_id=self.id, timeout_s=timeout_s)

    def wait(
        self,
        timeout_s: float = limits.ASK_TIMEOUT_S,
        on_event: Callable[[Reply], None] | None = None,
    ) -> Reply:
        """Wait for the reply, as Client.ask does; the request is over then."""
        return self._client.wait(self, timeout_s, on_event)

    def close(self) -> None:
        """Forget the request; its reply is dropped when it comes."""
        self._client.drop(self)

    def end(self, error: RpcError) -> None:
        """Let it fail."""
        if self.reply is None and self.error is None:
            self.error = error
        self.progressed = True
