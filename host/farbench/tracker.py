"""The connection to a tracker: what devices there are, who waits, and a session on request."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import farbench as fb
from farbench.errors import UsageError
from farbench.keeper import Keeper
from farbench.lease import Lease
from farbench.line import ASK_TIMEOUT_S, Line, OnEvent, OnPush
from farbench.session import Session
from farbench.settings import TRACKER_PORT, Settings, load_settings
from farbench_rpc import messages as m
from farbench_rpc.address import Address, parse_address
from farbench_rpc.client import Client, Reply
from farbench_rpc.errors import (
    AddressError,
    ConnectError,
    ProtocolError,
    RemoteTimeout,
    RpcError,
)

CONNECT_TIMEOUT_S = 5.0
ANSWER_MARGIN_S = 10.0  # the tracker itself ends a wait at its limit
QUICK_S = 1.0
MAX_WAIT_S = 86_400.0
MAX_PAGES = 10_000

OnQueued = Callable[[int, str], None] | None


class Tracker:
    """A tracker as its clients see it; made by `connect_tracker`, ended by `close`.

    May be used from several threads at once.
    """

    def __init__(self, address: Address, settings: Settings) -> None:
        self.address = address
        self._settings = settings
        self._closed = False
        self._client = Client.connect(
            address, role="client", timeout_s=CONNECT_TIMEOUT_S, agent=f"farbench {fb.__version__}"
        )
        try:
            renew_s, ttl_s = (self._told(name) for name in ("renew_s", "ttl_s"))
        except RpcError:
            self._client.close()
            raise
        self._keeper = Keeper(partial(_renew, self._client), renew_s, ttl_s)
        weakref.finalize(self, self._keeper.abandon).atexit = False

    def _told(self, name: str) -> float:
        """Give a time that the tracker told in its Welcome (s); ProtocolError if it is none."""
        welcome = self._client.welcome
        value = welcome.settings.get(name)
        is_time = isinstance(value, (int, float)) and 0 < value <= MAX_WAIT_S
        if welcome.role != "tracker" or not is_time:
            raise ProtocolError(
                f"{self.address} answers as a {welcome.role} without the times of a tracker; "
                "give the address of the tracker"
            )
        return float(value)  # type: ignore[arg-type]

    # --- what there is ---

    def devices(self, requirement: str = "") -> list[m.DeviceInfo]:
        """List the devices that match, each with state, labels and facts."""
        found: list[m.DeviceInfo] = []
        cursor = ""
        for _ in range(MAX_PAGES):
            page = self._ask(m.ListDevices(requirement, cursor)).message
            if not isinstance(page, m.DevicePage):
                raise self._odd("ListDevices", page)
            found.extend(page.devices)
            cursor = page.cursor
            if not cursor:
                break
        return found

    def queue(self) -> list[m.QueueEntry]:
        """List the requests that wait, the next one first."""
        found: list[m.QueueEntry] = []
        cursor = ""
        for _ in range(MAX_PAGES):
            page = self._ask(m.ListQueue(cursor)).message
            if not isinstance(page, m.QueuePage):
                raise self._odd("ListQueue", page)
            found.extend(page.entries)
            cursor = page.cursor
            if not cursor:
                break
        return found

    def text_summary(self) -> str:
        """Show devices and queue as lines of text."""
        from farbench.listing import summary

        return summary(str(self.address), self.devices(), self.queue())

    # --- a device ---

    def request(
        self,
        requirement: str = "",
        *,
        priority: int = 1,
        session_timeout: float | None = None,
        timeout: float | None = None,
        user: str | None = None,
        on_queued: OnQueued = None,
    ) -> Session:
        """Wait for a device that matches and open a session on it.

        `timeout` is how long to wait in seconds (0: not at all), `session_timeout` the hard cap
        of the lease; both default to the settings. `on_queued(position, reason)` is told while it
        waits. NoMatch: no device can ever satisfy it. Busy: none came free in time.
        """
        settings = self._settings
        wait_s = _limit("timeout", settings.wait_s if timeout is None else timeout, least=0.0)
        cap = settings.session_timeout_s if session_timeout is None else session_timeout
        asked = m.LeaseRequest(
            requirement=requirement,
            request=uuid.uuid4().hex,
            priority=priority,
            session_timeout_s=_limit("session_timeout", cap, least=0.1),
            wait_s=wait_s,
            user=settings.user if user is None else user,
        )
        lease = Lease(self._granted(asked, on_queued), self._release)
        self._keeper.hold(lease)
        try:
            return _open_session(lease)
        except BaseException:
            lease.release()
            raise

    def _granted(self, asked: m.LeaseRequest, on_queued: OnQueued) -> m.LeaseGranted:
        def tell(event: Reply) -> None:
            if on_queued is not None and isinstance(event.message, m.LeaseQueued):
                on_queued(event.message.position, event.message.reason)

        try:
            reply = self._ask(asked, asked.wait_s + ANSWER_MARGIN_S, tell)
        except (KeyboardInterrupt, SystemExit):
            # What was granted meanwhile is not renewed, so it ends within its TTL in any case.
            with suppress(RpcError):
                self._ask(m.LeaseCancel(asked.request), QUICK_S)
            raise
        if not isinstance(reply.message, m.LeaseGranted):
            raise self._odd("LeaseRequest", reply.message)
        return reply.message

    def _release(self, lease: Lease) -> None:
        self._keeper.drop(lease)
        if lease.ended or self._closed:
            return
        # A lease that cannot be given back ends by itself, since nothing renews it.
        with suppress(RpcError):
            self._ask(m.LeaseRelease(lease.id), QUICK_S)

    def _ask(
        self,
        message: m.Message,
        timeout_s: float = ASK_TIMEOUT_S,
        on_event: OnEvent | None = None,
    ) -> Reply:
        if self._closed:
            raise UsageError(f"the connection to the tracker at {self.address} is closed")
        return self._client.ask(message, timeout_s=timeout_s, on_event=on_event)

    def _odd(self, asked: str, answer: m.Message) -> RpcError:
        return RpcError(f"the tracker at {self.address} answered {asked} with {answer.KIND!r}")

    # --- end ---

    def close(self) -> None:
        """Close every session that is still open, and let go of the connection."""
        for lease in self._keeper.held():
            lease.close_session()
        self._closed = True
        self._keeper.close()
        self._client.close()

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Tracker at {self.address}{', closed' if self._closed else ''}>"


def connect_tracker(
    host: str | None = None, port: int | None = None, *, settings: Settings | None = None
) -> Tracker:
    """Connect to a tracker: `(host, port)`, `("HOST:PORT")`, or () for the settings' own.

    ConnectError says whether it was refused, is no tracker, or speaks another version.
    """
    found = settings if settings is not None else load_settings()
    if host is None:
        if port is not None:
            raise UsageError("connect_tracker was given a port and no host")
        return Tracker(found.tracker_address, found)
    if port is None:
        return Tracker(parse_address(host, TRACKER_PORT), found)
    return Tracker(Address(host.strip("[]"), port), found)


def _renew(client: Client, asked: m.LeaseRenew, timeout_s: float) -> m.LeaseRenewed:
    answer = client.ask(asked, timeout_s=timeout_s).message
    if not isinstance(answer, m.LeaseRenewed):
        raise RpcError(f"the tracker answered LeaseRenew with {answer.KIND!r}")
    return answer


def _open_session(lease: Lease) -> Session:
    """Connect to the device of a lease, at the first of its addresses that answers."""
    opening = m.SessionOpen(lease.id, lease.epoch, lease.token)
    failures: list[str] = []
    for text in lease.device.addresses:
        try:
            line = Line(partial(_dial, text))
        except (AddressError, ConnectError, RemoteTimeout) as error:
            failures.append(f"{text}: {error.message}")
            continue
        return Session.open(line, opening, lease)
    tried = "; ".join(failures) or "it gave no address"
    raise ConnectError(
        f"{lease.device.name} cannot be reached from here ({tried}); "
        "see `farbench doctor` for the hop that fails"
    )


def _dial(address: str, on_push: OnPush) -> Client:
    return Client.connect(address, role="client", timeout_s=CONNECT_TIMEOUT_S, on_push=on_push)


def _limit(name: str, seconds: float, least: float) -> float:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not least <= seconds <= MAX_WAIT_S:
        raise UsageError(f"{name} must be from {least:g} to {MAX_WAIT_S:g} s, not {seconds!r}")
    return float(seconds)
