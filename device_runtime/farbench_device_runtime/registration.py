"""The device's side of its talk with the tracker: register, beat, take grants, tell ends.

It sits on a link that dials again by itself and never waits. Requests that were cut off by the end
of a connection are said again after the next registration.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from farbench_device_runtime import facts
from farbench_device_runtime.core import DeviceCore
from farbench_device_runtime.identity import StateError
from farbench_rpc.errors import ConnectError, InvalidArgument, RpcError
from farbench_rpc.link import Link
from farbench_rpc.messages import (
    Beat,
    ErrorReply,
    Grant,
    LeaseEnded,
    Leave,
    Message,
    Ok,
    Register,
    Registered,
    Revoke,
    Welcome,
)
from farbench_rpc.replies import error_reply

_log = logging.getLogger(__name__)
ANSWER_S = 5.0
REFUSED_RETRY_S = 10.0


@dataclass(frozen=True)
class Offer:
    """What a device offers the tracker beside its facts."""

    name: str
    labels: dict[str, str]
    port: int
    addresses: tuple[str, ...] = ()


class Registration:
    """Keeps a device known to its tracker.

    `on_state(state, detail)` hears `registered`, `refused` and `lost` with what there is to say.
    """

    def __init__(
        self,
        link: Link,
        core: DeviceCore,
        offer: Offer,
        on_state: Callable[[str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.link = link
        self.core = core
        self.offer = offer
        self.on_state = on_state
        self.clock = clock
        self.registered: Registered | None = None
        self._asked: dict[int, tuple[Message, float]] = {}
        self._next_beat = 0.0
        self._again_at = 0.0
        self._unsaid: list[LeaseEnded] = []
        core.on_ended = self._lease_ended

    def next_wake(self) -> float:
        """Say in how many seconds `tick` must be called, at most a minute."""
        now = self.clock()
        times = [at + ANSWER_S for _, at in self._asked.values()]
        if self.registered is not None:
            times.append(self._next_beat)
        if self._again_at:
            times.append(self._again_at)
        return max(0.0, min([60.0, *(at - now for at in times)]))

    def receive(self) -> None:
        """Take in all that the tracker has said."""
        while (push := self.link.receive()) is not None:
            try:
                self._heard(push.request_id, push.message)
            except ConnectError:
                return  # The link tells the end of the connection by itself.

    def tick(self) -> None:
        """Beat, and give up on a tracker that does not answer."""
        now = self.clock()
        if any(now - at > ANSWER_S for _, at in self._asked.values()):
            self.link.reconnect(f"the tracker did not answer within {ANSWER_S:g} s")
            self._asked.clear()
            return
        try:
            if self._again_at and now >= self._again_at:
                self._register()
            elif self.registered is not None and now >= self._next_beat:
                self._beat(now)
        except ConnectError:
            return  # As above.

    def close(self) -> None:
        """Leave the tracker, so that it does not list this device as lost."""
        if self.registered is not None and self.link.is_up:
            # A tracker of before does not know the message, one that is gone needs none.
            with contextlib.suppress(ConnectError, InvalidArgument):
                self.link.ask(Leave())
        self.link.close()

    def _heard(self, request_id: int, message: Message) -> None:
        if isinstance(message, Welcome):
            self._register()
        elif isinstance(message, Grant):
            self._granted(request_id, message)
        elif isinstance(message, Revoke):
            self._revoked(request_id, message)
        elif request_id > 0 and request_id in self._asked:
            asked, _ = self._asked.pop(request_id)
            self._answered(asked, message)
        elif isinstance(message, ErrorReply):
            self._down(message)

    def _register(self) -> None:
        self._again_at = 0.0
        lease = self.core.lease
        self._ask(
            Register(
                self.core.identity.id,
                self.offer.name,
                dict(self.offer.labels),
                dict(self.core.facts),
                self.offer.port,
                self.offer.addresses,
                self.core.identity.epoch,
                lease.id if lease is not None else "",
            )
        )

    def _beat(self, now: float) -> None:
        lease = self.core.lease
        name = lease.id if lease is not None else ""
        self._ask(Beat(name, self.core.identity.epoch, facts.load_average()))
        self._plan_beat(now)

    def _plan_beat(self, now: float) -> None:
        if self.registered is not None:
            leased = self.core.lease is not None
            self._next_beat = now + (self.registered.renew_s if leased else self.registered.beat_s)

    def _ask(self, message: Message) -> None:
        self._asked[self.link.ask(message)] = (message, self.clock())

    def _answered(self, asked: Message, message: Message) -> None:
        if isinstance(asked, Register):
            self._registration_answered(message)
        elif isinstance(asked, LeaseEnded):
            self._unsaid = [one for one in self._unsaid if one != asked]
        elif isinstance(asked, Beat) and asked.lease and isinstance(message, Ok):
            self.core.renew(asked.lease)
        elif isinstance(asked, Beat) and isinstance(message, ErrorReply):
            if message.code == "lease_lost":
                self.core.revoke(asked.lease, message.message, _nothing)
            elif message.code == "not_found":
                self._register()  # A tracker that was restarted does not know this connection.

    def _registration_answered(self, message: Message) -> None:
        now = self.clock()
        if isinstance(message, Registered):
            self.registered = message
            self._note_epoch(message.epoch)
            if self.core.lease is not None:
                self.core.renew(self.core.lease.id)
            self._plan_beat(now)
            self.on_state("registered", "")
            for unsaid in self._unsaid:
                self._ask(unsaid)
        elif isinstance(message, ErrorReply):
            self.on_state("refused", message.message)
            self._again_at = now + REFUSED_RETRY_S

    def _note_epoch(self, epoch: int) -> None:
        try:
            self.core.identity.raise_epoch(epoch)
        except StateError as error:
            # A full disk: the next grant is refused for it, and this device goes on.
            _log.warning("%s", error)

    def _granted(self, request_id: int, grant: Grant) -> None:
        try:
            self.core.grant(grant)
        except RpcError as error:
            self.link.answer(request_id, error_reply(error))
            return
        self.link.answer(request_id, Ok())
        self._plan_beat(self.clock())

    def _revoked(self, request_id: int, revoke: Revoke) -> None:
        def idle() -> None:
            self.link.answer(request_id, Ok())

        self._note_epoch(revoke.epoch)
        self.core.revoke(revoke.lease, revoke.reason, idle)

    def _lease_ended(self, lease: str, epoch: int, reason: str) -> None:
        ended = LeaseEnded(lease, epoch, reason)
        self._unsaid.append(ended)
        self._plan_beat(self.clock())
        if self.registered is not None and self.link.is_up:
            try:
                self._ask(ended)
            except ConnectError:
                return  # Said after the next registration.

    def _down(self, message: ErrorReply) -> None:
        if self.registered is not None or not self._asked:
            self.on_state("lost", message.message)
        self.registered = None
        self._asked.clear()
        self._again_at = 0.0


def _nothing() -> None:
    """Do nothing: the end of the lease is told as it comes."""
