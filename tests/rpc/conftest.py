"""A server in a thread, over every transport and every way to name this machine."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
import zmq

from farbench_rpc.address import Address, parse_address
from farbench_rpc.client import Client
from farbench_rpc.errors import RpcError
from farbench_rpc.messages import Ok
from farbench_rpc.pending import Push
from farbench_rpc.server import Endpoint, EndpointSettings, Incoming, Peer
from farbench_rpc.transport.base import Bell, Dial
from farbench_rpc.transport.memory import MemoryListener
from farbench_rpc.transport.sockets import SocketSettings
from farbench_rpc.transport.zmq import ZmqChannel

PLACES = ("memory", "127.0.0.1:0", "[::1]:0", "localhost:0")
Handler = Callable[[Endpoint, Incoming], None]


def answer_ok(endpoint: Endpoint, incoming: Incoming) -> None:
    """Say Ok to everything."""
    endpoint.reply(incoming, Ok())


class Served:
    """An endpoint that a thread serves until `close`; `dial` leads to it."""

    def __init__(
        self,
        place: str,
        handler: Handler = answer_ok,
        *,
        settings: EndpointSettings | None = None,
        port: int = 0,
    ) -> None:
        self.gone: list[Peer] = []
        self.saw_gone = threading.Event()
        self._handler = handler
        self._jobs: list[Callable[[Endpoint], None]] = []
        self._bell = Bell()
        self._stop = False
        if place == "memory":
            hub = MemoryListener("memory", (settings or EndpointSettings()).socket.send_high_water)
            self.endpoint = Endpoint(hub, "device", welcome={"ttl_s": 3.0}, settings=settings)
            self.dial: Dial = hub.dial
        else:
            wanted = parse_address(place).with_port(port)
            self.endpoint = Endpoint.bind(
                wanted, "device", welcome={"ttl_s": 3.0}, settings=settings
            )
            self.dial = ZmqChannel.dial(self.address)
        self._thread = threading.Thread(target=self._serve, name="served")
        self._thread.start()

    @property
    def address(self) -> Address:
        """Where it listens."""
        assert self.endpoint.address is not None
        return self.endpoint.address

    def client(self, on_push: Callable[[Push], None] | None = None, timeout_s: float = 5) -> Client:
        """Connect to it."""
        return Client(self.dial, "client", timeout_s=timeout_s, on_push=on_push)

    def run(self, job: Callable[[Endpoint], object]) -> None:
        """Have the serving thread do something, and wait until it has."""
        done = threading.Event()

        def tracked(endpoint: Endpoint) -> None:
            job(endpoint)
            done.set()

        self._jobs.append(tracked)
        self._bell.ring()
        assert done.wait(10)

    def close(self) -> None:
        """Stop serving."""
        self._stop = True
        self._bell.ring()
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._bell.close()

    def _serve(self) -> None:
        poller = zmq.Poller()
        for item in (*self.endpoint.pollables, self._bell.fileno()):
            poller.register(item, zmq.POLLIN)
        while not self._stop:
            poller.poll(self.endpoint.patience_ms(1000))
            self._bell.clear()
            while self._jobs:
                self._jobs.pop(0)(self.endpoint)
            while (incoming := self.endpoint.receive()) is not None:
                try:
                    self._handler(self.endpoint, incoming)
                except RpcError as error:
                    self.endpoint.error(incoming, error)
            gone = self.endpoint.take_gone()
            if gone:
                self.gone.extend(gone)
                self.saw_gone.set()
        self.endpoint.close()


Serve = Callable[..., Served]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Give a function (place, handler, ...) -> Served; all are closed at the end."""
    with contextlib.ExitStack() as stack:

        def start(place: str = "127.0.0.1:0", *args: Handler, **kwargs: object) -> Served:
            served = Served(place, *args, **kwargs)  # type: ignore[arg-type]
            stack.callback(served.close)
            return served

        yield start


@pytest.fixture
def dead_port() -> Iterator[int]:
    """Give a port of 127.0.0.1 that is taken, but where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    """Every transport, and every way to name this machine."""
    wanted = str(request.param)
    if wanted.startswith("[") and not _has_ipv6():
        pytest.skip("this machine has no IPv6")
    return wanted


@pytest.fixture
def small() -> EndpointSettings:
    """Settings with low high-water marks and a short backlog."""
    socket_settings = SocketSettings(send_high_water=4, receive_high_water=4)
    return EndpointSettings(socket=socket_settings, max_backlog=8)


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True
