"""What a tracker must not forget, in SQLite: devices with their epochs, leases, and who waits.

A turn of the tracker's loop is one transaction, on disk before anything that depends on it is said:
an epoch is never granted twice, whenever the tracker is killed. Times are kept by the wall clock,
which goes on while no tracker runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from farbench_tracker.errors import JournalError
from farbench_tracker.records import DeviceRecord, LeaseRecord, Records, WaiterRecord

_VERSION: Final = 1
_SCHEMA: Final = """
create table device (id text primary key, name text, labels blob, facts blob, addresses blob,
                     epoch integer, seen_at real) without rowid;
create table lease (id text primary key, epoch integer, token text, device text, granted_at real,
                    hard_end_at real, request text, requirement text, user text, priority integer,
                    place integer, arrived_at real, deadline_at real, session_timeout_s real
                   ) without rowid;
create table waiter (request text primary key, requirement text, user text, priority integer,
                     place integer, arrived_at real, deadline_at real, session_timeout_s real
                    ) without rowid;
"""


class Journal:
    """A file that one tracker at a time writes; its maker closes it."""

    def __init__(self, path: Path) -> None:
        """Open or make it.

        Raises:
            JournalError: another tracker has it, it is of another version, or it is no journal.
        """
        self.path: Final = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Made in one thread, used in another: by whoever serves, never by two at a time.
            self._db: Final = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as cause:
            raise JournalError(f"cannot open the journal {path}: {cause}") from cause
        try:
            self._prepare()
        except sqlite3.Error as cause:
            self._db.close()
            raise JournalError(_why(path, cause)) from cause
        except JournalError:
            self._db.close()
            raise

    def __repr__(self) -> str:
        return f"Journal({self.path})"

    def load(self) -> Records:
        """Read all that was kept; JournalError where the file is damaged."""
        try:
            return Records(
                tuple(map(DeviceRecord.of_row, self._rows("device"))),
                tuple(map(LeaseRecord.of_row, self._rows("lease"))),
                tuple(map(WaiterRecord.of_row, self._rows("waiter"))),
            )
        except (sqlite3.Error, ValueError) as cause:
            raise JournalError(_why(self.path, cause)) from cause

    def write(self, kept: Records, dropped: Sequence[tuple[str, str]]) -> None:
        """Write records, and forget (table, id) pairs, in one transaction, on disk at the end.

        Raises:
            JournalError: it could not; then nothing of it is kept.
        """
        try:
            self._db.execute("begin immediate")
            for table, id_ in dropped:
                key = "request" if table == "waiter" else "id"
                self._db.execute(f"delete from {table} where {key} = ?", (id_,))
            self._put("device", [r.row() for r in kept.devices])
            self._put("lease", [r.row() for r in kept.leases])
            self._put("waiter", [r.row() for r in kept.waiters])
            self._db.execute("commit")
        except sqlite3.Error as cause:
            if self._db.in_transaction:
                self._db.execute("rollback")
            raise JournalError(_why(self.path, cause)) from cause

    def close(self) -> None:
        """Close the file; what was written stays."""
        self._db.close()

    def _prepare(self) -> None:
        self._db.execute("pragma locking_mode = exclusive")
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = full")
        self._db.execute("begin immediate")  # takes the lock, which stays for good
        (version,) = self._db.execute("pragma user_version").fetchone()
        if version == 0:
            for statement in _SCHEMA.split(";")[:-1]:
                self._db.execute(statement)
            self._db.execute(f"pragma user_version = {_VERSION}")
        self._db.execute("commit")
        if version not in (0, _VERSION):
            raise JournalError(
                f"the journal {self.path} has version {version}, this tracker writes {_VERSION}; "
                "move it away, or start the tracker that wrote it"
            )

    def _rows(self, table: str) -> list[tuple[Any, ...]]:
        return self._db.execute(f"select * from {table}").fetchall()

    def _put(self, table: str, rows: list[tuple[object, ...]]) -> None:
        if rows:
            holes = ", ".join("?" * len(rows[0]))
            self._db.executemany(f"insert or replace into {table} values ({holes})", rows)


def _why(path: Path, cause: Exception) -> str:
    if "locked" in str(cause):
        return f"another tracker uses the journal {path}; give this one a --state of its own"
    return f"the journal {path} cannot be used: {cause}"
