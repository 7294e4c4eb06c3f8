"""The link: up, down, dialled anew, requests in both directions, never waiting."""

from __future__ import annotations

import select
import time
from collections.abc import Callable

import pytest

from farbench_rpc.errors import ConnectError
from farbench_rpc.link import Link
from farbench_rpc.messages import Beat, ErrorReply, Message, Ok, Ping, Registered, Welcome
from farbench_rpc.pending import Push
from farbench_rpc.server import Endpoint, Incoming
from tests.rpc.conftest import Serve


def registered(endpoint: Endpoint, incoming: Incoming) -> None:
    """Answer requests, ask once something in turn."""
    if incoming.request_id > 0:
        endpoint.reply(incoming, Registered(5, 1, 3, 0))
        endpoint.push(incoming.peer, Ping())


def hear(link: Link, wanted: Callable[[Push], bool] = lambda _: True) -> Push:
    """Turn a loop until something is heard."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        heard = link.receive()
        if heard is not None:
            if wanted(heard):
                return heard
            continue
        fds = [p if isinstance(p, int) else p.fileno() for p in link.pollables]
        select.select(fds, [], [], link.patience_ms(20) / 1000)
    raise AssertionError("nothing was heard")


def is_a(kind: type[Message]) -> Callable[[Push], bool]:
    """Give what tells a message of a class."""
    return lambda push: isinstance(push.message, kind)


def test_comes_up_asks_and_answers(serve: Serve, place: str) -> None:
    answers: list[int] = []

    def handler(endpoint: Endpoint, incoming: Incoming) -> None:
        if incoming.request_id < 0:
            answers.append(incoming.request_id)
        registered(endpoint, incoming)

    served = serve(place, handler)
    link = Link(served.dial, "device")
    assert not link.is_up
    with pytest.raises(ConnectError, match="still dialling"):
        link.ask(Beat())
    assert isinstance(hear(link).message, Welcome)
    assert link.is_up
    assert link.patience_ms(777) == 777
    request = link.ask(Beat())
    reply = hear(link)
    assert (reply.request_id, reply.message) == (request, Registered(5, 1, 3, 0))
    asked = hear(link)
    assert (asked.request_id, asked.message) == (-1, Ping())
    link.answer(asked.request_id, Ok())
    link.ask(Beat())
    hear(link, is_a(Registered))
    assert answers == [-1]
    link.close()
    link.close()
    assert link.receive() is None


def test_goes_down_and_comes_up_again(serve: Serve) -> None:
    first = serve("127.0.0.1:0", registered)
    port = first.address.port
    link = Link.to(str(first.address), "device")
    hear(link, is_a(Welcome))
    first.close()
    down = hear(link).message
    assert isinstance(down, ErrorReply)
    assert down.code == "connect"
    assert not link.is_up
    assert 0 < link.patience_ms(1000) <= 1000
    serve("127.0.0.1:0", registered, port=port)
    hear(link, is_a(Welcome))
    link.ask(Beat())
    hear(link, is_a(Registered))
    link.close()


def test_keeps_dialling_with_growing_pauses(dead_port: int) -> None:
    now = 100.0
    link = Link.to(f"127.0.0.1:{dead_port}", "device")
    link._clock = lambda: now
    link._next_dial = now
    pauses: list[int] = []
    for _ in range(4):
        down = hear(link).message
        assert isinstance(down, ErrorReply)
        assert "connection refused" in down.message
        pauses.append(link.patience_ms(60_000))
        now += 100
    assert pauses == [201, 401, 801, 1601]
    link.close()


def test_reconnect_says_why(serve: Serve) -> None:
    link = Link.to(str(serve("127.0.0.1:0").address), "device")
    hear(link, is_a(Welcome))
    link.reconnect("no answer to beats")
    down = hear(link).message
    assert isinstance(down, ErrorReply)
    assert down.message == "no answer to beats"
    hear(link, is_a(Welcome))
    link.close()
