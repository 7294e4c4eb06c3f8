"""The line of a session: its connection to the device, and why it ended if it did."""

from __future__ import annotations

from collections.abc import Callable

from farbench_rpc import messages as m
from farbench_rpc.client import Client, Push, Reply
from farbench_rpc.errors import ConnectError, DeviceLost, RpcError, by_code
from farbench_rpc.transport.base import Frames

ASK_TIMEOUT_S = 30.0

OnEvent = Callable[[Reply], None]
OnPush = Callable[[Push], None]


class Line:
    """A connection that belongs to one session: once it has ended it is never used again."""

    def __init__(self, dial: Callable[[OnPush], Client]) -> None:
        """Connect; `dial` gets what hears the far side's own messages."""
        self.lost: RpcError | None = None
        self._client: Client | None = None
        self._client = dial(self._hear)
        self._welcome = self._client.welcome

    @property
    def client(self) -> Client:
        """The connection, for what sends more than one message; raises why it ended."""
        if self.lost is not None:
            raise self.lost
        if self._client is None:
            raise ConnectError("the connection is closed")
        return self._client

    def ask(
        self,
        message: m.Message,
        frames: Frames = (),
        timeout_s: float = ASK_TIMEOUT_S,
        on_event: OnEvent | None = None,
    ) -> Reply:
        """Send a request and wait for its reply; DeviceLost when the connection broke."""
        try:
            reply = self.client.ask(message, frames, timeout_s=timeout_s, on_event=on_event)
        except RpcError as error:
            raise self.why(error) from error
        return reply

    def why(self, error: RpcError) -> RpcError:
        """Say of an error what lies behind it: the session's end, if it has ended."""
        if self.lost is None:
            broke = isinstance(error, ConnectError)
            # The client dials anew by itself, but the session ended with its connection.
            redialled = self._client is not None and self._client.welcome is not self._welcome
            if broke or redialled:
                self.lost = DeviceLost(
                    f"the connection to the device broke ({error.message}); request one again"
                )
        return self.lost if self.lost is not None else error

    def end(self, error: RpcError) -> None:
        """Note why the session is over; requests that wait fail with it. From any thread."""
        if self.lost is None:
            self.lost = error
        if self._client is not None:
            self._client.fail(self.lost)

    def close(self) -> None:
        """Let go of the connection; may be called twice."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _hear(self, push: Push) -> None:
        if isinstance(push.message, m.SessionLost):
            self.end(by_code(push.message.code)(push.message.reason))
        elif isinstance(push.message, m.ErrorReply):
            self.end(by_code(push.message.code)(push.message.message, push.message.detail))
