"""Finding what a dead worker left, where no subreaper adopts it."""

from __future__ import annotations

import os
import select
import signal
import time

import pytest

from farbench_device_runtime import libc, reaper

pytestmark = pytest.mark.linux


def test_a_fugitive_is_found_by_the_name_it_inherits() -> None:
    name = f"fb-t{os.getpid()}"
    reader, writer = os.pipe()
    worker = os.fork()
    if worker == 0:
        libc.name_process(name)
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(writer, str(os.getpid()).encode())
            time.sleep(60)
        os._exit(0)
    os.close(writer)
    fugitive = int(os.read(reader, 100))
    os.waitpid(worker, 0)
    assert reaper.leftovers(worker, name, (), subreaper=False) == [fugitive]
    assert reaper.leftovers(worker, name, (fugitive,), subreaper=False) == []
    os.close(reader)
    watch = os.pidfd_open(fugitive)
    reaper.kill_all([fugitive])
    assert select.select([watch], [], [], 20)[0]
    os.close(watch)
    assert reaper.leftovers(worker, name, (), subreaper=False) == []


def test_the_gone_are_no_error() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    reaper.kill_all([child])
    reaper.signal_group(child, signal.SIGKILL)
