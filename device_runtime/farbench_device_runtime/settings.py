"""The settings of a device server, read once at the door."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20
_MAX_CORE = 4095


@dataclass(frozen=True)
class Settings:
    """What a device server runs with; sizes in bytes, times in seconds.

    `memory_limit` 0 = half of the memory that is free when a worker starts.
    """

    state: Path
    cores: tuple[int, ...] = ()
    emulated: bool = False
    memory_limit: int = 0
    file_limit: int = 256 * MIB
    upload_limit: int = 256 * MIB
    store_limit: int = 1024 * MIB
    free_floor: int = 64 * MIB
    chunk_bytes: int = MIB
    window: int = 16
    load_timeout_s: float = 30.0
    term_grace_s: float = 0.5
    lock_wait_s: float = 60.0
    lock_path: Path = field(default_factory=lambda: Path("/tmp/farbench-timing.lock"))


def default_state(environment: Mapping[str, str]) -> Path:
    """Give the state directory of this user: XDG_STATE_HOME, else ~/.local/state."""
    base = environment.get("XDG_STATE_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return root / "farbench" / "device"


def parse_size(text: str) -> int:
    """Read a size such as `512MiB`, `2GiB` or `1048576` (bytes); ValueError says what is wrong."""
    units = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
    number = text.strip().rstrip("BKMGTi")
    unit = text.strip()[len(number) :]
    if unit not in units:
        raise ValueError(f"{text!r} is not a size; write it like 512MiB or 2GiB")
    try:
        value = float(number)
    except ValueError:
        raise ValueError(f"{text!r} is not a size; write it like 512MiB or 2GiB") from None
    if not 0 < value < 2**40:
        raise ValueError(f"{text!r} is out of range for a size")
    return int(value * units[unit])


def parse_cores(text: str) -> tuple[int, ...]:
    """Read a list of cores such as `0,2-3`; ValueError names a core this process may not use."""
    cores: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"{text!r} is not a list of cores; write it like 0,2-3")
        low, high = int(first), int(last if dash else first)
        if high < low or high > _MAX_CORE:
            raise ValueError(f"{text!r} is not a list of cores; write it like 0,2-3")
        cores.update(range(low, high + 1))
    allowed = usable_cores()
    missing = sorted(cores - set(allowed))
    if missing:
        raise ValueError(f"core {missing[0]} cannot be used here; usable: {_show(allowed)}")
    return tuple(sorted(cores))


def usable_cores() -> tuple[int, ...]:
    """List the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def _show(cores: tuple[int, ...]) -> str:
    return ",".join(map(str, cores))
