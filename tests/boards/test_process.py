"""A device server is owned: awaited until registered, and gone after close."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from farbench.boards import DeviceOptions, DeviceProcess, DeviceStartError

if TYPE_CHECKING:
    from tests.conftest import Fleet

REGISTERED = 'print(\'{"event": "registered", "id": "x"}\', flush=True)\n'


def start(program: str) -> DeviceProcess:
    """Own a Python program that stands in for a device server."""
    return DeviceProcess(
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    )


def test_arguments() -> None:
    options = DeviceOptions(
        "[::1]:9190", Path("state"), "pi", {"board": "pi4", "odd": "a:b,c"}, "0,2-3", emulated=True
    )
    assert options.arguments() == [
        *("--tracker", "[::1]:9190", "--state", "state", "--json", "--until-eof"),
        *(
            "--name",
            "pi",
            "--label",
            "board=pi4",
            "--label",
            "odd=a:b,c",
            "--cores",
            "0,2-3",
            "--emulated",
        ),
    ]


def test_waits_for_an_event_between_other_words() -> None:
    with start(
        "print('hello')\nprint('{broken')\n" + REGISTERED + "import time\ntime.sleep(60)"
    ) as device:
        assert device.wait_for("registered", 30)["id"] == "x"
        assert device.words == "hello\n{broken"


def test_early_end_tells_the_last_words() -> None:
    with (
        start("import sys\nsys.exit('no such state directory')") as device,
        pytest.raises(DeviceStartError, match="ended with 1: no such state directory"),
    ):
        device.wait_for("registered", 30)


def test_silence_ends_at_the_deadline() -> None:
    with (
        start("import time\ntime.sleep(60)") as device,
        pytest.raises(DeviceStartError, match="'registered' within 0 s"),
    ):
        device.wait_for("registered", 0.2)


@pytest.mark.linux
def test_close_ends_one_that_does_not_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farbench.boards.process.STOP_LIMIT_S", 0.3)
    program = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    device = start(program + REGISTERED + "time.sleep(60)")
    device.wait_for("registered", 30)
    device.close()
    assert device.poll() == -9
    assert not psutil.pid_exists(device.pid)


@pytest.mark.linux
def test_a_pinned_owner_starts_a_device_on_other_cores(fleet: Fleet) -> None:
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("needs two cores")
    os.sched_setaffinity(0, usable[:1])
    try:
        device = fleet.start(cores=str(usable[1]))
        assert os.sched_getaffinity(0) == {usable[0]}
    finally:
        os.sched_setaffinity(0, usable)
    assert device.poll() is None


@pytest.mark.linux
def test_close_leaves_no_process(fleet: Fleet) -> None:
    device = fleet.start()
    tree = [psutil.Process(device.pid), *psutil.Process(device.pid).children(recursive=True)]
    assert len(tree) > 1
    device.close()
    _, alive = psutil.wait_procs(tree, timeout=30)
    assert alive == []


@pytest.mark.linux
def test_a_device_that_cannot_start_says_why(fleet: Fleet) -> None:
    with pytest.raises(DeviceStartError, match="ended with 2: .*--cores"):
        fleet.start(cores="9999")
