"""Who this device is: an id made once and kept in the state directory, and the last epoch seen."""

from __future__ import annotations

import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

_ID = re.compile(r"[0-9a-f]{32}")


class StateError(RuntimeError):
    """The state directory cannot be used; the message names it and says why."""


@dataclass
class Identity:
    """The stable id (32 hex digits) of this device and the highest epoch it has served."""

    folder: Path
    id: str
    epoch: int = 0

    def raise_epoch(self, epoch: int) -> None:
        """Keep the highest epoch on disk, so that a grant of before a restart stays refused."""
        if epoch > self.epoch:
            _write(self.folder / "epoch", str(epoch))
            self.epoch = epoch


def open_state(folder: Path) -> Path:
    """Make the state directory, ours alone (0700); StateError says why it cannot be."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(folder, 0o700)
    except OSError as cause:
        raise StateError(f"cannot use {folder} as state directory: {cause.strerror}") from cause
    return folder


def load_identity(folder: Path) -> Identity:
    """Read the identity of a state directory, or make it the first time (file mode 0600)."""
    path = folder / "identity.json"
    try:
        if not path.exists():
            _write(path, json.dumps({"id": secrets.token_hex(16)}) + "\n", first_wins=True)
        known = json.loads(path.read_text(encoding="utf-8"))
        name = known.get("id", "") if isinstance(known, dict) else ""
    except OSError as cause:
        raise StateError(f"cannot read {path}: {cause.strerror}") from cause
    except ValueError as cause:
        raise StateError(f"{path} is damaged; remove it to get a new id") from cause
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise StateError(f"{path} holds no id; remove it to get a new one")
    return Identity(folder, name, _read_epoch(folder / "epoch"))


def _read_epoch(path: Path) -> int:
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return 0
    except OSError as cause:
        raise StateError(f"cannot read {path}: {cause.strerror}") from cause
    return int(text) if text.isdigit() else 0


def _write(path: Path, text: str, *, first_wins: bool = False) -> None:
    """Replace a small file at once, so that a power cut leaves the old or the new one.

    `first_wins` keeps a file that another server, started at the same moment, has just made.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if first_wins and _linked(partial, path):
            partial.unlink()
        else:
            os.replace(partial, path)
    except OSError as cause:
        raise StateError(f"cannot write {path}: {cause.strerror}") from cause


def _linked(partial: Path, path: Path) -> bool:
    """Give a file its name unless it is taken; False where the file system has no links."""
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True
