"""A tracker that is killed and started again goes on where it was: its journal knows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from farbench_rpc.address import Address
from farbench_rpc.client import Client
from farbench_rpc.messages import (
    DevicePage,
    Grant,
    LeaseGranted,
    LeaseRelease,
    LeaseRenew,
    LeaseRenewed,
    ListDevices,
    ListQueue,
    QueuePage,
    Registered,
)
from farbench_tracker.errors import JournalError
from farbench_tracker.journal import Journal
from farbench_tracker.records import Records
from farbench_tracker.service import TrackerServer
from tests.tracker.boards import FakeBoard
from tests.tracker.fakes import ask
from tests.tracker.test_service import in_thread, until

pytestmark = pytest.mark.linux


@contextmanager
def tracker(journal: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], Address]]:
    """Run a tracker as a process; what is left of it is killed."""
    command = [sys.executable, "-m", "farbench.cli.main", "tracker", "--json"]
    command += ["--port", str(port), "--journal", str(journal)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            assert run.stdout is not None
            said = run.stdout.readline()
            assert said, run.stderr.read() if run.stderr else ""
            host, _, chosen = json.loads(said)["address"].rpartition(":")
            yield run, Address(host, int(chosen))
        finally:
            run.kill()


def kill(process: subprocess.Popen[str]) -> None:
    """End a process as a loss of power would."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=30)


def the_device(client: Client) -> tuple[str, str, int]:
    """Give the state, lease and epoch of the one device."""
    page = client.ask(ListDevices("")).message
    assert isinstance(page, DevicePage)
    (device,) = page.devices
    return device.state, device.lease, device.epoch


def waiting(client: Client) -> list[str]:
    """List the requests that wait."""
    page = client.ask(ListQueue()).message
    assert isinstance(page, QueuePage)
    return [entry.request for entry in page.entries]


def test_s14_a_killed_tracker_knows_devices_queue_and_leases(tmp_path: Path) -> None:
    journal = tmp_path / "tracker.db"
    with tracker(journal) as (first, address):
        board = FakeBoard(address, "d")
        with Client.connect(address, "client") as client:
            board.await_heard(Registered)
            lease = client.ask(ask("holder")).message
            assert isinstance(lease, LeaseGranted)
            for request in ("early", "late"):
                client.begin(ask(request))
            until(lambda: waiting(client) == ["early", "late"])
            kill(first)
        with tracker(journal, address.port), Client.connect(address, "client") as client:
            # Before any device came back it is known, with its lease and its epoch.
            assert the_device(client)[1:] == (lease.lease, 1)
            # The later request comes back first, and stands behind the earlier one all the same.
            with in_thread(lambda: client.ask(ask("late"))) as late:
                until(lambda: waiting(client) == ["late"])
                with in_thread(lambda: client.ask(ask("early"))) as early:
                    until(lambda: waiting(client) == ["early", "late"])
                    renewed = client.ask(LeaseRenew((lease.lease,))).message
                    assert renewed == LeaseRenewed((lease.lease,), {})
                    until(lambda: the_device(client) == ("leased", lease.lease, 1))
                    client.ask(LeaseRelease(lease.lease))
                assert isinstance(early[0], LeaseGranted)
                assert early[0].epoch == 2
                client.ask(LeaseRelease(early[0].lease))
            assert isinstance(late[0], LeaseGranted)
            assert late[0].epoch == 3
        board.close()


def test_s14_a_request_whose_client_is_gone_does_not_come_back(tmp_path: Path) -> None:
    journal = tmp_path / "tracker.db"
    with tracker(journal) as (first, address):
        with FakeBoard(address, "d"), Client.connect(address, "client") as client:
            lease = client.ask(ask("holder")).message
            assert isinstance(lease, LeaseGranted)
            client.begin(ask("orphan"))
            until(lambda: waiting(client) == ["orphan"])
            kill(first)
        with tracker(journal, address.port) as (second, _):
            with Client.connect(address, "client") as client:
                # Neither end of the lease comes back: it is over after one TTL.
                until(lambda: the_device(client)[:2] == ("lost", ""))
                assert waiting(client) == []
            second.terminate()
            second.wait(timeout=30)
    with closing(Journal(journal)) as kept:
        records = kept.load()
    assert (records.leases, records.waiters) == ((), ())
    assert [(d.id, d.epoch) for d in records.devices] == [("d", 1)]


def test_nothing_is_granted_while_the_journal_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = True

    def write(self: Journal, kept: Records, gone: object) -> None:
        if full:
            raise JournalError("the journal cannot be used: disk is full")
        write_it(self, kept, gone)  # type: ignore[arg-type]

    write_it = Journal.write
    monkeypatch.setattr(Journal, "write", write)
    with (
        closing(Journal(tmp_path / "j.db")) as journal,
        TrackerServer("127.0.0.1", 0, journal=journal) as server,
    ):
        server.start()
        with FakeBoard(server.address, "d") as board, Client.connect(server.address, "client") as c:
            with in_thread(lambda: c.ask(ask("r"))) as answer:
                until(lambda: waiting(c) == ["r"])  # the rest goes on
                full = False
            assert isinstance(answer[0], LeaseGranted)
            # Epochs that were never on disk were never told either.
            assert board.await_heard(Grant).epoch == answer[0].epoch
        assert journal.load().devices[0].epoch == answer[0].epoch


def test_two_trackers_do_not_share_a_journal(tmp_path: Path) -> None:
    journal = tmp_path / "tracker.db"
    with tracker(journal):
        second = subprocess.run(
            [sys.executable, "-m", "farbench.cli.main", "tracker", "--port", "0",
             "--journal", str(journal)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert second.returncode != 0
    assert second.stderr.count("\n") == 1
    assert "another tracker uses the journal" in second.stderr
