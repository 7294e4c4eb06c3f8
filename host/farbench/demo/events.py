"""What happens while the demo runs, as data: the command line decides how it looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from farbench.report import Row

Kind = Literal["note", "device", "built", "sample", "row", "skipped", "ended"]


@dataclass(frozen=True)
class Event:
    """One thing that happened on a device; `row` comes with kind `row`, `seconds` with others."""

    kind: Kind
    device: str = ""
    workload: str = ""
    text: str = ""
    seconds: float = 0.0
    row: Row | None = None
