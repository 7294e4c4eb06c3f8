"""A device server as a process: what it says, how it ends, and what it leaves behind."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import farbench as fb
from farbench import errors
from farbench_device_runtime import procfs
from farbench_rpc.client import Client
from farbench_rpc.errors import LeaseLost, Refused
from farbench_rpc.messages import CallEntry, SessionOpen
from tests.support import hostile

if TYPE_CHECKING:
    from farbench.session import Session
    from tests.conftest import Fleet

pytestmark = pytest.mark.linux


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    command = [sys.executable, "-m", "farbench_device_runtime", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def descendants(pid: int) -> list[int]:
    """List the processes below one."""
    found = [pid]
    everything = procfs.processes()
    for parent in found:
        found += [one.pid for one in everything if one.parent == parent]
    return found[1:]


@contextmanager
def watch(pids: list[int]) -> Iterator[list[int]]:
    """Hold processes by descriptors that become readable when they end."""
    fds = [os.pidfd_open(pid) for pid in pids]
    try:
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


def await_end(fds: list[int], limit_s: float) -> float:
    """Wait until all have ended; gives how long it took."""
    began = time.monotonic()
    for fd in fds:
        left_s = max(0.0, began + limit_s - time.monotonic())
        assert select.select([fd], [], [], left_s)[0], f"a process lives after {limit_s} s"
    return time.monotonic() - began


@contextmanager
def session_on(fleet: Fleet, library: Path, name: str) -> Iterator[Session]:
    """Open a session with the library uploaded."""
    with (
        fb.connect_tracker(fleet.address) as tracker,
        tracker.request(f"name={name}", timeout=60) as session,
    ):
        session.upload(library, "hostile.so")
        yield session


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_ends_cleanly_on_a_signal(
    fleet: Fleet, library: Path, number: signal.Signals, status: int
) -> None:
    device = fleet.start(name="d")
    with session_on(fleet, library, "d") as session:
        session.load_module("hostile.so")["nothing"]()
        with watch([device.pid, *descendants(device.pid)]) as fds:
            assert len(fds) >= 3
            os.kill(device.pid, number)
            await_end(fds, 10.0)
        with pytest.raises((errors.DeviceLost, errors.LeaseLost, errors.ConnectError)):
            session.load_module("hostile.so")
    device.close()
    assert device.poll() == status
    # It said that it leaves: once the tracker has read that, nobody is told that a device is lost.
    with fb.connect_tracker(fleet.address) as tracker:
        end_s = time.monotonic() + 10.0
        while "d" in [found.name for found in tracker.devices()]:
            assert time.monotonic() < end_s, "a device that left is still listed"


def test_a_killed_server_leaves_no_process(fleet: Fleet, library: Path) -> None:
    device = fleet.start(name="d")
    with session_on(fleet, library, "d") as session:
        looping = session.load_module("hostile.so")
        looper = threading.Thread(target=_swallow, args=(looping["loop"],))
        looper.start()
        with watch(descendants(device.pid)) as fds:
            device.kill()
            await_end(fds, 5.0)
        looper.join(20)


def test_a_device_without_a_tracker_ends_its_session_by_its_own_clock(
    fleet: Fleet, library: Path
) -> None:
    device = fleet.start(name="d")
    with fb.connect_tracker(fleet.address) as tracker:
        session = tracker.request("name=d", timeout=60)
        session.upload(library, "hostile.so")
        module = session.load_module("hostile.so")
        module["nothing"]()
        looper = threading.Thread(target=_swallow, args=(module["loop"],))
        looper.start()
        workers = [pid for pid in descendants(device.pid) if _is_busy(pid)]
        with watch(workers) as fds:
            fleet.tracker.close()
            assert await_end(fds, 6.0) > 1.0
        looper.join(20)
        assert device.poll() is None
        session.close()


def test_a_token_of_another_lease_opens_nothing(fleet: Fleet, library: Path) -> None:
    device = fleet.start(name="d")
    with session_on(fleet, library, "d") as session:
        lease = session.lease
        assert lease is not None
        address = lease.device.addresses[0]
        with Client.connect(address, "client") as stranger:
            for opening, error in (
                (SessionOpen(lease.id, lease.epoch, "guess"), Refused),
                (SessionOpen(lease.id, lease.epoch + 1, "guess"), Refused),
                (SessionOpen("other", lease.epoch, "guess"), LeaseLost),
            ):
                with pytest.raises(error):
                    stranger.ask(opening)
            with pytest.raises(Refused):
                stranger.ask(CallEntry(1, "nothing", ()))
        session.load_module("hostile.so")["nothing"]()
    assert device.poll() is None


def test_s12_random_bytes_do_not_hurt(fleet: Fleet, library: Path) -> None:
    fleet.start(name="d")
    with session_on(fleet, library, "d") as session:
        assert session.lease is not None
        host, _, port = session.lease.device.addresses[0].rpartition(":")
        for _ in range(60):
            with socket.create_connection((host, int(port)), timeout=10) as raw:
                raw.sendall(os.urandom(500))
        session.load_module("hostile.so")["nothing"]()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_two_servers_share_a_machine_and_time_one_after_the_other(
    fleet: Fleet, library: Path
) -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    fleet.start(name="one", cores=str(first))
    fleet.start(name="two", cores=str(second))
    waits: dict[str, float] = {}

    def time_it(name: str) -> None:
        with session_on(fleet, library, name) as session:
            assert session.facts["core_set"] == (str(first if name == "one" else second),)
            module = session.load_module("hostile.so")
            evaluator = module.time_evaluator("sleep", number=1, repeat=5, exact=True)
            both.wait(60)
            waits[name] = float(evaluator(200).facts["lock_wait_s"])

    both = threading.Barrier(2)
    threads = [threading.Thread(target=time_it, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert set(waits) == {"one", "two"}
    # Seven calls of 0.2 s each: whoever came second waited for most of the other's.
    assert max(waits.values()) > 0.5


def test_n4_a_port_in_use_is_named(fleet: Fleet, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listen = f"127.0.0.1:{port}"
        done = run(
            "--tracker", fleet.address, "--listen", listen, "--state", str(tmp_path / "state")
        )
    assert done.returncode == 1
    assert str(port) in done.stderr
    assert done.stderr.count("\n") == 1


def test_n12_does_not_listen_beyond_loopback_without_being_told(
    fleet: Fleet, tmp_path: Path
) -> None:
    done = run("--tracker", fleet.address, "--listen", "0.0.0.0:0", "--state", str(tmp_path / "s"))
    assert done.returncode == 1
    assert "--insecure" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [(), ("--tracker", "x:y:z"), ("--cores", "none"), ("--what",)]
)
def test_usage_errors_exit_2(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_s10_a_copy_of_a_live_device_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    state = tmp_path / "state"
    arguments = ("--tracker", fleet.address, "--state", str(state), "--json")
    command = [sys.executable, "-m", "farbench_device_runtime", *arguments]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second,
    ):
        try:
            said = {_first_word(first), _first_word(second)}
        finally:
            first.terminate()
            second.terminate()
    assert said == {"registered", "refused"}


def _first_word(process: subprocess.Popen[str]) -> str:
    """Give what the tracker answered to a server."""
    assert process.stdout is not None
    for line in process.stdout:
        for word in ("registered", "refused"):
            if f'"event": "{word}"' in line:
                return word
    return "nothing"


def _swallow(function: object) -> None:
    """Call what will be cut off."""
    with pytest.raises(errors.RpcError):
        function(timeout_s=60.0)  # type: ignore[operator]


def _is_busy(pid: int) -> bool:
    """Tell whether a process has made threads, as a worker with a context has."""
    return "output.log" in os.readlink(f"/proc/{pid}/fd/1")


def test_a_server_without_its_zygote_starts_another(fleet: Fleet, library: Path) -> None:
    device = fleet.start(name="d")
    with session_on(fleet, library, "d") as session:
        session.load_module("hostile.so")["nothing"]()
        with watch(descendants(device.pid)) as fds:
            with pytest.raises(errors.KernelCrashed, match="call of patricide"):
                session.load_module("hostile.so")["patricide"]()
            await_end(fds, 10.0)
        session.load_module("hostile.so")["nothing"]()
    with session_on(fleet, library, "d") as session:
        session.load_module("hostile.so")["nothing"]()
    assert device.poll() is None
    assert "Traceback" not in device.words


@pytest.mark.qemu
def test_a_server_that_can_start_no_other_zygote_says_so_and_ends(
    fleet: Fleet, tmp_path: Path
) -> None:
    device = fleet.start("aarch64", name="d")
    library = hostile.build("aarch64", tmp_path)
    everyone = [device.pid, *descendants(device.pid)]
    with watch(everyone) as fds, session_on(fleet, library, "d") as session:
        with pytest.raises(errors.RpcError):
            session.load_module("hostile.so")["patricide"]()
        await_end(fds, 20.0)
    device.close()
    assert device.poll() == 1
    assert "the process that makes workers is gone" in device.words
    assert "Traceback" not in device.words
