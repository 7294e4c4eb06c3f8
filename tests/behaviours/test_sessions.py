"""Rows S1 and S3 to S6: a session ends when it should, and what is waited for ends in time."""

from __future__ import annotations

import inspect
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from farbench import errors, nd
from farbench.callables import CALL_TIMEOUT_S
from farbench.remote import RemoteModule
from farbench.session import Session
from farbench.settings import Settings
from farbench_rpc import messages as m
from farbench_rpc.client import Client
from tests.behaviours.yard import Place, client, inside, until, watched

pytestmark = pytest.mark.linux


def test_s1_a_killed_client_frees_its_device_within_5_s(place: Place) -> None:
    with client(place.yard.address, place.arch, place.library, "litter", "stubborn") as killed:
        assert place.state() == "leased"
        workers = inside(place.sessions)
        assert workers
        with watched(workers) as alive_after:
            began = time.monotonic()
            os.kill(killed.pid, signal.SIGKILL)
            until(lambda: place.state() == "free", 5.0, "the device free again")
            assert alive_after(max(0.0, began + 5.0 - time.monotonic())) == []
    assert inside(place.sessions) == []
    assert list(place.sessions.iterdir()) == []
    with place.request(timeout=5.0) as session:
        session.load_module("hostile.so")["nothing"]()


def test_s3_a_kernel_is_stopped_at_its_limit(place: Place) -> None:
    limit_s = 2.0
    with place.request() as session:
        module = session.load_module("hostile.so")
        began = time.monotonic()
        with pytest.raises(errors.KernelTimeout) as caught:
            module["loop"](timeout_s=limit_s)
        took_s = time.monotonic() - began
    assert isinstance(caught.value, errors.RemoteTimeout)
    assert caught.value.detail["limit_s"] == limit_s
    assert limit_s <= float(caught.value.detail["elapsed_s"]) <= 1.1 * limit_s
    assert limit_s <= took_s <= 1.1 * limit_s
    assert "loop" in str(caught.value.detail["last_call"])
    assert "2 s" in str(caught.value)


def test_s3_a_wait_for_an_answer_ends_at_its_limit(native: Place) -> None:
    limit_s = 1.0
    with native.request() as session:
        module = session.load_module("hostile.so")
        began = time.monotonic()
        with pytest.raises(errors.RemoteTimeout) as caught:
            session.ask(m.CallEntry(module.handle, "sleep", (60_000,), 100.0), timeout_s=limit_s)
        took_s = time.monotonic() - began
    assert not isinstance(caught.value, errors.KernelError)
    assert caught.value.detail["limit_s"] == limit_s
    assert limit_s <= took_s <= 1.1 * limit_s
    assert limit_s <= float(caught.value.detail["elapsed_s"]) <= 1.1 * limit_s


def test_s3_a_wait_for_a_device_ends_at_its_limit(native: Place) -> None:
    limit_s = 1.0
    with native.request():
        began = time.monotonic()
        with pytest.raises(errors.Busy) as caught:
            native.tracker.request("name=native", timeout=limit_s)
        took_s = time.monotonic() - began
    assert limit_s <= float(caught.value.detail["waited_s"]) <= 1.1 * limit_s
    assert limit_s <= took_s <= 1.1 * limit_s


def test_s3_a_session_ends_at_its_cap(native: Place) -> None:
    limit_s = 2.0
    began = time.monotonic()
    session = native.request(session_timeout=limit_s)
    module = session.load_module("hostile.so")
    with pytest.raises(errors.LeaseLost):
        module["loop"](timeout_s=60.0)
    assert 0.9 * limit_s <= time.monotonic() - began <= 1.1 * limit_s
    session.close()
    native.request(timeout=5.0).close()


def test_s4_every_wait_is_finite_and_says_what_for(native: Place) -> None:
    waits: list[tuple[Callable[..., object], str]] = [
        (Client.ask, "timeout_s"),
        (Client.connect, "timeout_s"),
        (Session.ask, "timeout_s"),
    ]
    for function, name in waits:
        default = inspect.signature(function).parameters[name].default
        assert 0 < default < 3600, function
    assert 0 < Settings().wait_s < 3600
    assert 0 < Settings().session_timeout_s < 3600
    assert 0 < CALL_TIMEOUT_S < 3600
    with native.request() as session:
        module = session.load_module("hostile.so")
        with pytest.raises(errors.RemoteTimeout) as caught:
            session.ask(m.CallEntry(module.handle, "sleep", (60_000,), 100.0), timeout_s=0.2)
    assert caught.value.detail["waited_for"]


def test_s4_queue_time_is_not_run_time(native: Place) -> None:
    first = native.request()
    got: list[Session] = []
    queued = threading.Event()

    def wait() -> None:
        got.append(native.tracker.request("name=native", on_queued=lambda p, r: queued.set()))

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert queued.wait(10)
    # How long it queues is the fact under test, so that here time must pass.
    threading.Event().wait(0.5)
    first.close()
    waiting.join(20)
    with got[0] as session:
        session.upload(native.library, "hostile.so")
        module = session.load_module("hostile.so")
        found = module.time_evaluator("nothing", number=1, repeat=3)()
    assert found.spent.queued_s >= 0.5
    assert found.spent.end_to_end_s < found.spent.queued_s
    assert found.spent.device_s < found.spent.end_to_end_s
    assert found.as_dict()["queued_s"] == found.spent.queued_s


def test_s5_a_session_is_over_within_1_s_of_close(place: Place) -> None:
    with place.request() as session:
        session.load_module("hostile.so")["nothing"]()
        nd.empty(1000, "float32", session.cpu())
        workers = inside(place.sessions)
        assert workers
        with watched(workers) as alive_after:
            began = time.monotonic()
            session.close()
            until(lambda: place.state() == "free", 1.0, "the device free again")
            assert alive_after(max(0.0, began + 1.0 - time.monotonic())) == []
            assert time.monotonic() - began <= 1.0
    with pytest.raises(errors.SessionClosed):
        session.load_module("hostile.so")


def test_s5_close_ends_a_call_under_way(place: Place) -> None:
    session = place.request()
    module = session.load_module("hostile.so")
    module["litter"]()
    raised: list[BaseException] = []

    def call() -> None:
        try:
            module["stubborn"](timeout_s=60.0)
        except errors.RpcError as error:
            raised.append(error)

    calling = threading.Thread(target=call)
    calling.start()
    until(lambda: at_work(place), 10.0, "the kernel at work")
    with watched(inside(place.sessions)) as alive_after:
        began = time.monotonic()
        session.close()
        until(lambda: place.state() == "free", 1.0, "the device free again")
        assert alive_after(max(0.0, began + 1.0 - time.monotonic())) == []
        assert time.monotonic() - began <= 1.0
    calling.join(10)
    assert not calling.is_alive()
    assert [type(error) for error in raised] in ([errors.Cancelled], [errors.LeaseLost])


def at_work(place: Place) -> bool:
    """Tell whether a worker of the device runs, and not for the first moment."""
    for pid in inside(place.sessions):
        with suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
            if fields[0] == "R" and int(fields[11]) >= 5:
                return True
    return False


def leave_nothing(place: Place, count: int) -> None:
    place.request().close()
    files, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(count):
        with place.tracker.request(f"name={place.arch}", timeout=10) as session:
            nd.empty(4, "float32", session.cpu())
    assert threading.active_count() == threads
    until(lambda: len(os.listdir("/proc/self/fd")) <= files, 5.0, "sockets and files closed")
    assert inside(place.sessions) == []


def test_s6_sessions_leave_no_thread_file_or_socket(place: Place) -> None:
    leave_nothing(place, 30 if place.arch == "native" else 3)


@pytest.mark.slow
def test_s6_a_thousand_sessions_leave_no_thread_file_or_socket(place: Place) -> None:
    leave_nothing(place, 1000)


def test_s6_nothing_blocks_in_a_destructor(native: Place) -> None:
    session = native.request()
    module = session.load_module("hostile.so")
    arrays = [nd.empty(4, "float32", session.cpu()) for _ in range(20)]
    calling = threading.Thread(target=_cut_off, args=(module,))
    calling.start()
    until(lambda: at_work(native), 10.0, "the kernel at work")
    began = time.monotonic()
    arrays.clear()  # while the device cannot answer
    assert time.monotonic() - began < 0.1
    session.close()
    calling.join(10)
    assert not calling.is_alive()


def _cut_off(module: RemoteModule) -> None:
    with pytest.raises(errors.RpcError):
        module["loop"](timeout_s=60.0)
