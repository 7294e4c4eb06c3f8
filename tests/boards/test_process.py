"""A device server is owned: awaited until registered, and gone after close."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from farbench.boards import DeviceOptions, DeviceProcess, DeviceStartError

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
        *("--tracker", "[::1]:9190", "--state", "state", "--json", "--name", "pi"),
        *("--label", "board=pi4", "--label", "odd=a:b,c", "--cores", "0,2-3", "--emulated"),
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
