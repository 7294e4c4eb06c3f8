"""What the fleet decides, as plain values that the service carries out in order."""

from __future__ import annotations

from dataclasses import dataclass

from farbench_rpc.messages import (
    ErrorReply,
    Grant,
    LeaseGranted,
    LeaseQueued,
    Message,
    Revoke,
)


@dataclass(frozen=True)
class Reply:
    """Answer the message that was just handed in."""

    message: Message


@dataclass(frozen=True)
class ToDevice:
    """Ask a device; its answer comes back as `confirmed`, `refused` or `idle`."""

    device: str
    message: Grant | Revoke


@dataclass(frozen=True)
class ToClient:
    """Tell whoever asked for `request`: LeaseQueued is an event, the others are the answer."""

    request: str
    message: LeaseQueued | LeaseGranted | ErrorReply


@dataclass(frozen=True)
class Note:
    """Write a line in the log: what happened to whose device and lease, and why."""

    event: str
    device: str = ""
    lease: str = ""
    reason: str = ""
    who: str = ""  # the user of a lease, the name of a device


Decision = Reply | ToDevice | ToClient | Note
