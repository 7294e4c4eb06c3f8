"""Rows N3 to N5, N8, S12 and S13: addresses, connections that fail, peers that misbehave."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import zmq

import farbench as fb
from farbench import errors
from farbench_device_runtime import procfs
from farbench_rpc.client import Client
from farbench_rpc.codec import decode, encode
from farbench_rpc.messages import VERSION, ErrorReply, Hello, ListDevices, Welcome
from tests.behaviours.conftest import Run
from tests.behaviours.yard import Place, Yard, running_tracker, start, until

pytestmark = pytest.mark.linux

HOSTS = ["127.0.0.1", "::1", "localhost"]


def written(host: str, port: int | str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# On a board one start shows two: the tracker by one kind of address, its own listener by another.
PLACES = [
    *(pytest.param("native", host, host) for host in HOSTS),
    pytest.param("aarch64", "::1", "localhost", marks=pytest.mark.qemu),
    pytest.param("armv7", "localhost", "::1", marks=pytest.mark.qemu),
]


@pytest.mark.parametrize(("arch", "host", "listens"), PLACES)
def test_n3_every_place_takes_every_kind_of_address(
    arch: str,
    host: str,
    listens: str,
    yard: Yard,
    farbench: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running_tracker("--host", host, "--port", "0") as (address, _):
        port = int(address.rpartition(":")[2])
        assert address == written(host, port)
        listen = ("--listen", written(listens, 0))
        with start(arch, address, tmp_path / "state", "d", extra=listen):
            use(host, port, yard.library(arch))
            assert len(farbench("devices", "--tracker", address, "--json").last["devices"]) == 1
            monkeypatch.setenv("FARBENCH_TRACKER", address)
            assert len(farbench("devices", "--json").last["devices"]) == 1
            monkeypatch.delenv("FARBENCH_TRACKER")
            folder = tmp_path / "config" / "farbench"
            folder.mkdir(parents=True)
            (folder / "config.toml").write_text(f'tracker = "{address}"\n')
            monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
            assert len(farbench("devices", "--json").last["devices"]) == 1


def use(host: str, port: int, library: Path) -> None:
    """Run a kernel on the tracker's only device, by every form of the tracker's address."""
    with fb.connect_tracker(host, port) as tracker:
        (device,) = tracker.devices()
        assert device.addresses
        with tracker.request("name=d", timeout=10) as session:
            session.upload(library, "hostile.so")
            session.load_module("hostile.so")["nothing"]()
        again = str(tracker.address)
    for text in (written(host, port), again):
        with fb.connect_tracker(text) as tracker:
            assert len(tracker.devices()) == 1


# ---------------------------------------------------------------- what fails


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "farbench.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_n4_a_port_in_use_is_named(yard: Yard, tmp_path: Path) -> None:
    port = yard.address.rpartition(":")[2]
    tracker = run("tracker", "--port", port)
    to = ("--tracker", yard.address, "--state", str(tmp_path / "state"))
    device = run("device", *to, "--listen", f"127.0.0.1:{port}")
    for done in (tracker, device):
        assert done.returncode in (1, 2)
        assert port in done.stderr
        assert done.stderr.count("\n") == 1


def test_n5_nobody_there_is_told_as_refused() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(errors.ConnectError, match="refused") as caught:
            fb.connect_tracker("127.0.0.1", port)
    assert str(port) in str(caught.value)


@contextmanager
def speaking(answer: bytes, stays: bool) -> Iterator[str]:
    """Listen, say `answer` to whoever comes, and leave or stay; gives the address."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    held.append(server.accept()[0])
                    held[-1].sendall(answer)
                    if not stays:
                        held[-1].close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for peer in held:
                peer.close()


def test_n5_another_protocol_is_told_as_such() -> None:
    with speaking(b"HTTP/1.1 400 Bad Request\r\n\r\n", stays=False) as address:
        with pytest.raises(errors.ConnectError, match="protocol") as caught:
            fb.connect_tracker(address)
        assert address in str(caught.value)
    with speaking(b"", stays=True) as address:
        with pytest.raises((errors.ConnectError, errors.RemoteTimeout), match="protocol") as late:
            Client.connect(address, "client", timeout_s=0.5)
        assert address in str(late.value)


def test_n5_a_device_is_not_taken_for_a_tracker(native: Place) -> None:
    (device,) = native.tracker.devices("name=native")
    with pytest.raises(errors.RpcError) as caught, fb.connect_tracker(device.addresses[0]) as found:
        found.devices()
    assert "\n" not in str(caught.value)


def test_n5_a_device_that_is_taken_is_told_as_busy(native: Place) -> None:
    with native.request(), pytest.raises(errors.Busy, match="native"):
        native.tracker.request("name=native", timeout=0)


class Raw:
    """A peer that says what it likes, a frame at a time."""

    def __init__(self, address: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.connect(f"tcp://{address}")

    def say(self, *frames: bytes) -> None:
        self._socket.send_multipart(frames)

    def hear(self) -> object:
        assert self._socket.poll(10_000), "no answer"
        return decode(self._socket.recv_multipart()[0]).message

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *exc: object) -> None:
        self._context.destroy()


def listeners(place: Place) -> list[str]:
    """Give the addresses of the tracker and of a device."""
    (device,) = place.tracker.devices(f"name={place.arch}")
    return [place.yard.address, device.addresses[0]]


def test_n8_peers_of_another_minor_version_talk(place: Place) -> None:
    for address in listeners(place):
        with Raw(address) as newer:
            newer.say(encode(Hello("client", (VERSION[0], VERSION[1] + 7)), 0, 0))
            welcome = newer.hear()
            assert isinstance(welcome, Welcome)
            assert welcome.version == VERSION
    with Raw(place.yard.address) as newer:
        newer.say(encode(Hello("client", (VERSION[0], VERSION[1] + 7)), 0, 0))
        newer.hear()
        newer.say(encode(ListDevices(), 1, 0))
        assert type(newer.hear()).__name__ == "DevicePage"


def test_n8_peers_of_another_major_version_are_told_both(place: Place) -> None:
    theirs = (VERSION[0] + 1, 3)
    for address in listeners(place):
        with Raw(address) as stranger:
            stranger.say(encode(Hello("client", theirs), 0, 0))
            answer = stranger.hear()
            assert isinstance(answer, ErrorReply)
            assert answer.code == "version"
            for version in (theirs, VERSION):
                assert f"{version[0]}.{version[1]}" in answer.message


# ---------------------------------------------------------------- peers that misbehave


def resident_kib(pid: int) -> int:
    for line in procfs.read_text(f"/proc/{pid}/status").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"no process {pid}")


def fuzz(address: str, count: int, seed: int) -> None:
    """Send what no peer would: random frames, damaged messages, bytes that are no ZeroMQ."""
    dice = random.Random(seed)
    good = [encode(Hello("client"), 0, 0), encode(ListDevices(), 1, 0)]
    with Raw(address) as known, Raw(address) as unknown:
        known.say(good[0])
        known.hear()
        for _ in range(count // 2):
            frame = bytearray(dice.choice(good))
            for _ in range(dice.randrange(1, 4)):
                frame[dice.randrange(len(frame))] = dice.randrange(256)
            known.say(bytes(frame), *([dice.randbytes(50)] * dice.randrange(3)))
            unknown.say(dice.randbytes(dice.randrange(200)))
    host, _, port = address.rpartition(":")
    for _ in range(min(count // 20, 2000)):
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(dice.randbytes(dice.randrange(300)))


def survives(place: Place, count: int) -> None:
    pids = [place.yard.process.pid, place.device.pid]
    for address in listeners(place):
        fuzz(address, 200, 0)  # What is made once, such as tables, is there after this.
    before = [resident_kib(pid) for pid in pids]
    for seed, address in enumerate(listeners(place)):
        fuzz(address, count, seed + 1)
    with place.request(timeout=10.0) as session:
        session.load_module("hostile.so")["nothing"]()
    for pid, kib in zip(pids, before, strict=True):
        assert resident_kib(pid) < kib + 16_384
    assert place.yard.process.poll() is None
    assert place.device.poll() is None


def test_s12_fuzzed_frames_grow_nothing_and_stop_nothing(place: Place) -> None:
    survives(place, 2000)


@pytest.mark.slow
def test_s12_a_million_fuzzed_frames_grow_nothing_and_stop_nothing(place: Place) -> None:
    survives(place, 500_000)


def test_s12_half_open_peers_stop_nothing(native: Place) -> None:
    addresses = listeners(native)
    held = []
    try:
        for address in addresses:
            host, _, port = address.rpartition(":")
            for _ in range(100):
                held.append(socket.create_connection((host, int(port)), timeout=10))
                held[-1].sendall(b"\xff\x00\x00")
        with native.request(timeout=10.0) as session:
            session.load_module("hostile.so")["nothing"]()
    finally:
        for peer in held:
            peer.close()


QUICK = """
[tracker]
beat_s = 0.4
confirm_s = 1.0
"""


@pytest.fixture
def quick_tracker(tmp_path: Path) -> Iterator[str]:
    """A tracker that expects beats often, so that three of them pass soon."""
    config = tmp_path / "tracker.toml"
    config.write_text(QUICK)
    with running_tracker("--port", "0", "--config", str(config)) as (address, _):
        yield address


@contextmanager
def silenced(pid: int) -> Iterator[None]:
    """Stop a process as a power cut would, as far as others hear."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def state_of(tracker: fb.Tracker, name: str) -> Callable[[], str]:
    return lambda: {device.name: device.state for device in tracker.devices()}[name]


def test_s13_a_silent_device_is_lost_within_three_beats(quick_tracker: str, tmp_path: Path) -> None:
    with (
        start("native", quick_tracker, tmp_path / "state", "d") as device,
        fb.connect_tracker(quick_tracker) as tracker,
    ):
        with silenced(device.pid):
            # Its last beat may have come just before, and the tracker looks at its clock at times.
            until(lambda: state_of(tracker, "d")() == "lost", 3 * 0.4 + 0.4, "lost")
            with pytest.raises(errors.RpcError):
                tracker.request("name=d", timeout=0)
        until(lambda: state_of(tracker, "d")() == "free", 10.0, "back again")
        tracker.request("name=d", timeout=5).close()


def test_s13_a_grant_that_is_not_confirmed_goes_to_another(
    quick_tracker: str, tmp_path: Path
) -> None:
    with (
        start("native", quick_tracker, tmp_path / "one", "one") as one,
        start("native", quick_tracker, tmp_path / "two", "two") as two,
        fb.connect_tracker(quick_tracker) as tracker,
    ):
        with silenced(one.pid), tracker.request("!emulated", timeout=10) as session:
            assert session.name == "two"
            assert session.queued_s < 2.0
        until(lambda: state_of(tracker, "one")() == "free", 10.0, "back again")
        with silenced(two.pid), tracker.request("!emulated", timeout=10) as session:
            assert session.name == "one"


def test_s13_the_lease_of_a_silent_device_ends_as_device_lost(
    quick_tracker: str, yard: Yard, tmp_path: Path
) -> None:
    with (
        start("native", quick_tracker, tmp_path / "state", "d") as device,
        fb.connect_tracker(quick_tracker) as tracker,
    ):
        session = tracker.request("name=d", timeout=10)
        session.upload(yard.library("native"), "hostile.so")
        module = session.load_module("hostile.so")
        with silenced(device.pid):
            # The session's own connection may show the silence before the tracker tells of it.
            with pytest.raises((errors.DeviceLost, errors.LeaseLost)) as caught:
                module["sleep"](60_000, timeout_s=60.0)
            if type(caught.value) is errors.LeaseLost:
                assert str(caught.value.detail["reason"]).startswith("device lost")
            lease = session.lease
            assert lease is not None
            until(lambda: bool(lease.ended), 5.0, "the end of the lease")
            assert lease.ended.startswith("device lost")
            session.close()
