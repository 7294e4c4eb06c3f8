"""Commands that look at a fleet: devices, queue, bench and doctor, on a real one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import farbench as fb

if TYPE_CHECKING:
    from tests.conftest import Fleet
    from tests.host.cli.conftest import Run

pytestmark = pytest.mark.linux


@pytest.fixture
def library(run: Run, program: Path, tmp_path: Path) -> Path:
    path = tmp_path / "add.so"
    assert run("build", f"{program}:vector_add", "-o", path).status == 0
    return path


def test_devices_are_listed(run: Run, shared_fleet: Callable[[str], str]) -> None:
    address = shared_fleet("native")
    said = run("devices", "name=native", "--tracker", address, "--json")
    (device,) = said.last["devices"]
    assert (device["name"], device["arch"], device["emulated"]) == ("native", "x86_64", False)
    said = run("devices", "--tracker", address)
    assert "native" in said.out
    assert "x86_64" in said.out
    assert "nothing matches name=x" in run("devices", "name=x", "--tracker", address).out


def test_the_tracker_is_taken_from_environment_and_file(
    run: Run,
    shared_fleet: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    address = shared_fleet("native")
    folder = tmp_path / "config" / "farbench"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(f'tracker = "{address}"\n')
    assert run("queue", "--json").last == {"queue": []}
    monkeypatch.setenv("FARBENCH_TRACKER", "127.0.0.1:1")
    assert run("queue").status == 1
    assert run("queue", "--tracker", address).status == 0


def test_s4_bench_shows_queue_transfer_and_run_apart(
    run: Run, shared_fleet: Callable[[str], str], library: Path
) -> None:
    address = shared_fleet("native")
    words = ("bench", library, "--on", "name=native", "--shape", "n=4096", "--tracker", address)
    said = run(*words, "--repeat", "8", "--min-repeat-ms", "1", "--seed", "5", "--json")
    assert said.status == 0
    (result,) = said.last["results"]
    assert len(result["samples"]) == 8
    assert len([line for line in said.lines if line.get("event") == "sample"]) == 8
    assert result["inputs"][0]["source"] == "seed 5, uniform [0, 1)"
    assert result["inputs"][0]["shape"] == [4096]
    assert {"device_s", "end_to_end_s", "transfer_s", "queued_s"} <= set(result)
    said = run(*words, "--repeat", "2", "--cache", "cold")
    assert "cold" in said.out
    said = run(*words, "--repeat", "2", "--threads", "3", "--json")
    assert said.last["results"][0]["facts"]["threads"] == 3


def test_bench_each_gives_a_row_a_device(run: Run, fleet: Fleet, library: Path) -> None:
    fleet.start(name="one", cores="0")
    fleet.start(name="two", cores="0")
    words = ("bench", library, "--each", "--shape", "n=64", "--repeat", "3")
    said = run(*words, "--tracker", fleet.address, "--json")
    assert said.status == 0
    assert {result["device"] for result in said.last["results"]} == {"one", "two"}


def test_bench_without_a_match_says_why(
    run: Run, shared_fleet: Callable[[str], str], library: Path
) -> None:
    address = shared_fleet("native")
    words = ("bench", library, "--shape", "n=4", "--tracker", address)
    said = run(*words, "--on", "board=pi4", "--no-wait")
    assert said.status == 1
    assert "board" in said.err
    said = run(*words, "--on", "name=(")
    assert said.status == 1
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("shape", "says"),
    [((), "needs sizes"), (("m=3",), "has no size 'm'"), (("n",), "NAME=NUMBER"),
     (("n=x",), "not a number"), (("n=1.5",), "whole number")],
)  # fmt: skip
def test_sizes_are_checked_before_connecting(
    run: Run, library: Path, shape: tuple[str, ...], says: str
) -> None:
    words = [word for one in shape for word in ("--shape", one)]
    said = run("bench", library, *words, "--tracker", "127.0.0.1:1")
    assert said.status == 2
    assert says in said.err


@pytest.mark.parametrize("arch", ["native", pytest.param("aarch64", marks=pytest.mark.qemu)])
def test_s11_doctor_walks_every_hop(
    run: Run, shared_fleet: Callable[[str], str], arch: str
) -> None:
    said = run("doctor", f"name={arch}", "--tracker", shared_fleet(arch), "--json")
    assert said.status == 0
    (device,) = said.last["devices"]
    assert device["healthy"]
    assert [hop["name"] for hop in device["hops"]][-2:] == ["return", "close"]


def test_s11_doctor_names_the_hop_that_fails(run: Run, fleet: Fleet) -> None:
    fleet.start(name="one")
    with fb.connect_tracker(fleet.address) as tracker, tracker.request("name=one"):
        said = run("doctor", "--no-wait", "--tracker", fleet.address, "--json")
    assert said.status == 1
    assert said.last["devices"][0]["fails_at"] == "connect"


def test_s11_doctor_without_devices_fails_and_says_so(run: Run, fleet: Fleet) -> None:
    said = run("doctor", "--tracker", fleet.address)
    assert said.status == 1
    assert "no device" in said.err


def test_ctrl_c_during_bench_frees_the_lease_and_exits_130(fleet: Fleet, library: Path) -> None:
    fleet.start(name="one")
    command = [sys.executable, "-m", "farbench.cli.main", "bench", str(library), "--json"]
    command += ["--shape", "n=1048576", "--repeat", "1000000", "--tracker", fleet.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bench:
        assert bench.stdout is not None
        for line in bench.stdout:
            if '"sample"' in line:
                break
        os.kill(bench.pid, signal.SIGINT)
        with contextlib.suppress(ValueError):
            bench.stdout.read()
        assert bench.wait(20) == 130
    with fb.connect_tracker(fleet.address) as tracker, tracker.request("name=one", timeout=5):
        assert tracker.queue() == []


def test_s11_doctor_without_a_match_says_what_there_is(
    run: Run, shared_fleet: Callable[[str], str]
) -> None:
    said = run("doctor", "name=natve", "--tracker", shared_fleet("native"))
    assert said.status == 1
    assert said.out == ""
    assert "nothing matches name=natve" in said.err
    assert "there is native" in said.err


def test_bench_each_names_the_device_that_fails(run: Run, fleet: Fleet, library: Path) -> None:
    fleet.start(name="one", labels={"place": "shelf 2"})
    words = ("bench", library, "--each", "--shape", "n=64", "--no-wait", "--tracker", fleet.address)
    with fb.connect_tracker(fleet.address) as tracker, tracker.request("name=one"):
        said = run(*words)
        assert said.status == 1
        assert said.out.startswith("one failed: no device came free")
        said = run(*words, "--json")
    assert said.status == 1
    assert [result["device"] for result in said.last["results"]] == ["one"]
    assert 'place="shelf 2"' in run("devices", "--tracker", fleet.address).out


def test_bench_asks_for_each_term_once(
    run: Run, shared_fleet: Callable[[str], str], library: Path
) -> None:
    words = ("bench", library, "--shape", "n=4", "--tracker", shared_fleet("native"))
    said = run(*words, "--on", "arch=x86_64,board=pi4", "--no-wait")
    assert "nothing matches arch=x86_64,board=pi4 among" in said.err
