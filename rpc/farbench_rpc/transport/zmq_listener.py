"""The listener over TCP: one ROUTER socket, bound to every address of its host.

    listener = ZmqListener.bind(parse_address("localhost:0"), insecure=False)
    listener.address                # with the port that was chosen

A peer is known by the descriptor of its connection, so that its end is noticed at once.
"""

from __future__ import annotations

import errno

import zmq

from farbench_rpc import limits
from farbench_rpc.address import Address
from farbench_rpc.errors import CannotListen, Refused
from farbench_rpc.transport.base import Arrival, Buffer, Frames, Pollable, Sent
from farbench_rpc.transport.resolve import resolve_to_bind
from farbench_rpc.transport.sockets import (
    EVENT_HANDSHAKE_FAILED,
    NOBLOCK,
    Monitor,
    SocketSettings,
    bound_port,
    has_input,
    make_socket,
    receive_rest,
    send_all,
)

_TRIES_FOR_A_COMMON_PORT = 8


class ZmqListener:
    """The end that many channels reach over TCP; made by `bind`."""

    def __init__(self, sock: zmq.Socket[bytes], address: Address) -> None:
        self.address: Address | None = address
        self._sock = sock
        self._monitor = Monitor(sock)
        self._peer_of: dict[int, bytes] = {}  # by descriptor of the connection
        self._origin: dict[bytes, tuple[int, str]] = {}
        self._gone: list[bytes] = []
        self._served = False

    @classmethod
    def bind(
        cls, address: Address, *, insecure: bool = False, settings: SocketSettings | None = None
    ) -> ZmqListener:
        """Listen on every address of a host; port 0 lets the system pick one for all.

        Raises Refused beyond loopback without `insecure`, CannotListen that names the port.
        """
        found = resolve_to_bind(address, limits.CONNECT_TIMEOUT_S)
        if not insecure and not all(a.is_loopback for a in found):
            raise Refused(
                f"will not listen on {address}: it is reachable from other machines and nobody is"
                " asked for a key; use a loopback address, or --insecure on a network you trust"
            )
        for _ in range(_TRIES_FOR_A_COMMON_PORT):
            sock = make_socket(zmq.ROUTER, settings or SocketSettings())
            sock.setsockopt(zmq.ROUTER_MANDATORY, 1)
            try:
                port = _bind_all(sock, found)
            except zmq.ZMQError as cause:
                sock.close()
                if address.port or cause.errno != errno.EADDRINUSE:
                    raise _not_bound(address, cause) from cause
                continue
            return cls(sock, address.with_port(port))
        raise CannotListen(f"no port is free on every address of {address.host}")

    @property
    def pollables(self) -> tuple[Pollable, ...]:
        """Give the sockets to poll."""
        return (self._sock, self._monitor.socket)

    def receive(self) -> Arrival | None:
        """Give the next message of any peer, None if there is none."""
        while True:
            # After a message there is mostly none: asking is cheaper than to try in vain. What
            # only the monitor knows makes the next poll return at once, and the try below fail.
            if self._served and not has_input(self._sock):
                self._served = False
                return None
            try:
                peer = self._sock.recv(NOBLOCK)
            except zmq.Again:
                self._watch()
                return None
            self._served = True
            header = self._sock.recv(NOBLOCK, copy=False)
            if peer not in self._origin:
                self._first_seen(peer, header)
            frames: list[Buffer] = [header.bytes]
            if not header.more or receive_rest(self._sock, frames, limits.MAX_MESSAGE):
                return Arrival(peer, frames)

    def send(self, peer: bytes, frames: Frames) -> Sent:
        """Send a message without waiting; frames above 64 KiB are not copied."""
        try:
            send_all(self._sock, (peer, *frames))
        except zmq.Again:
            return Sent.FULL
        except zmq.ZMQError as cause:
            if cause.errno == zmq.EHOSTUNREACH:
                return Sent.GONE
            raise
        return Sent.DONE

    def origin(self, peer: bytes) -> str:
        """Give the numeric host a peer connected from, empty if it is not known."""
        return self._origin.get(peer, (0, ""))[1]

    def take_gone(self) -> list[bytes]:
        """Give the peers whose connections ended since the last call."""
        gone, self._gone = self._gone, []
        return gone

    def close(self) -> None:
        """Close it; what is queued may still go out for the linger time."""
        if not self._sock.closed:
            self._monitor.close()
            self._sock.close()

    def _first_seen(self, peer: bytes, frame: zmq.Frame) -> None:
        # The end of an older connection with this descriptor was announced before this frame
        # could be read, so it is taken out first; then the descriptor is this peer's.
        self._watch()
        try:
            descriptor, host = int(frame.get(zmq.SRCFD)), str(frame.get("Peer-Address"))
        except zmq.ZMQError:
            return  # random bytes can pass for a peer too old to say where it is
        host = host[7:] if host.startswith("::ffff:") else host  # IPv4 seen by an IPv6 socket
        if descriptor >= 0:
            self._peer_of[descriptor] = peer
            self._origin[peer] = (descriptor, host)

    def _watch(self) -> None:
        while (happened := self._monitor.next()) is not None:
            event, descriptor = happened
            if event & (zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | EVENT_HANDSHAKE_FAILED):
                peer = self._peer_of.pop(descriptor, None)
                if peer is not None:
                    del self._origin[peer]
                    self._gone.append(peer)


def _bind_all(sock: zmq.Socket[bytes], addresses: tuple[Address, ...]) -> int:
    port = addresses[0].port
    bound = 0
    for address in addresses:
        try:
            sock.bind(address.with_port(port).zmq)
        except zmq.ZMQError as cause:
            # A name may have an address of a family that this machine has switched off.
            if cause.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) and len(addresses) > 1:
                continue
            raise
        bound += 1
        if not port:
            port = bound_port(sock)
    if not bound:
        raise zmq.ZMQError(errno.EADDRNOTAVAIL)
    return port


def _not_bound(address: Address, cause: zmq.ZMQError) -> CannotListen:
    reasons = {
        errno.EADDRINUSE: f"port {address.port} is in use; choose another, or 0 for any free one",
        errno.EACCES: f"port {address.port} needs more rights; choose one above 1023",
        errno.EADDRNOTAVAIL: "no network interface of this machine has that address",
        errno.ENODEV: "no network interface of this machine has that address",
    }
    why = reasons.get(cause.errno or 0, str(cause))
    return CannotListen(f"cannot listen on {address}: {why}")
