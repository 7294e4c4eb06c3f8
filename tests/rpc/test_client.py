"""The client: replies matched, events, threads, time-outs, closing, interruption, dialling anew."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest

from farbench_rpc.client import Client, Pending, Push, Reply
from farbench_rpc.errors import (
    Cancelled,
    ConnectError,
    InvalidArgument,
    KernelCrashed,
    LeaseLost,
    NotFound,
    RemoteTimeout,
    VersionMismatch,
)
from farbench_rpc.limits import MAX_FRAMES
from farbench_rpc.messages import (
    Beat,
    Called,
    CallEntry,
    Free,
    LeaseQueued,
    Load,
    Message,
    Ok,
    Ping,
    SessionLost,
)
from farbench_rpc.server import Endpoint, Incoming
from farbench_rpc.transport.base import Frames
from tests.rpc.conftest import Serve

CALLED = Called(0)


class Held:
    """A handler that keeps requests until the test lets them go."""

    def __init__(self) -> None:
        self.incoming: list[Incoming] = []
        self._arrived = threading.Semaphore(0)

    def __call__(self, endpoint: Endpoint, incoming: Incoming) -> None:
        self.incoming.append(incoming)
        self._arrived.release()

    def wait(self, count: int = 1) -> None:
        """Wait until `count` more requests have come."""
        for _ in range(count):
            assert self._arrived.acquire(timeout=10)

    def answer(self, index: int, message: Message = CALLED) -> Any:
        """Give what answers a request, for Served.run."""
        return lambda endpoint: endpoint.reply(self.incoming[index], message)


class InThread:
    """A call in a thread of its own, with its outcome."""

    def __init__(self, call: Any) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self._call = call
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.value = self._call()
        except BaseException as error:
            self.error = error

    def join(self) -> Any:
        """Wait for it and give its value."""
        self._thread.join(10)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.value


def echo(endpoint: Endpoint, incoming: Incoming) -> None:
    """Answer with the number asked, and the frames sent."""
    message = incoming.message
    number = message.module if isinstance(message, CallEntry) else 0
    endpoint.reply(incoming, Called(number), [bytes(f) for f in incoming.frames])


def call(number: int) -> CallEntry:
    """Make a request with a number."""
    return CallEntry(number, "f", ())


def test_ask(serve: Serve, place: str) -> None:
    with serve(place, echo).client() as client:
        assert client.welcome.role == "device"
        assert client.welcome.settings == {"ttl_s": 3.0}
        reply = client.ask(call(7), [b"abc", memoryview(bytes(200_000))])
        assert reply.message == Called(7)
        assert [bytes(f) for f in reply.frames] == [b"abc", bytes(200_000)]


def test_pipelined_requests_find_their_replies_in_any_order(serve: Serve, place: str) -> None:
    with serve(place, echo).client() as client:
        pending = [client.begin(call(i)) for i in range(40)]
        for i in reversed(range(40)):
            assert pending[i].wait(10).message == Called(i)


def test_many_threads_share_a_client(serve: Serve, place: str) -> None:
    with serve(place, echo).client() as client:

        def many(first: int) -> list[Any]:
            return [client.ask(call(first + i)).message for i in range(50)]

        threads = [InThread(lambda k=k: many(1000 * k)) for k in range(6)]
        for k, thread in enumerate(threads):
            assert thread.join() == [Called(1000 * k + i) for i in range(50)]


def test_a_waiting_thread_does_not_hold_up_another(serve: Serve, place: str) -> None:
    held = Held()
    served = serve(place, held)
    with served.client() as client:
        long = InThread(lambda: client.ask(call(1), timeout_s=60).message)
        held.wait()
        short = InThread(lambda: client.ask(call(2), timeout_s=60).message)
        held.wait()
        served.run(held.answer(1, Called(2)))
        assert short.join() == Called(2)
        served.run(held.answer(0, Called(1)))
        assert long.join() == Called(1)


def test_events_come_in_order_and_before_the_reply(serve: Serve, place: str) -> None:
    def handler(endpoint: Endpoint, incoming: Incoming) -> None:
        for i in range(3):
            endpoint.event(incoming, LeaseQueued(i, "busy"), [b"%d" % i])
        endpoint.reply(incoming, Ok())

    with serve(place, handler).client() as client:
        heard: list[Reply] = []
        assert client.ask(Ping(), on_event=heard.append).message == Ok()
        assert [e.message for e in heard] == [LeaseQueued(i, "busy") for i in range(3)]
        assert [bytes(e.frames[0]) for e in heard] == [b"0", b"1", b"2"]
        assert client.ask(Ping()).message == Ok()


def test_an_event_handler_may_ask(serve: Serve, place: str) -> None:
    def handler(endpoint: Endpoint, incoming: Incoming) -> None:
        if isinstance(incoming.message, Ping):
            endpoint.event(incoming, LeaseQueued(0, "busy"))
            endpoint.reply(incoming, Ok())
        else:
            echo(endpoint, incoming)

    with serve(place, handler).client() as client:
        inner: list[Message] = []
        client.ask(Ping(), on_event=lambda _: inner.append(client.ask(call(5)).message))
        assert inner == [Called(5)]


def test_an_error_is_raised_as_its_class(serve: Serve, place: str) -> None:
    def handler(endpoint: Endpoint, incoming: Incoming) -> None:
        if isinstance(incoming.message, Load):
            raise NotFound("no such file", {"name": "x"})
        endpoint.error(incoming, KernelCrashed("signal 11", {"signal": 11, "last_call": "f"}))

    with serve(place, handler).client() as client:
        with pytest.raises(NotFound, match="no such file") as missing:
            client.ask(Load("x"))
        assert missing.value.detail == {"name": "x"}
        with pytest.raises(KernelCrashed) as crashed:
            client.ask(call(1))
        assert crashed.value.detail == {"signal": 11, "last_call": "f"}


def test_a_timeout_says_limit_elapsed_and_for_what(serve: Serve, place: str) -> None:
    held = Held()
    served = serve(place, held)
    with served.client() as client:
        with pytest.raises(RemoteTimeout, match="no answer to call") as caught:
            client.ask(call(1), timeout_s=0.05)
        detail = caught.value.detail
        assert detail["limit_s"] == 0.05
        assert detail["waited_for"] == "call"
        assert float(detail["elapsed_s"]) >= 0.05
        # The late reply is dropped, and the next request gets its own.
        served.run(held.answer(0, Called(1)))
        second = InThread(lambda: client.ask(call(2), timeout_s=10).message)
        held.wait(2)
        served.run(held.answer(1, Called(2)))
        assert second.join() == Called(2)


def test_close_wakes_who_waits(serve: Serve, place: str) -> None:
    held = Held()
    client = serve(place, held).client()
    waiting = [InThread(lambda: client.ask(call(1), timeout_s=60)) for _ in range(3)]
    held.wait(3)
    client.close()
    for thread in waiting:
        with pytest.raises(Cancelled, match="closed by this side"):
            thread.join()
    with pytest.raises(Cancelled):
        client.ask(Ping())
    client.close()


def test_close_wakes_who_sends(serve: Serve, place: str) -> None:
    stuck = threading.Event()
    release = threading.Event()

    def handler(endpoint: Endpoint, incoming: Incoming) -> None:
        stuck.set()
        assert release.wait(20)

    client = serve(place, handler).client()

    def flood() -> None:
        while True:
            client.tell(Beat(), [bytes(1 << 20)], timeout_s=60)

    thread = InThread(flood)
    assert stuck.wait(10)
    client.close()
    with pytest.raises((Cancelled, ConnectError)):
        thread.join()
    release.set()


def test_fail_ends_what_waits(serve: Serve, place: str) -> None:
    held = Held()
    with serve(place, held).client() as client:
        thread = InThread(lambda: client.ask(call(1), timeout_s=60))
        held.wait()
        client.fail(LeaseLost("gone", {"reason": "ttl"}))
        with pytest.raises(LeaseLost, match="gone"):
            thread.join()


def test_a_lost_session_fails_what_waits(serve: Serve, place: str) -> None:
    held = Held()
    served = serve(place, held)
    with served.client() as client:
        thread = InThread(lambda: client.ask(call(1), timeout_s=60))
        held.wait()
        peer = held.incoming[0].peer
        served.run(lambda endpoint: endpoint.tell(peer, SessionLost("lease_lost", "ttl over")))
        with pytest.raises(LeaseLost, match="ttl over"):
            thread.join()


def test_pushes_are_heard_and_answered(serve: Serve, place: str) -> None:
    held = Held()
    served = serve(place, held)
    pushes: list[Push] = []
    with served.client(on_push=pushes.append) as client:
        thread = InThread(lambda: client.ask(call(1), timeout_s=60).message)
        held.wait()
        peer = held.incoming[0].peer
        served.run(lambda endpoint: endpoint.push(peer, Ping()))
        served.run(held.answer(0))
        assert thread.join() == Called(0)
        assert [(p.message, p.request_id) for p in pushes] == [(Ping(), -1)]
        client.tell(Ok(), request_id=-1)
        held.wait()
        assert held.incoming[1].request_id == -1


def test_the_end_of_the_server_ends_what_waits(serve: Serve, place: str) -> None:
    held = Held()
    served = serve(place, held)
    with served.client() as client:
        thread = InThread(lambda: client.ask(call(1), timeout_s=60))
        held.wait()
        served.close()
        with pytest.raises(ConnectError, match="clos"):
            thread.join()
        with pytest.raises(ConnectError):
            client.ask(Ping(), timeout_s=2)


def test_the_next_request_dials_anew(serve: Serve) -> None:
    first = serve("127.0.0.1:0", echo)
    port = first.address.port
    with first.client() as client:
        assert client.ask(call(1)).message == Called(1)
        before = client.welcome
        first.close()
        with pytest.raises(ConnectError):
            client.ask(call(2), timeout_s=2)
        serve("127.0.0.1:0", echo, port=port)
        assert client.ask(call(3)).message == Called(3)
        assert client.welcome is not before


def test_an_interrupt_while_waiting_leaves_the_client_usable(
    serve: Serve, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held()
    served = serve(place, held)
    with served.client() as client:
        channel = client._channel
        assert channel is not None
        wait = channel.wait

        def interrupted(timeout_s: float) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(channel, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.ask(call(1))
        monkeypatch.setattr(channel, "wait", wait)
        held.wait()
        served.run(held.answer(0, Called(1)))
        second = InThread(lambda: client.ask(call(2)).message)
        held.wait()
        served.run(held.answer(1, Called(2)))
        assert second.join() == Called(2)
        assert client._pending == {}


def test_an_interrupt_while_sending_dials_anew(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("127.0.0.1:0", echo).client() as client:
        channel = client._channel
        assert channel is not None

        def interrupted(frames: Frames, deadline: float) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(channel, "send", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.ask(call(1))
        assert client.ask(call(2)).message == Called(2)
        assert client._channel is not channel


def test_more_of_a_request_shares_its_id_and_its_error(serve: Serve, place: str) -> None:
    def handler(endpoint: Endpoint, incoming: Incoming) -> None:
        if isinstance(incoming.message, Free):
            raise NotFound("no such array")

    with serve(place, handler).client() as client:
        pending: Pending = client.begin(Ping())

        def stream() -> None:
            while True:
                pending.send(Free((1,)), timeout_s=10)

        with pytest.raises(NotFound):
            stream()
        pending.close()


def test_caps_hold_before_sending(serve: Serve) -> None:
    with serve("127.0.0.1:0", echo).client() as client:
        with pytest.raises(InvalidArgument, match="limit is 8"):
            client.ask(Ping(), [b""] * (MAX_FRAMES + 1))
        with pytest.raises(InvalidArgument, match="bytes"):
            client.ask(Ping(), [bytes(2 << 20)])
        assert client.ask(call(1)).message == Called(1)


def test_another_major_version_is_named(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve("127.0.0.1:0", echo)
    monkeypatch.setattr("farbench_rpc.greet.VERSION", (7, 2))
    with pytest.raises(VersionMismatch, match=r"device speaks version 1\.\d+, the other side 7\.2"):
        served.client()


@pytest.mark.linux
def test_sessions_leave_nothing_behind(serve: Serve, place: str) -> None:
    served = serve(place, echo)
    served.client().close()
    served.saw_gone.wait(10)
    before = (threading.active_count(), len(os.listdir("/proc/self/fd")))
    for i in range(50):
        with served.client() as client:
            assert client.ask(call(i)).message == Called(i)
    assert threading.active_count() <= before[0]
    # libzmq's own thread closes the last sockets a moment later.
    deadline = time.monotonic() + 10
    while len(os.listdir("/proc/self/fd")) > before[1] + 4:
        assert time.monotonic() < deadline
        served.run(lambda endpoint: None)


def test_connect_takes_text(serve: Serve) -> None:
    served = serve("127.0.0.1:0", echo)
    with Client.connect(str(served.address), "client", agent="me") as client:
        assert client.ask(call(3)).message == Called(3)
        assert client.peer == str(served.address)
