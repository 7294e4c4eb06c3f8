"""The tracker over real sockets on loopback."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from farbench_rpc.client import Client, Reply
from farbench_rpc.errors import (
    Busy,
    Cancelled,
    CannotListen,
    InvalidArgument,
    NoMatch,
    Refused,
    RpcError,
)
from farbench_rpc.messages import (
    DeviceInfo,
    DevicePage,
    ErrorReply,
    Grant,
    LeaseCancel,
    LeaseGranted,
    LeaseQueued,
    LeaseRelease,
    LeaseRenew,
    LeaseRenewed,
    ListDevices,
    ListQueue,
    Message,
    Ok,
    Ping,
    QueuePage,
    Registered,
    Revoke,
)
from farbench_tracker import client_side
from farbench_tracker.service import TrackerServer
from farbench_tracker.settings import Settings
from tests.tracker.boards import WAIT_S, FakeBoard
from tests.tracker.fakes import ask, register

# Short times where a test waits for one of them; elsewhere long ones, so that load breaks nothing.
QUICK = Settings(ttl_s=0.8, renew_s=0.1, kill_s=0.2, beat_s=0.3, confirm_s=0.3, tell_s=0.05)


@pytest.fixture
def tracker() -> Iterator[TrackerServer]:
    with TrackerServer("127.0.0.1", 0, Settings(tell_s=0.05)) as server:
        server.start()
        yield server


@pytest.fixture
def quick() -> Iterator[TrackerServer]:
    with TrackerServer("127.0.0.1", 0, QUICK) as server:
        server.start()
        yield server


@pytest.fixture
def quick_client(quick: TrackerServer) -> Iterator[Client]:
    with Client.connect(quick.address, "client") as found:
        yield found


@pytest.fixture
def client(tracker: TrackerServer) -> Iterator[Client]:
    with Client.connect(tracker.address, "client") as found:
        yield found


def devices(client: Client, requirement: str = "") -> dict[str, DeviceInfo]:
    """List the devices by id."""
    page = client.ask(ListDevices(requirement)).message
    assert isinstance(page, DevicePage)
    return {device.id: device for device in page.devices}


def queued(client: Client) -> list[str]:
    """List the requests that wait."""
    page = client.ask(ListQueue()).message
    assert isinstance(page, QueuePage)
    return [entry.request for entry in page.entries]


def granted(client: Client, request: str, requirement: str = "", **more: object) -> LeaseGranted:
    """Ask for a device and get it."""
    message = client.ask(ask(request, requirement, **more)).message  # type: ignore[arg-type]
    assert isinstance(message, LeaseGranted)
    return message


def renew(client: Client, lease: str) -> LeaseRenewed:
    """Renew a lease."""
    message = client.ask(LeaseRenew((lease,))).message
    assert isinstance(message, LeaseRenewed)
    return message


def until(true: Callable[[], bool]) -> None:
    """Ask again and again until it is so; each time costs a round trip."""
    end_s = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < end_s, "it did not come about"


def bound_again(port: int) -> TrackerServer:
    """Bind a port that was just let go; the system may take a moment to have it back."""
    end_s = time.monotonic() + WAIT_S
    while True:
        try:
            return TrackerServer("127.0.0.1", port)
        except CannotListen:
            assert time.monotonic() < end_s, "the port was not let go"


@contextlib.contextmanager
def in_thread(ask_it: Callable[[], Reply]) -> Iterator[list[Message | RpcError]]:
    """Ask in a thread; the list holds the answer after the block."""
    found: list[Message | RpcError] = []

    def run() -> None:
        try:
            found.append(ask_it().message)
        except RpcError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield found
    finally:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def test_the_welcome_carries_the_times(client: Client) -> None:
    assert client.welcome.settings == {"ttl_s": 3.0, "renew_s": 1.0, "beat_s": 5.0}
    assert client.ask(Ping()).message == Ok()


def test_a_lease_from_request_to_release(tracker: TrackerServer, client: Client) -> None:
    with FakeBoard(tracker.address, "d", labels={"board": "a"}) as board:
        lease = granted(client, "r", "board=a", session_timeout_s=9.0)
        grant = board.await_heard(Grant)
        assert (grant.lease, grant.token, grant.epoch) == (lease.lease, lease.token, 1)
        assert (grant.session_timeout_s, grant.user) == (9.0, "ann")
        assert lease.device.addresses == ("127.0.0.1:4711",)
        assert devices(client)["d"].holder == "ann"
        assert client.ask(LeaseRelease(lease.lease)).message == Ok()
        assert board.await_heard(Revoke).reason == "released by its client"
        until(lambda: devices(client)["d"].state == "free")
        assert granted(client, "again").epoch == 2


def test_s1_a_device_is_free_again_after_its_client_died(
    quick: TrackerServer, quick_client: Client
) -> None:
    with FakeBoard(quick.address, "d") as board:
        with Client.connect(quick.address, "client") as dying:
            granted(dying, "r")
        assert board.await_heard(Revoke).reason == "the client was silent for 0.8 s"
        until(lambda: devices(quick_client)["d"].state == "free")


def test_s15_a_dead_waiter_leaves_the_queue(tracker: TrackerServer, client: Client) -> None:
    with FakeBoard(tracker.address, "d"):
        granted(client, "holder")
        dying = Client.connect(tracker.address, "client")
        dying.begin(ask("w"))
        until(lambda: queued(client) == ["w"])
        dying.close()
        until(lambda: queued(client) == [])


def test_s13_an_unconfirmed_grant_goes_to_another_device(
    quick: TrackerServer, quick_client: Client
) -> None:
    with (
        FakeBoard(quick.address, "a", confirms=False) as mute,
        FakeBoard(quick.address, "b"),
    ):
        assert granted(quick_client, "r").device.id == "b"
        assert "did not confirm" in mute.await_heard(Revoke).reason


def test_s13_a_silent_device_is_lost_and_its_lease_with_it(
    quick: TrackerServer, quick_client: Client
) -> None:
    with FakeBoard(quick.address, "d") as board:
        lease = granted(quick_client, "r").lease
        board.beats = False
        until(lambda: renew(quick_client, lease).ended != {})
        assert renew(quick_client, lease).ended == {lease: "device lost: silent for 0.8 s"}
        until(lambda: devices(quick_client)["d"].state == "lost")


def test_a_closed_connection_is_noticed_at_once(tracker: TrackerServer, client: Client) -> None:
    with FakeBoard(tracker.address, "d"):
        assert devices(client)["d"].state == "free"
    until(lambda: devices(client)["d"].state == "lost")
    assert devices(client)["d"].reason == "its connection is closed"
    with FakeBoard(tracker.address, "d"):
        assert devices(client)["d"].state == "free"


def test_a_second_live_device_with_the_same_id_is_refused(
    tracker: TrackerServer, client: Client
) -> None:
    with FakeBoard(tracker.address, "d"):
        twin = FakeBoard(tracker.address, "d")
        try:
            refused = twin.await_heard(ErrorReply)
        finally:
            twin.close()
        assert refused.code == "denied"
        assert "remove the copied state" in refused.message
        assert devices(client)["d"].state == "free"


def test_errors_are_typed(tracker: TrackerServer, client: Client) -> None:
    with FakeBoard(tracker.address, "d"):
        granted(client, "holder")
        with pytest.raises(Busy, match="no device came free within 0 s"):
            client.ask(ask("now", wait_s=0.0))
        with pytest.raises(InvalidArgument, match="character 3"):
            client.ask(ask("bad", "a="))
        until(lambda: _no_match(client))


def _no_match(client: Client) -> bool:
    try:
        client.ask(ask("none", "board=z", wait_s=0.0))
    except NoMatch as error:
        return "board=z fits 0" in error.message
    return False


def test_waiting_is_told_and_can_be_withdrawn(tracker: TrackerServer, client: Client) -> None:
    heard: list[Message] = []
    with FakeBoard(tracker.address, "d"):
        lease = granted(client, "holder").lease
        with in_thread(
            lambda: client.ask(ask("w"), on_event=lambda event: heard.append(event.message))
        ) as answer:
            until(lambda: renew(client, lease).alive != () and queued(client) == ["w"])
            client.ask(LeaseCancel("w"))
        assert isinstance(answer[0], Cancelled)
        assert heard[0] == LeaseQueued(0, "1 device matches: 1 leased")


def test_a_waiter_is_served_when_the_device_comes_free(
    tracker: TrackerServer, client: Client
) -> None:
    with FakeBoard(tracker.address, "d"):
        lease = granted(client, "holder").lease
        with in_thread(lambda: client.ask(ask("w"))) as answer:
            until(lambda: renew(client, lease).alive != () and queued(client) == ["w"])
            client.ask(LeaseRelease(lease))
        assert isinstance(answer[0], LeaseGranted)
        assert answer[0].queued_s > 0


def test_s14_a_tracker_that_starts_again_honours_running_leases() -> None:
    first = TrackerServer("127.0.0.1", 0)
    first.start()
    address = first.address
    try:
        board = FakeBoard(address, "d")
        with Client.connect(address, "client") as client:
            board.await_heard(Registered)
            lease = granted(client, "r")
    finally:
        first.close()
    with bound_again(address.port) as second:
        second.start()
        with Client.connect(address, "client") as client:
            until(
                lambda: (
                    renew(client, lease.lease).alive == (lease.lease,) and len(devices(client)) == 1
                )
            )
            device = devices(client)["d"]
            assert (device.state, device.lease, device.epoch) == ("leased", lease.lease, 1)
        board.close()


def test_roles_may_only_say_what_is_theirs(tracker: TrackerServer, client: Client) -> None:
    with pytest.raises(Refused, match="register from a client"):
        client.ask(register("d"))
    with Client.connect(tracker.address, "device") as device:
        with pytest.raises(Refused, match="a device may not send lease-request"):
            device.ask(ask("r"))
        assert isinstance(device.ask(register("d")).message, Registered)


def test_a_bug_in_one_answer_does_not_end_the_tracker(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(client_side, "renew", broken)
        with pytest.raises(RpcError, match="met a bug"):
            client.ask(LeaseRenew(()))
    assert client.ask(LeaseRenew(())).message == LeaseRenewed((), {})


def test_n4_a_taken_port_is_named(tracker: TrackerServer) -> None:
    with pytest.raises(CannotListen, match=str(tracker.address.port)):
        TrackerServer("127.0.0.1", tracker.address.port)


def test_n12_no_bind_beyond_loopback_without_insecure(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Refused, match="--insecure"):
        TrackerServer("0.0.0.0", 0)
    with TrackerServer("0.0.0.0", 0, insecure=True) as server:
        assert server.address.port
    assert "without keys" in caplog.text


@pytest.mark.parametrize("host", ["::1", "[::1]", "localhost"])
def test_n3_other_ways_to_name_this_machine(host: str) -> None:
    try:
        server = TrackerServer(host, 0)
    except CannotListen as error:
        pytest.skip(f"no IPv6 here: {error}")
    with server:
        server.start()
        with Client.connect(server.address, "client") as client:
            assert client.ask(Ping()).message == Ok()
            with FakeBoard(server.address, "d"):
                assert devices(client)["d"].addresses[0] in ("[::1]:4711", "127.0.0.1:4711")


def test_serve_stays_until_closed_from_elsewhere() -> None:
    server = TrackerServer("127.0.0.1", 0)
    thread = threading.Thread(target=server.serve)
    thread.start()
    with Client.connect(server.address, "client") as client:
        client.ask(Ping())
    server.close()
    server.close()
    thread.join(WAIT_S)
    assert not thread.is_alive()


def test_a_tracker_that_never_served_can_be_closed() -> None:
    server = TrackerServer("127.0.0.1", 0)
    port = server.address.port
    server.close()
    bound_again(port).close()


def test_many_clients_at_once_each_get_a_turn(tracker: TrackerServer) -> None:
    served: list[str] = []

    def one(name: str) -> None:
        with Client.connect(tracker.address, "client") as client:
            lease = granted(client, name)
            served.append(lease.device.id)
            client.ask(LeaseRelease(lease.lease))

    with FakeBoard(tracker.address, "a"), FakeBoard(tracker.address, "b"):
        threads = [threading.Thread(target=one, args=(f"r{i}",)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
    assert len(served) == 12
    assert set(served) == {"a", "b"}


def test_the_repr_shows_the_state(tracker: TrackerServer, client: Client) -> None:
    with FakeBoard(tracker.address, "d"):
        lease = granted(client, "r")
        assert f"d leased epoch 1), Queue(), Leases({lease.lease} live d@1))" in repr(tracker)
