"""The tracker as a server: one thread that polls, hands events to the fleet, and carries out.

with TrackerServer("127.0.0.1", 0) as server:
    server.start()              # or server.serve() to stay in this thread
    print(server.address)
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Final

import zmq

from farbench_rpc.address import Address, parse_address
from farbench_rpc.errors import Refused, RpcError
from farbench_rpc.messages import (
    Beat,
    ErrorReply,
    Grant,
    LeaseCancel,
    LeaseEnded,
    LeaseGranted,
    LeaseQueued,
    LeaseRelease,
    LeaseRenew,
    LeaseRequest,
    Leave,
    ListDevices,
    ListQueue,
    Ok,
    Ping,
    Register,
)
from farbench_rpc.server import Endpoint, EndpointSettings, Incoming, Peer
from farbench_rpc.transport.base import Bell
from farbench_tracker import client_side, clock, device_side
from farbench_tracker.decisions import Decision, Note, Reply, ToClient, ToDevice
from farbench_tracker.errors import JournalError
from farbench_tracker.fleet import Fleet
from farbench_tracker.journal import Journal
from farbench_tracker.listing import device_page, queue_page
from farbench_tracker.log import line
from farbench_tracker.recovery import Clocks, forget_changes, mark_again, restore, take_changes
from farbench_tracker.settings import Settings
from farbench_tracker.talks import Talks

_log = logging.getLogger(__name__)
_LONGEST_POLL_MS: Final = 1_000
# Messages handled before time is looked at; many more wait only after a stall of this process, and
# then renewals among them must be seen before leases are ended for want of them.
_BATCH: Final = 4_096
_CLOSE_S: Final = 5.0


class TrackerServer:
    """A tracker that listens from its making on; `close` ends it from any thread."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9190,
        settings: Settings | None = None,
        *,
        insecure: bool = False,
        journal: Journal | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Bind; port 0 lets the system pick one. Without a `journal` a restart forgets everything.

        Raises:
            CannotListen: the address cannot be bound; the message names it.
            Refused: it is beyond loopback, and `insecure` was not given.
            JournalError: what the journal holds cannot be read.
        """
        self.settings: Final = settings or Settings()
        self._clock: Final = monotonic
        self._endpoint: Final = Endpoint.bind(
            _address(host, port),
            "tracker",
            welcome={
                "ttl_s": self.settings.ttl_s,
                "renew_s": self.settings.renew_s,
                "beat_s": self.settings.beat_s,
            },
            settings=EndpointSettings(insecure=insecure),
        )
        self._fleet: Final = Fleet(self.settings, monotonic(), lambda: secrets.token_hex(16))
        self._journal: Final = journal
        self._journal_fails = False
        if journal is not None:
            restore(self._fleet, self._clocks(), journal.load())
        # What a turn decided, said once the journal has it.
        self._held: list[tuple[Decision, Incoming | None]] = []
        self._talks: Final = Talks()
        self._bell: Final = Bell()
        self._stopping = threading.Event()
        self._serving = threading.Lock()
        self._thread: threading.Thread | None = None
        self._poller: Final = zmq.Poller()
        for pollable in (*self._endpoint.pollables, self._bell.fileno()):
            self._poller.register(pollable, zmq.POLLIN)

    def __repr__(self) -> str:
        return f"TrackerServer({self.address}, {self._fleet})"

    @property
    def address(self) -> Address:
        """Give where it listens, with the port that was chosen."""
        bound = self._endpoint.address
        if bound is None:
            raise RuntimeError("an endpoint that was bound has an address")
        return bound

    def start(self) -> None:
        """Serve in a thread of its own, until `close`."""
        self._thread = threading.Thread(target=self.serve, name="farbench-tracker", daemon=True)
        self._thread.start()

    def serve(self) -> None:
        """Serve in this thread, until `close` is called in another."""
        with self._serving:
            _log.info(line("tracker_listens", address=str(self.address)))
            try:
                while not self._stopping.is_set():
                    self._turn()
            except Exception:
                _log.exception(line("tracker_failed"))
                raise

    def close(self) -> None:
        """Stop serving and listening; may be called twice."""
        self._stopping.set()
        self._bell.ring()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)
        # Where `serve` runs in another thread, its last turn must be over before the sockets go.
        if self._serving.acquire(timeout=_CLOSE_S):
            self._serving.release()
            self._endpoint.close()
            self._bell.close()
        else:
            _log.warning(line("tracker_stuck", reason="its loop did not end; sockets stay open"))

    def __enter__(self) -> TrackerServer:
        """Give itself, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.close()

    # --- one turn of the loop -------------------------------------------------------------------

    def _turn(self) -> None:
        self._poller.poll(self._endpoint.patience_ms(self._patience_ms()))
        self._bell.clear()
        for _ in range(_BATCH):
            incoming = self._endpoint.receive()
            if incoming is None:
                break
            self._handle(incoming)
        for peer in self._endpoint.take_gone():
            self._gone(peer)
        self._hold(clock.advance(self._fleet, self._clock()), None)
        self._commit()
        while self._held:
            held, self._held = self._held, []
            for decision, asked in held:
                self._carry_out(decision, asked)

    def _clocks(self) -> Clocks:
        return Clocks(self._clock(), time.time())

    def _hold(self, decisions: list[Decision], incoming: Incoming | None) -> None:
        self._held += ((decision, incoming) for decision in decisions)

    def _commit(self) -> None:
        """Write what changed; while that fails, nothing new is granted and all else goes on."""
        if self._journal is None:
            forget_changes(self._fleet)
            return
        changed = take_changes(self._fleet, self._clocks())
        if not any(changed):
            return
        try:
            self._journal.write(*changed)
        except JournalError as error:
            if not self._journal_fails:
                _log.error(line("journal_failed", reason=str(error)))
            self._journal_fails = True
            mark_again(self._fleet, *changed)
            self._withhold_grants()
        else:
            if self._journal_fails:
                _log.info(line("journal_works_again"))
            self._journal_fails = False

    def _withhold_grants(self) -> None:
        """Take back the grants in hand, whose epochs are not on disk; their requests wait on."""
        now, why = self._clock(), "the tracker cannot write its journal"
        held, self._held = self._held, []
        for decision, asked in held:
            if isinstance(decision, ToDevice) and isinstance(decision.message, Grant):
                found = device_side.withheld(self._fleet, now, decision.message.lease, why)
                self._hold(found, None)
            else:
                self._held.append((decision, asked))

    def _patience_ms(self) -> int:
        due_s = clock.next_due_s(self._fleet)
        if due_s is None:
            return _LONGEST_POLL_MS
        # Rounded up, so that it does not wake just before the time, in vain.
        return min(_LONGEST_POLL_MS, max(0, int((due_s - self._clock()) * 1000) + 1))

    def _handle(self, incoming: Incoming) -> None:
        now = self._clock()
        try:
            if incoming.request_id < 0:
                self._hold(self._answered(now, incoming), None)
            elif incoming.peer.role == "device":
                self._hold(self._from_device(now, incoming), incoming)
            else:
                self._hold(self._from_client(now, incoming), incoming)
        except RpcError as error:
            _log.info(line("refused", message=incoming.message.KIND, reason=error.message))
            self._endpoint.error(incoming, error)
        except Exception:
            # A bug met by one peer must not take the fleet down; it is told, and logged in full.
            _log.exception(line("bug", message=incoming.message.KIND))
            self._endpoint.error(incoming, RpcError("the tracker met a bug; its log says more"))

    # --- in -------------------------------------------------------------------------------------

    def _from_device(self, now: float, incoming: Incoming) -> list[Decision]:
        peer = incoming.peer
        match incoming.message:
            case Register() as said:
                return device_side.register(self._fleet, now, peer, peer.host, said)
            case Beat() as said:
                return device_side.beat(self._fleet, now, peer, said)
            case LeaseEnded() as said:
                return device_side.lease_ended(self._fleet, now, peer, said)
            case Leave() as said:
                return device_side.leave(self._fleet, now, peer, said)
            case Ping():
                return [Reply(Ok())]
            case other:
                raise Refused(f"a device may not send {other.KIND} to a tracker")

    def _from_client(self, now: float, incoming: Incoming) -> list[Decision]:
        fleet, peer = self._fleet, incoming.peer
        match incoming.message:
            case LeaseRequest() as said:
                decisions = client_side.request(fleet, now, peer, said)
                self._talks.asks(said.request, incoming)
                return decisions
            case LeaseRenew() as said:
                return client_side.renew(fleet, now, peer, said)
            case LeaseRelease() as said:
                return client_side.release(fleet, now, said)
            case LeaseCancel() as said:
                return client_side.cancel(fleet, now, said)
            case ListDevices() as said:
                return [Reply(device_page(fleet, said))]
            case ListQueue() as said:
                return [Reply(queue_page(fleet, now, said))]
            case Ping():
                return [Reply(Ok())]
            case other:
                raise Refused(f"a tracker does not take {other.KIND} from a {peer.role}")

    def _answered(self, now: float, incoming: Incoming) -> list[Decision]:
        """Take the answer of a device to a Grant or Revoke."""
        asked = self._talks.answered(incoming.peer, incoming.request_id)
        answer = incoming.message
        if asked is None:
            return []
        if isinstance(answer, Ok):
            if isinstance(asked.message, Grant):
                return device_side.confirmed(self._fleet, now, asked.device, asked.message.lease)
            return device_side.idle(self._fleet, now, asked.device, asked.message.lease)
        why = answer.message if isinstance(answer, ErrorReply) else f"it answered {answer.KIND}"
        _log.info(line("device_refused", device=asked.device, reason=why))
        if isinstance(asked.message, Grant):
            return device_side.refused(self._fleet, now, asked.message.lease, why)
        return []

    def _gone(self, peer: Peer) -> None:
        now = self._clock()
        self._talks.gone(peer)
        self._hold(device_side.gone(self._fleet, now, peer), None)
        self._hold(client_side.gone(self._fleet, now, peer), None)

    # --- out ------------------------------------------------------------------------------------

    def _carry_out(self, decision: Decision, incoming: Incoming | None) -> None:
        match decision:
            case Reply(message):
                if incoming is not None:
                    self._endpoint.reply(incoming, message)
            case ToDevice():
                self._ask_device(decision)
            case ToClient(request, message):
                self._tell_client(request, message)
            case Note(event, device, lease, reason, who):
                _log.info(line(event, device=device, lease=lease, who=who, reason=reason))

    def _ask_device(self, decision: ToDevice) -> None:
        device = self._fleet.registry.devices[decision.device]
        peer = device.peer
        if isinstance(peer, Peer):
            push = self._endpoint.push(peer, decision.message)
            if push:
                self._talks.pushed(peer, push, decision)

    def _tell_client(self, request: str, message: LeaseQueued | LeaseGranted | ErrorReply) -> None:
        asker = self._talks.asker(request)
        if asker is not None and isinstance(message, LeaseQueued):
            self._endpoint.event(asker, message)
            return
        self._talks.done(request)
        told = asker is not None and self._endpoint.reply(asker, message)
        if isinstance(message, LeaseGranted) and not told:
            now = self._clock()
            release = LeaseRelease(message.lease)
            self._hold(client_side.release(self._fleet, now, release), None)


def _address(host: str, port: int) -> Address:
    bare_v6 = ":" in host and not host.startswith("[")
    return parse_address(f"[{host}]" if bare_v6 else host, port)
