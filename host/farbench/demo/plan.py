"""What the demo runs where: devices, their cores, targets, workloads and counts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from farbench.counts import Counts

NATIVE, BOARD = "this-machine", "emulated-aarch64"
NATIVE_COUNTS = Counts(number=1, repeat=20, min_repeat_ms=10.0, budget_s=4.0)
# A timing under emulation means nothing; a few samples show that the way there works.
BOARD_COUNTS = Counts(number=1, repeat=5, budget_s=4.0)


@dataclass(frozen=True)
class DeviceRole:
    """One device of the demo; `cores` is empty where the device may use all."""

    name: str
    arch: str
    target: str
    set_name: str
    counts: Counts
    emulated: bool
    cores: tuple[int, ...] = ()

    @property
    def cores_text(self) -> str:
        """The cores as farbench-device takes them."""
        return ",".join(map(str, self.cores))


@dataclass(frozen=True)
class DemoPlan:
    """The devices, and the cores left for building, checking and this process (empty: all)."""

    native: DeviceRole
    board: DeviceRole | None
    host_cores: tuple[int, ...]


def usable_cores() -> tuple[int, ...]:
    """List the cores that this process may use; empty where the system does not say."""
    if not hasattr(os, "sched_getaffinity"):
        return ()
    return tuple(sorted(os.sched_getaffinity(0)))


def make_plan(
    cores: Sequence[int], arch: str, set_name: str = "resnet18", with_board: bool = True
) -> DemoPlan:
    """Share the cores out: the device that is timed keeps its own, all else runs on the others.

    With one core, or where cores are unknown, everything shares them.
    """
    half = len(cores) // 2
    host, device = (tuple(cores[:half]), tuple(cores[half:])) if half else ((), ())
    native = DeviceRole(NATIVE, arch, "native", set_name, NATIVE_COUNTS, False, device)
    board = None
    if with_board:
        board = DeviceRole(BOARD, "aarch64", "pi4", "small", BOARD_COUNTS, True, host)
    return DemoPlan(native, board, host)
