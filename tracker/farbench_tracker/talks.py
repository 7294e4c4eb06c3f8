"""Talks under way: what devices were asked, and who waits for the answer to which request."""

from __future__ import annotations

from typing import Final

from farbench_rpc.server import Incoming, Peer
from farbench_tracker.decisions import ToDevice


class Talks:
    """Questions without an answer yet; those of a peer end with its connection."""

    def __init__(self) -> None:
        self._pushed: Final[dict[Peer, dict[int, ToDevice]]] = {}
        self._askers: Final[dict[str, Incoming]] = {}
        self._requests: Final[dict[Peer, set[str]]] = {}

    def __repr__(self) -> str:
        return f"Talks({len(self._askers)} requests, {len(self._pushed)} devices asked)"

    def pushed(self, peer: Peer, push: int, what: ToDevice) -> None:
        """Note that a device was asked."""
        self._pushed.setdefault(peer, {})[push] = what

    def answered(self, peer: Peer, push: int) -> ToDevice | None:
        """Give what a device answers; None if it was not asked."""
        asked = self._pushed.get(peer)
        what = asked.pop(push, None) if asked else None
        if not asked:
            self._pushed.pop(peer, None)
        return what

    def asks(self, request: str, incoming: Incoming) -> None:
        """Note who waits for a request; a repeat takes the place of the first."""
        self.done(request)
        self._askers[request] = incoming
        self._requests.setdefault(incoming.peer, set()).add(request)

    def asker(self, request: str) -> Incoming | None:
        """Give who waits for a request."""
        return self._askers.get(request)

    def done(self, request: str) -> None:
        """Note that a request has its answer."""
        incoming = self._askers.pop(request, None)
        if incoming is not None:
            others = self._requests[incoming.peer]
            others.discard(request)
            if not others:
                del self._requests[incoming.peer]

    def gone(self, peer: Peer) -> None:
        """Forget a peer."""
        self._pushed.pop(peer, None)
        for request in self._requests.pop(peer, ()):
            del self._askers[request]
