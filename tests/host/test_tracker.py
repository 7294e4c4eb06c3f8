"""The tracker connection: lists, requests that wait or cannot match, leases that end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import farbench as fb
from farbench import errors, nd
from farbench.settings import Settings
from farbench.tracker import Tracker
from farbench_rpc.address import parse_address
from farbench_rpc.server import Endpoint
from farbench_tracker.service import TrackerServer

if TYPE_CHECKING:
    from tests.conftest import Fleet

pytestmark = pytest.mark.linux


def until(holds: Callable[[], bool], limit_s: float, what: str) -> float:
    """Wait until a thing holds; gives how long it took, fails at the limit."""
    began = time.monotonic()
    pause = threading.Event()
    while not holds():
        if time.monotonic() - began > limit_s:
            pytest.fail(f"{what} did not happen within {limit_s:g} s")
        pause.wait(0.02)
    return time.monotonic() - began


def state(tracker: Tracker, name: str) -> str:
    return {device.name: device.state for device in tracker.devices()}[name]


def test_s10_a_device_is_listed_and_asked_for_by_its_id(fleet: Fleet) -> None:
    fleet.start(name="one")
    with fb.connect_tracker(fleet.address) as tracker:
        (device,) = tracker.devices()
        assert (device.name, device.state, device.facts["arch"]) == ("one", "free", "x86_64")
        assert device.id in {d.id for d in tracker.devices(f"id={device.id}")}
        assert tracker.devices("name=two") == []
        with tracker.request(f"id={device.id}") as session:
            assert session.name == "one"
            assert session.facts["arch"] == "x86_64"
            assert "one" in tracker.text_summary()
            assert "leased" in tracker.text_summary()


@pytest.mark.parametrize("label", ["a:b", 'say "hi"', "x,y", "ü=1", "back\\slash", "(or)|"])
def test_s9_any_printable_label_works(fleet: Fleet, label: str) -> None:
    fleet.start(name=f"board {label}", labels={"shelf": label})
    quoted = label.replace("\\", "\\\\").replace('"', '\\"')
    with fb.connect_tracker(fleet.address) as tracker:
        (device,) = tracker.devices(f'shelf="{quoted}"')
        assert device.labels == {"shelf": label}
        with tracker.request(f'shelf="{quoted}"') as session:
            assert session.name == f"board {label}"


def test_no_match_says_why(fleet: Fleet) -> None:
    fleet.start(name="one")
    with fb.connect_tracker(fleet.address) as tracker:
        with pytest.raises(errors.NoMatch, match="arch"):
            tracker.request("arch=riscv64", timeout=0)
        with pytest.raises(errors.InvalidArgument):
            tracker.request("arch=(", timeout=0)


def test_s4_a_request_that_waits_is_told_so_and_ends_as_busy(fleet: Fleet) -> None:
    fleet.start(name="one")
    with fb.connect_tracker(fleet.address) as tracker, tracker.request("name=one"):
        with pytest.raises(errors.Busy):
            tracker.request("name=one", timeout=0)
        told: list[tuple[int, str]] = []
        with pytest.raises(errors.Busy) as caught:
            tracker.request("name=one", timeout=0.5, on_queued=lambda p, r: told.append((p, r)))
        assert float(caught.value.detail["waited_s"]) >= 0.5
        assert told[0][0] == 0
        assert told[0][1]


def test_a_waiting_request_gets_the_device_and_knows_how_long_it_queued(fleet: Fleet) -> None:
    fleet.start(name="one")
    with fb.connect_tracker(fleet.address) as tracker:
        first = tracker.request("name=one")
        queued = threading.Event()
        names: list[tuple[str, float]] = []

        def wait() -> None:
            with tracker.request("name=one", on_queued=lambda p, r: queued.set()) as second:
                names.append((second.name, second.queued_s))

        thread = threading.Thread(target=wait)
        thread.start()
        assert queued.wait(10)
        assert [entry.requirement for entry in tracker.queue()] == ["name=one"]
        first.close()
        thread.join(20)
        assert names[0][0] == "one"
        assert names[0][1] > 0


def test_s15_ctrl_c_while_waiting_leaves_the_queue(fleet: Fleet) -> None:
    fleet.start(name="one")

    def interrupt(position: int, reason: str) -> None:
        raise KeyboardInterrupt

    with fb.connect_tracker(fleet.address) as tracker, tracker.request("name=one"):
        with pytest.raises(KeyboardInterrupt):
            tracker.request("name=one", on_queued=interrupt)
        until(lambda: tracker.queue() == [], 5, "leaving the queue")


def test_ctrl_c_inside_a_session_frees_the_device(fleet: Fleet) -> None:
    fleet.start(name="one")
    with fb.connect_tracker(fleet.address) as tracker:
        with pytest.raises(KeyboardInterrupt), tracker.request("name=one"):
            raise KeyboardInterrupt
        with tracker.request("name=one", timeout=5):
            pass


CLIENT = """
import sys, farbench as fb
tracker = fb.connect_tracker(sys.argv[1])
session = tracker.request("name=one")
session.upload(sys.argv[2], "hostile.so")
module = session.load_module("hostile.so")
print("ready", flush=True)
module["loop"](timeout_s=600)
"""


def test_s1_a_killed_client_frees_its_device_within_five_seconds(
    fleet: Fleet, library_of: Callable[[str], Path]
) -> None:
    fleet.start(name="one")
    with fb.connect_tracker(fleet.address) as tracker:
        command = [sys.executable, "-c", CLIENT, fleet.address, str(library_of("native"))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n"
            assert state(tracker, "one") == "leased"
            os.kill(client.pid, signal.SIGKILL)
            client.wait(10)
        took_s = until(lambda: state(tracker, "one") == "free", 5, "freeing the device")
        assert took_s < 5
        with tracker.request("name=one", timeout=5) as session:
            session.upload(library_of("native"), "hostile.so")
            session.load_module("hostile.so")["nothing"]()


def test_a_device_that_dies_ends_its_session_with_a_typed_error(fleet: Fleet) -> None:
    device = fleet.start(name="one")
    with fb.connect_tracker(fleet.address) as tracker:
        session = tracker.request("name=one")
        device.kill()

        def use_up_to(count: int) -> None:
            for _ in range(count):
                nd.empty(4, "float32", session.cpu())

        with pytest.raises((errors.DeviceLost, errors.LeaseLost)):
            use_up_to(1000)
        with pytest.raises((errors.DeviceLost, errors.LeaseLost)):
            nd.empty(4, "float32", session.cpu())
        session.close()


def test_a_lease_beyond_its_cap_is_lost(fleet: Fleet, library_of: Callable[[str], Path]) -> None:
    fleet.start(name="one")
    with fb.connect_tracker(fleet.address) as tracker:
        session = tracker.request("name=one", session_timeout=1.0)
        session.upload(library_of("native"), "hostile.so")
        module = session.load_module("hostile.so")
        began = time.monotonic()
        with pytest.raises((errors.LeaseLost, errors.Cancelled)):
            module["loop"](timeout_s=60)
        assert time.monotonic() - began < 10
        session.close()
        with tracker.request("name=one", timeout=10):
            pass


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_s6_sessions_leave_no_thread_and_no_file_behind(fleet: Fleet) -> None:
    fleet.start(name="one")
    with fb.connect_tracker(fleet.address) as tracker:
        with tracker.request("name=one"):
            pass
        files, threads = open_files(), threading.active_count()
        for _ in range(50):
            with tracker.request("name=one") as session:
                nd.empty(4, "float32", session.cpu())
        assert threading.active_count() == threads
        until(lambda: open_files() <= files, 5, "closing of sockets")


@pytest.mark.slow
def test_s6_a_thousand_sessions_leave_nothing_behind(fleet: Fleet) -> None:
    fleet.start(name="one")
    with fb.connect_tracker(fleet.address) as tracker:
        with tracker.request("name=one"):
            pass
        files, threads = open_files(), threading.active_count()
        for _ in range(1000):
            with tracker.request("name=one") as session:
                nd.empty(4, "float32", session.cpu())
        assert threading.active_count() == threads
        until(lambda: open_files() <= files, 5, "closing of sockets")


def test_s6_a_tracker_that_is_closed_leaves_no_thread(fleet: Fleet) -> None:
    fleet.start(name="one")
    before = threading.active_count()
    with fb.connect_tracker(fleet.address) as tracker, tracker.request("name=one"):
        assert threading.active_count() > before
    assert threading.active_count() == before


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_n3_every_kind_of_address_connects(host: str) -> None:
    with TrackerServer("::1" if host == "::1" else "127.0.0.1", 0) as server:
        server.start()
        port = server.address.port
        with fb.connect_tracker(host, port) as tracker:
            assert tracker.devices() == []
        text = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        with fb.connect_tracker(text) as tracker:
            assert tracker.queue() == []
        with fb.connect_tracker(settings=Settings(tracker=text)) as tracker:
            assert str(port) in repr(tracker)


def _await_refusal(port: int) -> None:
    """Wait until nothing listens: the library behind a socket closes it in a thread of its own."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return
    pytest.fail(f"port {port} is still open")


def test_n5_a_refused_connection_says_so() -> None:
    with TrackerServer("127.0.0.1", 0) as server:
        port = server.address.port
    _await_refusal(port)
    with pytest.raises(errors.ConnectError, match="refused"):
        fb.connect_tracker("127.0.0.1", port)


@pytest.mark.parametrize(
    "given", [{"timeout": -1}, {"timeout": float("nan")}, {"session_timeout": 0}]
)
def test_limits_are_checked_before_anything_is_asked(fleet: Fleet, given: dict[str, float]) -> None:
    with fb.connect_tracker(fleet.address) as tracker, pytest.raises(errors.UsageError):
        tracker.request("name=one", **given)  # type: ignore[arg-type]


def test_a_closed_tracker_says_that_it_is_closed(fleet: Fleet) -> None:
    tracker = fb.connect_tracker(fleet.address)
    tracker.close()
    tracker.close()
    with pytest.raises(errors.UsageError, match="closed"):
        tracker.devices()


def test_closing_the_tracker_frees_what_it_holds(fleet: Fleet) -> None:
    fleet.start(name="one")
    held = fb.connect_tracker(fleet.address)
    held.request("name=one")
    held.close()
    with fb.connect_tracker(fleet.address) as tracker, tracker.request("name=one", timeout=5):
        pass


@pytest.mark.parametrize(
    ("role", "told"),
    [
        ("device", {}),
        ("tracker", {}),
        ("tracker", {"renew_s": "soon", "ttl_s": 3.0}),
        ("tracker", {"renew_s": float("nan"), "ttl_s": 3.0}),
        ("tracker", {"renew_s": 1.0, "ttl_s": -1}),
    ],
)
def test_who_is_no_tracker_is_named_as_what_it_is(role: str, told: dict[str, float]) -> None:
    with Endpoint.bind(parse_address("127.0.0.1:0"), role, welcome=told) as endpoint:
        over = threading.Event()

        def serve() -> None:
            while not over.wait(0.001):
                endpoint.receive()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with pytest.raises(errors.ProtocolError, match=f"answers as a {role}"):
                fb.connect_tracker(str(endpoint.address))
        finally:
            over.set()
            thread.join()
