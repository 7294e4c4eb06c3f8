"""A lease as its holder sees it: which device, until when, and why it ended."""

from __future__ import annotations

from collections.abc import Callable

from farbench_rpc.errors import LeaseLost
from farbench_rpc.messages import DeviceInfo, LeaseGranted


class Lease:
    """One granted lease; renewed by the keeper of the tracker connection until it is released."""

    def __init__(self, granted: LeaseGranted, release: Callable[[Lease], None]) -> None:
        self.id = granted.lease
        self.epoch = granted.epoch
        self.token = granted.token
        self.device: DeviceInfo = granted.device
        self.ttl_s = granted.ttl_s
        self.queued_s = granted.queued_s
        self.ended = ""
        self.on_end: Callable[[LeaseLost], None] | None = None
        self.close_session: Callable[[], None] = self.release
        self._release = release
        self._released = False

    def end(self, reason: str) -> None:
        """Note why the lease is over, and tell whoever uses it."""
        self.ended = reason or "the tracker gave no reason"
        if self.on_end is not None:
            self.on_end(self.lost())

    def lost(self) -> LeaseLost:
        """Give the error that says why the lease is over."""
        return LeaseLost(
            f"the lease of {self.device.name} ended: {self.ended}; request a device again",
            {"reason": self.ended, "epoch": self.epoch},
        )

    def release(self) -> None:
        """Give the device back; once is enough, more do nothing."""
        if not self._released:
            self._released = True
            self._release(self)

    def __repr__(self) -> str:
        state = f"ended: {self.ended}" if self.ended else "released" if self._released else "held"
        return f"<Lease {self.id} of {self.device.name}, epoch {self.epoch}, {state}>"
