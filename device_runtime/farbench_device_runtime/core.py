"""A device without its sockets: grants in, sessions served, worker and clock watched.

`server.py` runs it behind TCP and beside a tracker, `local.py` in a thread behind memory.
"""

from __future__ import annotations

import errno
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from farbench_device_runtime.identity import Identity, StateError
from farbench_device_runtime.leases import Lease, accept, check_open, lost
from farbench_device_runtime.requests import Requests
from farbench_device_runtime.session import Session
from farbench_device_runtime.shared import House
from farbench_device_runtime.store import Store
from farbench_rpc.errors import InvalidArgument, LeaseLost, QuotaExceeded, Refused, RpcError
from farbench_rpc.messages import (
    Facts,
    Grant,
    Ok,
    Ping,
    SessionClose,
    SessionLost,
    SessionOpen,
    SessionOpened,
)
from farbench_rpc.server import Incoming, Peer

_log = logging.getLogger(__name__)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EFBIG)
PREPARE_AFTER_S = 0.25
Ended = Callable[[str, int, str], None]


@dataclass
class _Serving:
    """The session of the lease, and whom to tell when it is over."""

    session: Session
    requests: Requests
    prepare_at: float
    detached_at: float | None = None
    closing: Incoming | None = None


class DeviceCore:
    """One lease and one session at a time.

    `on_ended(lease, epoch, reason)` is called once a lease is over and nothing of it runs.
    """

    def __init__(
        self, house: House, store: Store, identity: Identity, name: str, facts: Facts
    ) -> None:
        self.house = house
        self.store = store
        self.identity = identity
        self.name = name
        self.facts = facts
        self.lease: Lease | None = None
        self.on_ended: Ended = _ignore
        self._serving: _Serving | None = None
        self._reason = ""
        self._whenever_idle: list[Callable[[], None]] = []
        self._sessions = house.settings.state / "sessions"
        # What a server that was killed left behind: none of it is served any more.
        self._sessions.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in self._sessions.iterdir():
            house.sweeper.remove(left)

    # --- leases --------------------------------------------------------------------------------

    def grant(self, grant: Grant) -> None:
        """Take a lease; Refused says why not."""
        if self._reason:
            raise Refused("the lease before is still ending")
        try:
            self.lease = accept(grant, self.lease, self.identity, self.house.clock())
        except StateError as cause:
            raise Refused(f"the epoch cannot be kept: {cause}") from cause

    def renew(self, lease: str) -> None:
        """Note that the tracker confirmed the lease."""
        if self.lease is not None and self.lease.id == lease:
            self.lease.renew(self.house.clock())

    def revoke(self, lease: str, reason: str, then: Callable[[], None]) -> None:
        """End a lease; `then` is called once this device is idle."""
        if self.lease is None or self.lease.id != lease:
            if self.lease is None:
                then()
            return
        self._whenever_idle.append(then)
        self._end(lost("lease_lost", reason, self.lease), reason)

    @property
    def is_idle(self) -> bool:
        """Tell whether no lease is served and nothing of one runs."""
        return self.lease is None

    def shut_down(self, reason: str) -> None:
        """End what is served, since the server ends."""
        if self.lease is not None:
            self._end(lost("device_lost", reason, self.lease), reason)

    # --- messages ------------------------------------------------------------------------------

    def handle(self, incoming: Incoming) -> None:
        """Serve one message of a client."""
        try:
            self._dispatch(incoming)
        except RpcError as error:
            self.house.endpoint.error(incoming, error)
        except OSError as error:
            # A full disk, no descriptor left: it costs this request, not the device.
            _log.warning("%s failed: %s", incoming.message.KIND, error)
            text = f"the device could not do it: {error.strerror or error}"
            kind = QuotaExceeded if error.errno in _FULL else RpcError
            self.house.endpoint.error(incoming, kind(text))
        except Exception:
            # A bug that one client meets must not take the device from the others.
            _log.exception("bug in serving %s", incoming.message.KIND)
            self.house.endpoint.error(incoming, RpcError("the device met a bug; its log says more"))

    def _dispatch(self, incoming: Incoming) -> None:
        serving = self._serving
        if serving is not None and serving.session.peer is incoming.peer:
            if serving.session.closed:
                raise LeaseLost("the session is over", {"reason": self._reason})
            if serving.requests.handle(incoming):
                return
        message = incoming.message
        if type(message) is SessionOpen:
            self._open(incoming, message)
        elif type(message) is Ping:
            self.house.endpoint.reply(incoming, Ok())
        elif type(message) is SessionClose:
            self._close(incoming)
        elif serving is None or serving.session.peer is not incoming.peer:
            raise Refused("open a session first, with the token of a lease")
        else:
            raise InvalidArgument(f"a device does not serve {message.KIND}")

    def _open(self, incoming: Incoming, message: SessionOpen) -> None:
        check_open(message, self.lease)
        if self._reason or self.lease is None:
            raise LeaseLost("the lease is ending", {"reason": self._reason})
        now = self.house.clock()
        if self._serving is None:
            # Of every core all the time, and some: only what outlives its lease reaches it.
            cores = max(len(self.house.settings.cores), 64)
            cpu_s = int(min(self.lease.session_timeout_s, 1e6) * cores) + 60
            folder = self._sessions / secrets.token_hex(8)
            session = Session(self.house, incoming.peer, folder, cpu_s)
            requests = Requests(session, self.store, self.house.settings.load_timeout_s)
            self._serving = _Serving(session, requests, now + PREPARE_AFTER_S)
        else:
            if self._serving.session.peer is not incoming.peer:
                self._serving.session.detach()  # of a connection that may still stand
            self._serving.session.peer = incoming.peer
            self._serving.detached_at = None
        settings = self.house.settings
        opened = SessionOpened(self.name, self.facts, settings.chunk_bytes, settings.window)
        self.house.endpoint.reply(incoming, opened)

    def _close(self, incoming: Incoming) -> None:
        serving = self._serving
        if serving is None or serving.session.peer is not incoming.peer:
            self.house.endpoint.reply(incoming, Ok())
            return
        serving.closing = incoming
        self._end(lost("cancelled", "the session was closed", self._held()), "closed")

    def _held(self) -> Lease:
        if self.lease is None:
            raise LeaseLost("no lease is served here", {"reason": "none"})
        return self.lease

    # --- the loop's turns ----------------------------------------------------------------------

    def peer_gone(self, peer: Peer) -> None:
        """Note that a connection ended: its session waits for another one for a TTL."""
        serving = self._serving
        if serving is not None and serving.session.peer is peer:
            serving.session.detach()
            serving.detached_at = self.house.clock()

    def worker_spoke(self) -> None:
        """Take in what the worker said."""
        if self._serving is not None:
            self._serving.session.receive()

    def zygote_spoke(self) -> None:
        """Take in what the zygote said: a worker is ready, or one has ended."""
        supervisor = self.house.supervisor
        supervisor.receive()
        while supervisor.exits:
            ended = supervisor.exits.popleft()
            if self._serving is not None:
                self._serving.session.ended(ended)
        if self._serving is not None:
            self._serving.session.pump()
        self._settle()

    def pollable(self) -> int | None:
        """Give the worker's descriptor to poll, None while there is none."""
        return self._serving.session.pollable() if self._serving is not None else None

    @property
    def worker_is_calling(self) -> bool:
        """Tell whether the worker was given one call, which may be short."""
        return self._serving is not None and self._serving.session.is_calling

    def next_wake(self) -> float:
        """Say in how many seconds `tick` must be called, at most a minute."""
        if not self.house.sweeper.idle:
            return 0.0
        now = self.house.clock()
        wake = 60.0
        if self.lease is not None and not self._reason:
            wake = min(self.lease.deadline, self.lease.cap) - now
        serving = self._serving
        if serving is not None:
            wake = min(wake, serving.session.next_wake(now))
            if serving.prepare_at:
                wake = min(wake, serving.prepare_at - now)
            if serving.detached_at is not None and self.lease is not None:
                wake = min(wake, serving.detached_at + self.lease.ttl_s - now)
        return max(0.0, min(wake, 60.0))

    def tick(self) -> None:
        """Watch the clock."""
        now = self.house.clock()
        self.house.supervisor.tick(time.monotonic())
        self.house.sweeper.work()
        serving = self._serving
        if serving is not None:
            serving.session.tick(now)
            if serving.prepare_at and now >= serving.prepare_at:
                serving.prepare_at = 0.0
                self.house.supervisor.prepare()
        if self.lease is None or self._reason:
            return
        over = self.lease.over(now)
        detached_at = serving.detached_at if serving is not None else None
        if over is None and detached_at is not None and now >= detached_at + self.lease.ttl_s:
            over = LeaseLost("the client's connection ended", {"reason": "client gone"})
        if over is not None:
            self._end(over, str(over.detail.get("reason", over.message)))

    def close(self) -> None:
        """Let go of everything, also of a session that is not over."""
        if self._serving is not None:
            self._serving.session.abandon()
            self._serving = None
        self.store.close()

    # --- the end of a lease --------------------------------------------------------------------

    def _end(self, error: RpcError, reason: str) -> None:
        """End the lease: refuse what waits, kill the worker, tell the client."""
        if self._reason:
            return
        self._reason = reason or "ended"
        serving = self._serving
        if serving is not None:
            peer = serving.session.peer
            serving.session.close(error)
            if peer is not None and serving.closing is None:
                self.house.endpoint.tell(peer, SessionLost(error.code, error.message))
        self._settle()

    def _settle(self) -> None:
        """Finish the end of a lease once its worker is gone."""
        lease, serving = self.lease, self._serving
        if not self._reason or lease is None:
            return
        if serving is not None:
            if not serving.session.is_over:
                return
            serving.session.wipe()
            serving.requests.release()
            self.house.supervisor.prepare()
            if serving.closing is not None:
                self.house.endpoint.reply(serving.closing, Ok())
        reason, self._reason = self._reason, ""
        self.lease, self._serving = None, None
        waiting, self._whenever_idle = self._whenever_idle, []
        for then in waiting:
            then()
        self.on_ended(lease.id, lease.epoch, reason)


def _ignore(lease: str, epoch: int, reason: str) -> None:
    """Tell nobody."""
