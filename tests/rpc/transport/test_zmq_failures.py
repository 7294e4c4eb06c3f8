"""Connections that fail say why: refused, unknown, not our protocol, silent, in use, insecure."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
import zmq

from farbench_rpc.address import Address, parse_address
from farbench_rpc.client import Client
from farbench_rpc.errors import CannotListen, ConnectError, Refused, RemoteTimeout
from farbench_rpc.messages import Ok, Ping
from farbench_rpc.transport import resolve as resolving
from farbench_rpc.transport import zmq as zmq_channel
from farbench_rpc.transport.zmq_listener import ZmqListener
from tests.rpc.conftest import Serve


@contextlib.contextmanager
def tcp_service(serve: Callable[[socket.socket], None]) -> Iterator[Address]:
    """Accept connections on loopback and have `serve` treat each."""
    listener = socket.create_server(("127.0.0.1", 0))
    open_now: list[socket.socket] = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                open_now.append(connection)
                serve(connection)

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield Address("127.0.0.1", listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)
        for connection in open_now:
            connection.close()


def silent(connection: socket.socket) -> None:
    """Take the connection and say nothing."""


def http(connection: socket.socket) -> None:
    """Answer as a web server does."""
    connection.recv(64)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    connection.close()


def ssh(connection: socket.socket) -> None:
    """Greet as an ssh server does, and stay."""
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" + bytes(64))


def closes(connection: socket.socket) -> None:
    """Close at once."""
    connection.close()


def connect(address: Address, timeout_s: float = 2.0) -> None:
    """Connect, and close where that worked."""
    Client.connect(address, "client", timeout_s=timeout_s).close()


def test_refused(dead_port: int) -> None:
    with pytest.raises(ConnectError, match=f"127.0.0.1:{dead_port}: connection refused"):
        connect(Address("127.0.0.1", dead_port))


def test_refused_on_every_address_of_a_name(dead_port: int) -> None:
    with pytest.raises(ConnectError, match=r"localhost:\d+: .*connection refused"):
        connect(Address("localhost", dead_port))


def test_no_socket_left_is_a_connect_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(kind: int, settings: object) -> None:
        raise zmq.ZMQError(errno.EMFILE)

    monkeypatch.setattr(zmq_channel, "make_socket", none_left)
    with pytest.raises(ConnectError, match="no socket to connect to 127.0.0.1:1: Too many open"):
        connect(Address("127.0.0.1", 1))


def test_unknown_name() -> None:
    with pytest.raises(ConnectError, match="host name 'no-such-host.invalid' is not known"):
        connect(Address("no-such-host.invalid", 1))


def test_a_name_lookup_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    monkeypatch.setattr(resolving, "_lookup", lambda address: (asked.wait(30), ())[1])
    with pytest.raises(RemoteTimeout, match="no answer for the name 'slow.invalid'") as caught:
        resolving.resolve(Address("slow.invalid", 1), 0.05)
    asked.set()
    assert caught.value.detail["waited_for"] == "name lookup"


@pytest.mark.parametrize("service", [http, closes])
def test_another_protocol(service: Callable[[socket.socket], None]) -> None:
    with tcp_service(service) as address, pytest.raises(ConnectError, match="not speak our"):
        connect(address)


@pytest.mark.parametrize("service", [silent, ssh])
def test_a_service_that_does_not_shake_hands(service: Callable[[socket.socket], None]) -> None:
    with tcp_service(service) as address, pytest.raises(ConnectError, match="not speak our"):
        connect(address)


def test_zeromq_but_not_farbench() -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger = 0
        port = router.bind_to_random_port("tcp://127.0.0.1")
        with pytest.raises(RemoteTimeout, match="not farbench, or is too busy") as caught:
            connect(Address("127.0.0.1", port), 0.5)
    detail = caught.value.detail
    assert detail["waited_for"] == "welcome"
    assert detail["limit_s"] == 0.5
    assert 0.5 <= float(detail["elapsed_s"]) < 5


def test_a_wrong_zeromq_socket() -> None:
    with zmq.Context() as context, context.socket(zmq.PUB) as publisher:
        publisher.linger = 0
        port = publisher.bind_to_random_port("tcp://127.0.0.1")
        with pytest.raises(ConnectError, match="not speak our protocol"):
            connect(Address("127.0.0.1", port))


def test_a_port_in_use_is_named() -> None:
    first = ZmqListener.bind(parse_address("127.0.0.1:0"))
    try:
        assert first.address is not None
        with pytest.raises(CannotListen, match=rf"port {first.address.port} is in use"):
            ZmqListener.bind(first.address)
    finally:
        first.close()


def test_a_port_may_be_bound_again_at_once() -> None:
    first = ZmqListener.bind(parse_address("127.0.0.1:0"))
    assert first.address is not None
    first.close()
    for _ in range(100):
        with contextlib.suppress(CannotListen):
            second = ZmqListener.bind(first.address)
            break
    second.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_beyond_loopback_needs_insecure(host: str) -> None:
    with pytest.raises(Refused, match="--insecure"):
        ZmqListener.bind(Address(host, 0))


def test_beyond_loopback_with_insecure() -> None:
    listener = ZmqListener.bind(Address("0.0.0.0", 0), insecure=True)
    assert listener.address is not None
    assert listener.address.port > 0
    listener.close()


def test_an_address_of_another_machine() -> None:
    with pytest.raises(CannotListen, match="no network interface of this machine"):
        ZmqListener.bind(Address("192.0.2.1", 0), insecure=True)


@pytest.mark.parametrize(
    "spoken",
    [
        b"\x01\x00\x05\x00junk",  # a peer of ZMTP 1, which has no greeting
        b"\xff" * 64,
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + bytes(48) + b"\xff" * 99,
        b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01\x05\x00\x00\x00\x07\x00abcdef",
        b"",
    ],
)
def test_strange_bytes_and_half_open_peers_hurt_nobody(serve: Serve, spoken: bytes) -> None:
    served = serve("127.0.0.1:0")
    strangers = []
    for _ in range(20):
        stranger = socket.create_connection(("127.0.0.1", served.address.port), timeout=5)
        stranger.sendall(spoken)
        strangers.append(stranger)
    with served.client() as client:
        assert client.ask(Ping()).message == Ok()
        for stranger in strangers:
            stranger.close()
        assert client.ask(Ping()).message == Ok()


def test_localhost_reaches_both_families() -> None:
    listener = ZmqListener.bind(Address("localhost", 0))
    try:
        assert listener.address is not None
        port = listener.address.port
        for found in resolving.resolve(Address("localhost", port), 5):
            with socket.create_connection((found.host, port), timeout=5):
                pass
    finally:
        listener.close()
