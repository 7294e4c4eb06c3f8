"""The demo: how cores are shared out, building ahead, and the whole of it on two devices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from farbench.boards import Board
from farbench.demo.builder import Builder, BuildFailed, Job
from farbench.demo.plan import BOARD, NATIVE, make_plan
from tests.host.cli.conftest import Said


def test_the_device_that_is_timed_keeps_its_own_cores() -> None:
    plan = make_plan((0, 1, 2, 3), "x86_64")
    assert (plan.host_cores, plan.native.cores) == ((0, 1), (2, 3))
    assert plan.native.cores_text == "2,3"
    assert plan.board is not None
    assert plan.board.cores == (0, 1)


@pytest.mark.parametrize("cores", [(), (0,)])
def test_one_core_is_shared(cores: tuple[int, ...]) -> None:
    plan = make_plan(cores, "x86_64", with_board=False)
    assert (plan.host_cores, plan.native.cores, plan.board) == ((), (), None)


def test_libraries_are_built_ahead_and_failures_come_back(tmp_path: Path) -> None:
    with Builder(tmp_path, ()) as builder:
        good = builder.submit(Job("small", "vector_add_1048576", "pi4"))
        bad = builder.submit(Job("small", "vector_add_1048576", "pi44"))
        assert good.result(60).path.is_file()
        with pytest.raises(BuildFailed, match="pi4"):
            bad.result(60)


def test_a_builder_that_is_closed_answers_what_waits(tmp_path: Path) -> None:
    with Builder(tmp_path, ()) as builder:
        waiting = [builder.submit(Job("small", "matmul_128", "native")) for _ in range(50)]
    with pytest.raises(BuildFailed, match="ended"):
        waiting[-1].result(10)


def demo(tmp_path: Path, *words: str) -> list[str]:
    report = str(tmp_path / "report.html")
    return [sys.executable, "-m", "farbench.cli.main", "demo", "--json", "--report", report, *words]


@pytest.mark.qemu
@pytest.mark.deadline(300)
def test_two_devices_run_check_and_time_everything(board_aarch64: Board, tmp_path: Path) -> None:
    done = subprocess.run(demo(tmp_path), capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    said = Said(done.returncode, done.stdout, done.stderr)
    assert [(d["name"], d["emulated"]) for d in said.last["devices"]] == [
        (NATIVE, False),
        (BOARD, True),
    ]
    results = said.last["results"]
    assert all(row["valid"] and row["samples"] >= 1 for row in results)
    assert len([row for row in results if row["device"] == NATIVE]) == 14
    assert len([row for row in results if row["device"] == BOARD]) >= 4
    assert {line["event"] for line in said.lines[:-1]} >= {"device", "built", "sample", "row"}
    assert (tmp_path / "report.html").read_text().count("<svg") == 4


@pytest.mark.linux
def test_ctrl_c_leaves_nothing_and_exits_130(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with subprocess.Popen(
        demo(tmp_path, "--no-board"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if '"sample"' in line:
                break
        assert processes_with(str(temporary))
        running.send_signal(signal.SIGINT)
        running.stdout.read()
        assert running.wait(30) == 130
    assert processes_with(str(temporary)) == []
    assert list(temporary.iterdir()) == []


def processes_with(text: str) -> list[str]:
    """List the processes of this machine whose command line or directory names `text`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                said = (entry / "cmdline").read_bytes().decode(errors="replace")
                said += os.readlink(entry / "cwd")
            except OSError:
                continue  # it ended while this looked
            if text in said:
                found.append(said)
    return found
