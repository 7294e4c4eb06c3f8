"""A device as the tracker knows it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

from farbench_rpc.messages import DeviceInfo
from farbench_tracker.requirement import FactValue

Peer = Hashable
State = Literal["free", "granting", "leased", "recovering", "lost"]


@dataclass(slots=True)
class Device:
    """One device; `seen_s` is when it was last heard, `hold_s` until when it may still serve."""

    id: str
    name: str
    labels: Mapping[str, str]
    facts: Mapping[str, FactValue]
    addresses: tuple[str, ...]
    peer: Peer | None  # None: its connection is closed
    seen_s: float
    epoch: int = 0
    state: State = "lost"
    reason: str = ""
    lease: str = ""
    holder: str = ""
    used_s: float = 0.0  # when its last lease ended; the longest unused is granted first
    hold_s: float = 0.0
    revoking: str = ""  # the lease that it was told to end; its Ok to that proves it idle
    says_idle: bool = False  # it claims so while recovering, without a proof
    refused: bool = False  # the last grant; it rests before the next

    def info(self) -> DeviceInfo:
        """Describe it for a list or a grant."""
        return DeviceInfo(
            self.id,
            self.name,
            self.state,
            dict(self.labels),
            dict(self.facts),
            self.addresses,
            self.epoch,
            self.lease,
            self.holder,
            self.reason,
        )
