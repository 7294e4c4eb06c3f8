"""The page itself: a template filled with rows, facts and plots, written in one piece."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farbench.extras import load
from farbench.report import plots
from farbench.report.rows import COLUMNS, Row
from farbench.result import seconds
from farbench_rpc.messages import Facts

TEMPLATE = "page.html.j2"


@dataclass(frozen=True)
class DeviceSection:
    """A device of the report: its name and what it said of itself."""

    name: str
    facts: Facts
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """What a report tells: when and where it was made, devices, rows."""

    title: str
    made_at: str
    devices: tuple[DeviceSection, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def write_report(report: Report, path: Path) -> None:
    """Write the page; a reader never sees half of it."""
    text = render(report)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=path.name, suffix=".part", delete=False
    ) as file:
        try:
            file.write(text)
            file.close()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def render(report: Report) -> str:
    """Fill the template; everything that came from a device or user is escaped."""
    jinja = load("jinja2")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("farbench.report", "templates"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    safe = load("markupsafe").Markup
    sections = [_section(device, report.rows, safe) for device in report.devices]
    template = environment.get_template(TEMPLATE)
    text: str = template.render(
        report=report,
        columns=["GFLOP/s" if c == "GFLOP/S" else c.capitalize() for c in COLUMNS],
        sections=sections,
        seconds=seconds,
    )
    return text


def _section(device: DeviceSection, rows: Sequence[Row], safe: Any) -> Mapping[str, object]:
    own = [row for row in rows if row.device == device.name]
    return {
        "name": device.name,
        "notes": device.notes,
        "facts": sorted((key, _shown(value)) for key, value in device.facts.items()),
        "rows": own,
        # Drawn by us from numbers and names; matplotlib escapes the names.
        "speed": safe(plots.speed_bars(device.name, own)),
        "samples": safe(plots.samples_plot(device.name, own)),
    }


def _shown(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return " ".join(map(str, value))
    return str(value)
