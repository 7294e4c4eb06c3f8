"""The listening end of a conversation: decoded messages of peers that have said Hello.

    endpoint = Endpoint.bind(parse_address("127.0.0.1:0"), role="device")
    poller = zmq.Poller()
    for item in endpoint.pollables:
        poller.register(item, zmq.POLLIN)
    while running:
        poller.poll(endpoint.patience_ms(1000))
        while (incoming := endpoint.receive()) is not None:
            endpoint.reply(incoming, Ok())
        for peer in endpoint.take_gone():
            ...

Hello, versions, caps and frames that are no messages are dealt with here. Nothing here waits: what
a slow peer does not take is kept up to a cap, beyond which the peer is cut.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from farbench_rpc import limits
from farbench_rpc.address import Address
from farbench_rpc.codec import Decoded, decode, encode
from farbench_rpc.errors import ProtocolError, RpcError
from farbench_rpc.messages import VERSION, Hello, Message, Value, Welcome
from farbench_rpc.replies import error_reply, version_mismatch
from farbench_rpc.transport.base import (
    Arrival,
    Buffer,
    Frames,
    Listener,
    Pollable,
    Sent,
    check_caps,
)
from farbench_rpc.transport.sockets import SocketSettings
from farbench_rpc.transport.zmq_listener import ZmqListener

_log = logging.getLogger(__name__)
_BAD_IN_A_ROW = 256  # bad messages dealt with before the caller's loop gets its turn


@dataclass(frozen=True)
class EndpointSettings:
    """Limits of an endpoint; `insecure` allows a bind beyond loopback."""

    insecure: bool = False
    socket: SocketSettings = SocketSettings()
    max_peers: int = limits.MAX_PEERS
    max_backlog: int = limits.MAX_BACKLOG


@dataclass(eq=False)
class Peer:
    """One connection that has said Hello; `host` is where it came from, "" if not known."""

    id: bytes
    role: str
    minor: int
    agent: str
    host: str
    backlog: deque[list[Buffer]] = field(default_factory=deque, repr=False)
    asked: int = 0
    gone: bool = False


class Incoming(NamedTuple):
    """A message of a peer; a negative `request_id` answers a `push` of that id."""

    peer: Peer
    request_id: int
    message: Message
    frames: list[Buffer]


class Endpoint:
    """Decoded messages in and out, over any listener; used by one thread."""

    def __init__(
        self,
        listener: Listener,
        role: str,
        *,
        welcome: Mapping[str, Value] | None = None,
        settings: EndpointSettings | None = None,
    ) -> None:
        self.role = role
        self.refused: Counter[str] = Counter()
        self._listener = listener
        self._welcome = dict(welcome or {})
        self._settings = settings or EndpointSettings()
        self._peers: dict[bytes, Peer] = {}
        self._congested: set[Peer] = set()
        self._gone: list[Peer] = []

    @classmethod
    def bind(
        cls,
        address: Address,
        role: str,
        *,
        welcome: Mapping[str, Value] | None = None,
        settings: EndpointSettings | None = None,
    ) -> Endpoint:
        """Listen on TCP. `welcome` are the settings that every peer is told.

        Raises CannotListen that names the port, Refused beyond loopback without `insecure`.
        """
        chosen = settings or EndpointSettings()
        listener = ZmqListener.bind(address, insecure=chosen.insecure, settings=chosen.socket)
        if chosen.insecure and not address.is_loopback:
            bound = listener.address or address  # with the port that was chosen
            _log.warning("%s listens without keys: whoever reaches %s may use it", role, bound)
        return cls(listener, role, welcome=welcome, settings=chosen)

    @property
    def address(self) -> Address | None:
        """Give where it listens, with the port that was chosen; None for an in-memory one."""
        return self._listener.address

    @property
    def pollables(self) -> tuple[Pollable, ...]:
        """Give what to register in a zmq.Poller for POLLIN."""
        return self._listener.pollables

    @property
    def peers(self) -> tuple[Peer, ...]:
        """Give the peers that have said Hello and are connected."""
        return tuple(self._peers.values())

    def patience_ms(self, longest_ms: int) -> int:
        """Say how long a poll may last: short while a slow peer has messages waiting here."""
        return min(longest_ms, 20) if self._congested else longest_ms

    def receive(self) -> Incoming | None:
        """Give the next message, None if there is none; never waits."""
        if self._congested:
            self._flush()
        for _ in range(_BAD_IN_A_ROW):
            arrival = self._listener.receive()
            if arrival is None:
                self._collect()
                return None
            incoming = self._accept(arrival)
            if incoming is not None:
                return incoming
        return None

    def reply(self, to: Incoming, message: Message, frames: Frames = ()) -> bool:
        """Answer a request; False if the peer is gone. A request that wants no answer gets none."""
        if not to.request_id:
            return not to.peer.gone
        return self._send(to.peer, message, to.request_id, frames)

    def event(self, of: Incoming, message: Message, frames: Frames = ()) -> bool:
        """Send an event of a request, before its reply; False if the peer is gone."""
        return self._send(of.peer, message, of.request_id, frames)

    def error(self, to: Incoming, error: RpcError) -> bool:
        """Answer with an error, also where no answer is wanted (a chunk that was refused)."""
        return self._send(to.peer, error_reply(error), to.request_id, ())

    def push(self, peer: Peer, message: Message, frames: Frames = ()) -> int:
        """Ask a peer; gives the id that its answer carries, 0 if the peer is gone."""
        peer.asked -= 1
        return peer.asked if self._send(peer, message, peer.asked, frames) else 0

    def tell(self, peer: Peer, message: Message, frames: Frames = ()) -> bool:
        """Send what wants no answer; False if the peer is gone."""
        return self._send(peer, message, 0, frames)

    def take_gone(self) -> list[Peer]:
        """Give the peers that ended, or were cut, since the last call."""
        self._collect()
        gone, self._gone = self._gone, []
        return gone

    def forget(self, peer: Peer) -> None:
        """Cut a peer: nothing more is sent, and it must say Hello again to be heard."""
        if self._peers.pop(peer.id, None) is not None:
            peer.gone = True
            peer.backlog.clear()
            self._congested.discard(peer)
            self._gone.append(peer)

    def close(self) -> None:
        """Stop listening; may be called twice."""
        self._peers.clear()
        self._listener.close()

    def __enter__(self) -> Endpoint:
        """Give itself, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening."""
        self.close()

    # --- in -------------------------------------------------------------------------------------

    def _accept(self, arrival: Arrival) -> Incoming | None:
        peer = self._peers.get(arrival.peer)
        try:
            found = decode(arrival.frames[0], peer.minor if peer else VERSION[1])
        except ProtocolError as bad:
            self._refuse(arrival.peer, peer, bad)
            return None
        if peer is None or type(found.message) is Hello:
            self._greet(arrival.peer, found)
            return None
        return Incoming(peer, found.request_id, found.message, arrival.frames[1:])

    def _refuse(self, peer_id: bytes, peer: Peer | None, bad: ProtocolError) -> None:
        self.refused["not a message"] += 1
        request = bad.detail.pop("request", None)
        # Random bytes get no answer; a peer of ours, or one that frames as we do, is told.
        if peer is not None or request is not None:
            self._answer(peer_id, error_reply(bad), int(request or 0))

    def _greet(self, peer_id: bytes, found: Decoded) -> None:
        hello, request_id = found.message, found.request_id
        if type(hello) is not Hello:
            self.refused["no hello"] += 1
            error: RpcError = ProtocolError("say Hello first")
        elif hello.version[0] != VERSION[0]:
            self.refused["version"] += 1
            error = version_mismatch(self.role, hello.version)
        elif len(self._peers) >= self._settings.max_peers and peer_id not in self._peers:
            self.refused["too many"] += 1
            error = RpcError(f"{self.role} serves {len(self._peers)} peers and takes no more")
        else:
            self._admit(peer_id, hello, request_id)
            return
        self._answer(peer_id, error_reply(error), request_id)

    def _admit(self, peer_id: bytes, hello: Hello, request_id: int) -> None:
        known = self._peers.get(peer_id)
        if known is not None:
            self.forget(known)
        minor = min(hello.version[1], VERSION[1])
        host = self._listener.origin(peer_id)
        self._peers[peer_id] = Peer(peer_id, hello.role, minor, hello.agent, host)
        welcome = Welcome(role=self.role, version=(VERSION[0], minor), settings=self._welcome)
        self._answer(peer_id, welcome, request_id)

    def _collect(self) -> None:
        for peer_id in self._listener.take_gone():
            peer = self._peers.get(peer_id)
            if peer is not None:
                self.forget(peer)

    # --- out ------------------------------------------------------------------------------------

    def _answer(self, peer_id: bytes, message: Message, request_id: int) -> None:
        # Handshake and refusals: the fields of minor 0, and nothing kept for who does not read.
        self._listener.send(peer_id, [encode(message, request_id, 0)])

    def _send(self, peer: Peer, message: Message, request_id: int, frames: Frames) -> bool:
        if frames:
            check_caps(frames)
        if peer.gone:
            return False
        whole: list[Buffer] = [encode(message, request_id, peer.minor), *frames]
        if not peer.backlog:
            sent = self._listener.send(peer.id, whole)
            if sent is Sent.DONE:
                return True
            if sent is Sent.GONE:
                self.forget(peer)
                return False
        if len(peer.backlog) >= self._settings.max_backlog:
            self.refused["slow"] += 1
            self.forget(peer)
            return False
        peer.backlog.append(whole)
        self._congested.add(peer)
        return True

    def _flush(self) -> None:
        for peer in list(self._congested):
            while peer.backlog:
                sent = self._listener.send(peer.id, peer.backlog[0])
                if sent is Sent.FULL:
                    break
                if sent is Sent.GONE:
                    self.forget(peer)
                    break
                peer.backlog.popleft()
            if not peer.backlog:
                self._congested.discard(peer)
