"""The one lease a device serves: who holds it, until when by the device's own clock."""

from __future__ import annotations

import hmac
import math
from dataclasses import dataclass

from farbench_device_runtime.identity import Identity
from farbench_rpc.errors import LeaseLost, Refused, RpcError, by_code
from farbench_rpc.messages import Grant, SessionOpen


@dataclass
class Lease:
    """A lease as the device holds it; `deadline` and `cap` are times of its monotonic clock."""

    id: str
    epoch: int
    token: str
    ttl_s: float
    deadline: float
    cap: float
    session_timeout_s: float

    def renew(self, now: float) -> None:
        """Note that the tracker confirmed it just now."""
        self.deadline = max(self.deadline, now + self.ttl_s)

    def over(self, now: float) -> LeaseLost | None:
        """Give the reason once it is over by this device's clock."""
        detail: dict[str, str | int | float | bool] = {"epoch": self.epoch, "lease": self.id}
        if now >= self.cap:
            detail["reason"] = "session_timeout"
            detail["limit_s"] = self.session_timeout_s
            limit = f"{self.session_timeout_s:g} s"
            return LeaseLost(f"the session reached its session_timeout of {limit}", detail)
        if now >= self.deadline:
            detail["reason"] = "not renewed"
            return LeaseLost(f"the lease was not renewed for {self.ttl_s:g} s", detail)
        return None


def accept(grant: Grant, current: Lease | None, identity: Identity, now: float) -> Lease:
    """Take a grant; Refused for an old epoch or while another lease is served.

    A repeat of the grant that is served gets the same answer.
    """
    if current is not None:
        if current.id == grant.lease and current.epoch == grant.epoch:
            return current
        raise Refused(f"still serving lease {current.id}", {"lease": current.id})
    if grant.epoch < identity.epoch:
        raise Refused(
            f"epoch {grant.epoch} is older than {identity.epoch}, which this device has served",
            {"epoch": identity.epoch},
        )
    # Local sessions have no end: they carry infinity.
    if not grant.ttl_s > 0 or not grant.session_timeout_s > 0 or math.isnan(grant.ttl_s):
        raise Refused("a lease needs a ttl and a session timeout above 0")
    identity.raise_epoch(grant.epoch)
    return Lease(
        grant.lease,
        grant.epoch,
        grant.token,
        grant.ttl_s,
        now + grant.ttl_s,
        now + grant.session_timeout_s,
        grant.session_timeout_s,
    )


def check_open(message: SessionOpen, lease: Lease | None) -> None:
    """Refuse the opening of a session that does not show the lease's token."""
    if lease is None or lease.id != message.lease:
        raise LeaseLost(
            f"lease {message.lease} is not served here; request a new one",
            {"reason": "unknown lease", "epoch": message.epoch},
        )
    same = hmac.compare_digest(lease.token.encode(), message.token.encode())
    if not same or lease.epoch != message.epoch:
        raise Refused("the token does not open this lease")


def lost(code: str, reason: str, lease: Lease) -> RpcError:
    """Make the error that the holder of a lease gets when it ends under its session."""
    return by_code(code)(reason, {"reason": reason, "epoch": lease.epoch, "lease": lease.id})
