"""Devices and queue as rows for people and as plain data for programs."""

from __future__ import annotations

from collections.abc import Sequence

from farbench_rpc.messages import DeviceInfo, QueueEntry
from farbench_tracker.explain import explain
from farbench_tracker.requirement import parse, quote

DEVICE_COLUMNS = ("NAME", "ARCH", "STATE", "HOLDER", "CORES", "MEMORY", "ADDRESS", "LABELS", "ID")
QUEUE_COLUMNS = ("#", "USER", "REQUIREMENT", "PRIORITY", "WAITED", "REASON")
_GIB = 1 << 30


def device_row(device: DeviceInfo) -> tuple[str, ...]:
    """Give the cells of DEVICE_COLUMNS."""
    state = device.state + (" (emulated)" if device.facts.get("emulated") else "")
    memory = device.facts.get("memory", 0)
    gib = memory / _GIB if isinstance(memory, (int, float)) else 0.0
    return (
        device.name,
        str(device.facts.get("arch", "")),
        state,
        device.holder,
        str(device.facts.get("cores", "")),
        f"{gib:.1f} GiB" if gib else "",
        device.addresses[0] if device.addresses else "",
        ",".join(f"{quote(key)}={quote(value)}" for key, value in sorted(device.labels.items())),
        device.id,
    )


def device_data(device: DeviceInfo) -> dict[str, object]:
    """Give a device as plain data for JSON."""
    return {
        "id": device.id,
        "name": device.name,
        "state": device.state,
        "arch": device.facts.get("arch", ""),
        "emulated": bool(device.facts.get("emulated", False)),
        "labels": dict(device.labels),
        "facts": dict(device.facts),
        "addresses": list(device.addresses),
        "epoch": device.epoch,
        "lease": device.lease,
        "holder": device.holder,
        "reason": device.reason,
    }


def queue_row(position: int, entry: QueueEntry) -> tuple[str, ...]:
    """Give the cells of QUEUE_COLUMNS."""
    return (
        str(position),
        entry.user,
        entry.requirement,
        str(entry.priority),
        f"{entry.waited_s:.1f} s",
        entry.reason,
    )


def queue_data(position: int, entry: QueueEntry) -> dict[str, object]:
    """Give a waiting request as plain data for JSON."""
    return {
        "position": position,
        "request": entry.request,
        "user": entry.user,
        "requirement": entry.requirement,
        "priority": entry.priority,
        "waited_s": entry.waited_s,
        "reason": entry.reason,
    }


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns with spaces: numbers to the right, text to the left."""
    grid = [list(columns), *[[printable(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in grid) for i in range(len(columns))]
    right = [is_numeric_column([row[i] for row in grid[1:]]) for i in range(len(columns))]
    lines = []
    for row in grid:
        cells = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def why_none(address: object, requirement: str, devices: Sequence[DeviceInfo]) -> str:
    """Say on one line why no device of a tracker matches, and what comes nearest."""
    return f"tracker {address}: {explain(parse(requirement), devices).text}"


def printable(text: str) -> str:
    """Show what others wrote without obeying it: control characters as their escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_numeric_column(cells: Sequence[str]) -> bool:
    """Tell whether a column belongs to the right: numbers, and words in capitals in their place."""
    return any(map(is_numeric, cells)) and all(is_numeric(c) or c.isupper() for c in cells)


def is_numeric(cell: str) -> bool:
    """Tell whether a cell is a number, perhaps with a unit behind it."""
    first = cell.lstrip("-+").partition(" ")[0].replace(",", "").replace("%", "")
    try:
        float(first)
    except ValueError:
        return cell in ("", "-")
    return True


def summary(address: str, devices: Sequence[DeviceInfo], waiting: Sequence[QueueEntry]) -> str:
    """Show a tracker's devices and queue as text."""
    lines = [f"tracker {address}: {len(devices)} devices, {len(waiting)} waiting"]
    if devices:
        lines += aligned(DEVICE_COLUMNS, [device_row(device) for device in devices])
    if waiting:
        rows = [queue_row(index, entry) for index, entry in enumerate(waiting)]
        lines += ["", *aligned(QUEUE_COLUMNS, rows)]
    return "\n".join(lines)
