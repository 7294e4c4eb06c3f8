"""The zygote: warm workers, exits, orphans, and nothing left when its server goes."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from farbench_device_runtime import procfs
from farbench_device_runtime import supervisor as supervisor_module
from farbench_device_runtime.exits import ORPHANED
from farbench_device_runtime.supervisor import Supervisor, Worker, ZygoteLost

pytestmark = pytest.mark.linux
Make = Callable[[], Supervisor]


_taken: list[Worker] = []


@pytest.fixture(autouse=True)
def _close_pipes() -> Iterator[None]:
    yield
    while _taken:
        _taken.pop().pipe.close()


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    made = Supervisor.execute()
    yield made
    made.close()


def await_(supervisor: Supervisor, done: Callable[[], object]) -> None:
    """Hear the zygote until something holds."""
    while not done():
        assert select.select([supervisor], [], [], 20)[0], "the zygote said nothing for 20 s"
        supervisor.receive()


def take(supervisor: Supervisor) -> Worker:
    supervisor.prepare()
    await_(supervisor, lambda: supervisor.warm)
    worker = supervisor.take(0)
    assert worker is not None
    _taken.append(worker)
    return worker


def test_keeps_one_worker_warm(supervisor: Supervisor) -> None:
    first = take(supervisor)
    assert supervisor.take(0) is None
    second = take(supervisor)
    assert first.pid != second.pid
    for worker in (first, second):
        supervisor.end(worker.pid, 0.0)
    await_(supervisor, lambda: len(supervisor.exits) == 2)
    assert {ended.pid for ended in supervisor.exits} == {first.pid, second.pid}
    assert all(ended.emptied and ended.cause == "ended" for ended in supervisor.exits)


def test_a_worker_leads_its_own_group(supervisor: Supervisor) -> None:
    worker = take(supervisor)
    found = _settled(worker)
    assert (found.group, found.session, found.name) == (worker.pid, worker.pid, worker.name)
    assert found.parent == supervisor.pid


def test_tells_how_a_worker_died(supervisor: Supervisor) -> None:
    worker = take(supervisor)
    os.kill(worker.pid, signal.SIGSEGV)
    await_(supervisor, lambda: supervisor.exits)
    ended = supervisor.exits.popleft()
    assert os.WTERMSIG(ended.status) == signal.SIGSEGV
    assert (ended.cause, ended.orphans) == ("", 0)


def test_a_warm_worker_that_dies_is_replaced(supervisor: Supervisor) -> None:
    await_(supervisor, lambda: supervisor.warm)
    assert supervisor.warm is not None
    dead = supervisor.warm.pid
    os.kill(dead, signal.SIGKILL)
    await_(supervisor, lambda: supervisor.warm is not None and supervisor.warm.pid != dead)
    assert not supervisor.exits


def test_a_closed_pipe_ends_a_worker(supervisor: Supervisor) -> None:
    worker = take(supervisor)
    worker.pipe.close()
    await_(supervisor, lambda: supervisor.exits)
    assert supervisor.exits[0].pid == worker.pid


@pytest.mark.parametrize("start", [Supervisor.execute, Supervisor.fork])
def test_close_leaves_no_process(start: Make) -> None:
    made = start()
    workers = [take(made), take(made)]
    made.prepare()
    await_(made, lambda: made.warm)
    pids = [made.pid, *(worker.pid for worker in workers)]
    made.close()
    assert [pid for pid in pids if _alive(pid)] == []


@pytest.mark.parametrize("start", [Supervisor.execute, Supervisor.fork])
def test_a_killed_zygote_takes_its_workers_along_and_is_replaced(start: Make) -> None:
    made = start()
    dead, worker = made.pid, take(made)
    os.kill(dead, signal.SIGKILL)
    await_(made, lambda: made.exits)
    ended = made.exits.popleft()
    assert (ended.pid, ended.cause, ended.emptied) == (worker.pid, ORPHANED, True)
    assert not _alive(worker.pid)
    assert take(made).pid != worker.pid
    assert made.pid != dead
    made.close()


def test_a_stopped_zygote_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "STUCK_S", 5.0)
    made = Supervisor.execute()
    worker = take(made)
    os.kill(made.pid, signal.SIGSTOP)
    now = time.monotonic()
    made.end(worker.pid, 0.0)
    made.tick(now)
    assert not select.select([made], [], [], 0)[0]
    made.tick(now + 10.0)
    await_(made, lambda: made.exits)
    assert made.exits[0].pid == worker.pid
    made.close()


def test_where_no_program_can_be_started_the_loss_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise OSError(8, "Exec format error")

    made = Supervisor.execute()
    monkeypatch.setattr(supervisor_module, "_execute", refused)
    os.kill(made.pid, signal.SIGKILL)
    with pytest.raises(ZygoteLost, match=r"gone, and no other can be started: Exec format error"):
        await_(made, lambda: made.exits)
    made.close()


def test_facts_name_what_held(supervisor: Supervisor) -> None:
    assert {"process_group", "no_new_privs", "no_core_file", "open_files"} <= set(supervisor.held)
    assert supervisor.subreaper


def _settled(worker: Worker) -> procfs.Stat:
    """Give the worker as it is once it waits for its server."""
    while True:
        found = procfs.stat(worker.pid)
        assert found is not None
        if found.name == worker.name:
            return found
        os.sched_yield()


def _alive(pid: int) -> bool:
    found = procfs.stat(pid)
    return found is not None and found.state not in "ZX"
