"""Rows S9 and S10: devices are found by what their owner says of them, and by who they are."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

import farbench as fb
from farbench_tracker.requirement import parse, quote
from tests.behaviours.conftest import Run
from tests.behaviours.yard import ODD_LABELS, Place, Yard, quoted, start

pytestmark = pytest.mark.linux

EVERY = ",".join(f"{quoted(key)}={quoted(value)}" for key, value in ODD_LABELS.items())


@pytest.mark.parametrize("key", ODD_LABELS)
def test_s9_a_label_finds_its_device_and_comes_back_as_it_was(
    native: Place, farbench: Run, key: str
) -> None:
    wanted = f"name=native,{quoted(key)}={quoted(ODD_LABELS[key])}"
    said = farbench("devices", wanted, "--tracker", native.yard.address, "--json")
    (device,) = said.last["devices"]
    assert device["name"] == "native"
    assert device["labels"] == ODD_LABELS
    other = f"name=native,{quoted(key)}={quoted(ODD_LABELS[key] + 'x')}"
    assert farbench("devices", other, "--tracker", native.yard.address, "--json").last == {
        "devices": []
    }
    table = farbench("devices", wanted, "--tracker", native.yard.address)
    assert table.status == 0
    # As a requirement writes it, so that what is listed can be pasted into one.
    assert f"{quote(key)}={quote(ODD_LABELS[key])}" in table.out


def test_s9_every_label_works_in_every_command(place: Place, farbench: Run) -> None:
    wanted = f"name={place.arch},{EVERY}"
    to = ("--tracker", place.yard.address)
    said = farbench("devices", wanted, *to, "--json")
    assert [device["name"] for device in said.last["devices"]] == [place.arch]
    counts = ("--number", 1, "--repeat", 2, "--min-repeat-ms", 0)
    for more in ((), ("--each",)):
        said = farbench("bench", place.library, "--on", wanted, *counts, *more, *to, "--json")
        assert said.status == 0, said.err
        (result,) = said.last["results"]
        assert result["device"] == place.arch
        assert len(result["samples"]) == 2
    said = farbench("doctor", wanted, *to, "--json")
    assert said.status == 0, said.out
    assert [device["healthy"] for device in said.last["devices"]] == [True]


def test_s9_a_label_works_in_the_queue_and_where_nothing_matches(
    native: Place, farbench: Run
) -> None:
    to = ("--tracker", native.yard.address)
    wanted = f"name=native,{EVERY}"
    queued, done = threading.Event(), threading.Event()

    def wait() -> None:
        native.tracker.request(wanted, timeout=30, on_queued=lambda p, r: queued.set()).close()
        done.set()

    with native.request():
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert queued.wait(10)
        (entry,) = farbench("queue", *to, "--json").last["queue"]
        assert parse(entry["requirement"]) == parse(wanted)
        assert "Küche ☕ 実験室" in farbench("queue", *to).out
    waiting.join(30)
    assert done.is_set()
    odd = f"{quoted('comma')}={quoted('one,two,three')}"
    said = farbench("bench", native.library, "--on", odd, "--no-wait", *to)
    assert said.status == 1
    told = said.err.splitlines()[-1]
    assert told.startswith("farbench: ")
    assert odd.replace('"comma"', "comma") in told
    assert "nearest: " in told


def test_s9_a_name_may_be_any_printable_text(yard: Yard, farbench: Run, tmp_path: Path) -> None:
    name = 'rack:2 "left", =1 ☕ \\ (a|b)'
    with start("native", yard.address, tmp_path / "state", name):
        wanted = f"name={quoted(name)}"
        said = farbench("devices", wanted, "--tracker", yard.address, "--json")
        assert [device["name"] for device in said.last["devices"]] == [name]
        with yard.tracker.request(wanted, timeout=10) as session:
            assert session.name == name


# ---------------------------------------------------------------- identity


def test_s10_the_id_stays_with_the_state_directory(
    each_arch: str, yard: Yard, farbench: Run, tmp_path: Path
) -> None:
    name = f"again-{each_arch}"
    seen = set()
    for _ in range(2):
        with start(each_arch, yard.address, tmp_path / "state", name):
            (device,) = yard.tracker.devices(f"name={name}")
            seen.add(device.id)
            # The id can be copied from the table that people see.
            table = farbench("devices", f"name={name}", "--tracker", yard.address)
            (shown,) = re.findall(r"\b[0-9a-f]{32}\b", table.out)
            with yard.tracker.request(f"id={shown}", timeout=10) as session:
                assert session.name == name
    assert len(seen) == 1


def test_s10_devices_that_look_alike_are_told_apart(yard: Yard, tmp_path: Path) -> None:
    labels = {"board": "pi4"}
    with (
        start("native", yard.address, tmp_path / "one", "twin", labels),
        start("native", yard.address, tmp_path / "two", "twin", labels),
    ):
        twins = yard.tracker.devices("name=twin,board=pi4")
        assert len({twin.id for twin in twins}) == 2
        with fb.connect_tracker(yard.address) as tracker:
            for twin in twins:
                with tracker.request(f"id={twin.id}", timeout=10) as session:
                    assert session.lease is not None
                    assert session.lease.device.id == twin.id
                    states = {one.id: one.state for one in tracker.devices("name=twin")}
                    assert [id for id, state in states.items() if state == "leased"] == [twin.id]
