"""The journal: what is written is there again, whoever is killed; one writer at a time."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_tracker.errors import JournalError
from farbench_tracker.journal import Journal
from farbench_tracker.records import DeviceRecord, LeaseRecord, Records, WaiterRecord

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
FACTS = st.dictionaries(TEXT, TEXT | st.integers(0, 2**40) | st.booleans() | st.tuples(TEXT))
TIMES = st.floats(0, 4e9)
WAITERS = st.builds(
    WaiterRecord, TEXT, TEXT, TEXT, st.integers(-9, 9), st.integers(0, 2**53), TIMES, TIMES, TIMES
)
DEVICES = st.builds(
    DeviceRecord, TEXT, TEXT, st.dictionaries(TEXT, TEXT), FACTS, st.tuples(TEXT, TEXT),
    st.integers(0, 2**53), TIMES,
)  # fmt: skip
LEASES = st.builds(LeaseRecord, TEXT, st.integers(0, 2**53), TEXT, TEXT, TIMES, TIMES, WAITERS)
WAITER = WaiterRecord("r1", "arch=armv7", "ann", 1, 7, 100.0, 160.0, 600.0)
DEVICE = DeviceRecord("d1", "board", {"a:b": "c"}, {"cores": 4, "isa": ("neon",)}, ("::1",), 3, 9.0)
LEASE = LeaseRecord("l1", 3, "token", "d1", 100.0, 700.0, WAITER)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "tracker.db"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    with closing(Journal(path)) as made:
        yield made


def test_what_is_written_is_there_again(path: Path) -> None:
    with closing(Journal(path)) as first:
        first.write(Records((DEVICE,), (LEASE,), (WAITER,)), [])
    with closing(Journal(path)) as second:
        assert second.load() == Records((DEVICE,), (LEASE,), (WAITER,))
        second.write(Records(), [("lease", "l1"), ("waiter", "r1")])
        assert second.load() == Records((DEVICE,))


@given(device=DEVICES, lease=LEASES, waiter=WAITERS)
def test_any_record_comes_back(
    device: DeviceRecord, lease: LeaseRecord, waiter: WaiterRecord
) -> None:
    with closing(Journal(Path(":memory:"))) as journal:
        journal.write(Records((device,), (lease,), (waiter,)), [])
        assert journal.load() == Records((device,), (lease,), (waiter,))


def test_a_later_record_takes_the_place_of_the_first(journal: Journal) -> None:
    journal.write(Records((DEVICE,)), [])
    later = DeviceRecord("d1", "board", {}, {}, (), 4, 10.0)
    journal.write(Records((later,)), [])
    assert journal.load().devices == (later,)


def test_another_tracker_has_it(path: Path, journal: Journal) -> None:
    with pytest.raises(JournalError, match=r"another tracker uses the journal .*tracker\.db"):
        Journal(path)


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to be read as one" * 100)
    with pytest.raises(JournalError, match="cannot be used: file is not a database"):
        Journal(tmp_path / "text")
    with pytest.raises(JournalError, match="cannot open the journal"):
        Journal(tmp_path)


def test_another_version_is_refused(path: Path, journal: Journal) -> None:
    journal.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("pragma user_version = 99")
    with pytest.raises(JournalError, match="has version 99, this tracker writes 1; move it away"):
        Journal(path)


def test_a_damaged_row_is_an_error(path: Path, journal: Journal) -> None:
    journal.write(Records((DEVICE,)), [])
    journal.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("update device set facts = x'c1'")
        db.commit()
    with closing(Journal(path)) as again, pytest.raises(JournalError, match="a row is damaged"):
        again.load()


WRITES = """
import sys
from pathlib import Path
from farbench_tracker.journal import Journal
from farbench_tracker.records import DeviceRecord, Records
journal = Journal(Path(sys.argv[1]))
for epoch in range(1, 1_000_000):
    journal.write(Records((DeviceRecord("d", "d", {}, {}, (), epoch, 0.0),)), [])
    print(epoch, flush=True)
"""


@pytest.mark.linux
def test_an_epoch_that_was_told_is_never_lost(path: Path) -> None:
    """Kill the writer in the middle: what it said it had written is there."""
    for told_at_least in (3, 20):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITES, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        told = 0
        while told < told_at_least:
            told = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        rest = [
            line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")
        ]
        writer.wait(timeout=30)
        writer.stdout.close()
        told = int(rest[-1]) if rest else told
        with closing(Journal(path)) as journal:
            assert journal.load().devices[0].epoch in (told, told + 1)
